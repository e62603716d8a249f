//! [`refuse_truncated`]: detects replies that show that the server silently truncated the request or ran out
//! of window. The detection itself is in `wire`.

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Reply, StopReason, Tokens};
use plimsoll_wire::overflow::Overflow;
use plimsoll_wire::overflow::silent::{self, ReplyContext, Silent};

/// Returns a reply that answers the whole request, or an error if the server dropped the beginning
/// of the request or had no room for the answer.
pub(crate) fn refuse_truncated(reply: Reply, request: &Request) -> Result<Reply, Failure> {
    let expects = &request.expects;
    let known = ReplyContext {
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
            "the request fills the context window, so there are no tokens left for an \
             answer"
                .to_owned(),
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
                "it read {read} tokens of about {sent}, so it silently dropped a part of the \
                 request"
            ),
        ),
        // The server read more than our window estimate, and all of it. That is harmless: the next
        // request is counted accordingly. An empty answer without usage proves nothing.
        Some(Silent::OverWindow(_) | Silent::Nothing) | None => return Ok(reply),
    })
}

/// Returns the size of the window if the provider reports that it ended.
fn ended_at(reply: &Reply) -> Option<Tokens> {
    let usage = reply.usage.filter(|_| reply.stop == StopReason::Window)?;
    Some(usage.total_tokens())
}
