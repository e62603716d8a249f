//! [`heard`]: a reply, unless it shows that the server cut the request or ran out of window, and
//! did not say so. What it shows is judged in `wire`, by what the machine knew of the request.

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Reply, StopReason, Tokens};
use plimsoll_wire::overflow::Overflow;
use plimsoll_wire::overflow::silent::{self, Known, Silent};

/// Gives back a reply that answers the request. A server that dropped the beginning of it, or had no
/// room left for the answer, has answered something else.
pub(crate) fn heard(reply: Reply, request: &Request) -> Result<Reply, Failure> {
    let expects = &request.expects;
    let known = Known {
        window: expects.window,
        max_output: request.max_output.or(expects.output),
        estimate: expects.input,
        previous: expects.previous,
    };
    let cut = |overflow: Overflow, message: String| Failure::Cut {
        used: overflow.used,
        window: overflow.window,
        usage: reply.usage,
        message,
    };
    Err(match silent::detect(&reply, &known) {
        Some(Silent::NoRoom(overflow)) => cut(
            overflow,
            "the request fills the window and leaves no room for an answer".to_owned(),
        ),
        Some(Silent::WindowEnded(overflow)) => {
            let window = overflow.window.or_else(|| ended_at(&reply));
            cut(
                Overflow { window, ..overflow },
                "the window ended in the middle of the answer".to_owned(),
            )
        }
        Some(Silent::InputCut { read, sent }) => cut(
            Overflow {
                used: Some(sent),
                ..Overflow::default()
            },
            format!(
                "it read {read} tokens of about {sent}, so it dropped a part of what was sent without a word"
            ),
        ),
        // More was read than we thought it could hold, and all of it: no harm is done, and the next
        // request is counted with it. An answer without a word and without usage says nothing here.
        Some(Silent::OverWindow(_) | Silent::Nothing) | None => return Ok(reply),
    })
}

/// Where the window ended, if the provider says that it did.
fn ended_at(reply: &Reply) -> Option<Tokens> {
    let usage = reply.usage.filter(|_| reply.stop == StopReason::Window)?;
    Some(usage.total_tokens())
}
