//! [`refuse_truncated`]: treats a reply as an overflow if it shows that the request did not fit the
//! context window.

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Reply, StopReason, Tokens, Usage};

/// Returns the reply, or an error if it shows that the request did not fit the context window: the
/// provider says so, the server read exactly its window, or the request filled the window and the
/// reply is empty.
///
/// A report that is merely lower than expected proves nothing: the server may count differently.
pub(crate) fn refuse_truncated(reply: Reply, request: &Request) -> Result<Reply, Failure> {
    let (used, window) = (reply.usage, request.expects.window);
    let total = used.map(|usage| usage.total_tokens());
    let message = match (used, window) {
        _ if reply.stop == StopReason::Window => "the window ended in the middle of the answer",
        (Some(usage), Some(window)) if usage.processed() == window => {
            "the server read exactly its window, so it dropped the rest of the request"
        }
        (Some(usage), Some(window)) if is_empty(&reply, usage) && is_full(usage, window) => {
            "the request fills the context window, so there are no tokens left for an answer"
        }
        _ => return Ok(reply),
    };
    Err(Failure::Cut {
        used: used.map(|usage| usage.processed()),
        window: window.or(total),
        message: message.to_owned(),
    })
}

fn is_empty(reply: &Reply, usage: Usage) -> bool {
    usage.output == Tokens::ZERO || reply.parts.is_empty()
}

/// Checks whether at least 99 % of the window was read.
fn is_full(usage: Usage, window: Tokens) -> bool {
    u128::from(usage.processed().0) * 100 >= u128::from(window.0) * 99
}
