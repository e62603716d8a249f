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
    let known = request.expects.window;
    let cut = |usage: Option<Usage>, window, message: &str| {
        Err(Failure::Cut {
            used: usage.map(|usage| usage.processed()),
            window,
            usage,
            message: message.to_owned(),
        })
    };
    if reply.stop == StopReason::Window {
        let total = reply.usage.map(|usage| usage.total_tokens());
        return cut(
            reply.usage,
            known.or(total),
            "the window ended in the middle of the answer",
        );
    }
    let (Some(usage), Some(window)) = (reply.usage, known) else {
        return Ok(reply);
    };
    if usage.processed() == window {
        return cut(
            Some(usage),
            known,
            "the server read exactly its window, so it dropped the rest of the request",
        );
    }
    let is_empty = usage.output == Tokens::ZERO || reply.parts.is_empty();
    if is_empty && is_full(usage, window) {
        return cut(
            Some(usage),
            known,
            "the request fills the context window, so there are no tokens left for an answer",
        );
    }
    Ok(reply)
}

/// Checks whether at least 99 % of the window was read.
fn is_full(usage: Usage, window: Tokens) -> bool {
    u128::from(usage.processed().0) * 100 >= u128::from(window.0) * 99
}
