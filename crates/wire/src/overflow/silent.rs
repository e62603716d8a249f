//! Overflows without an error: a server cut the history, or the window ended inside the reply. Pure
//! functions over the reported usage; the caller decides on the reaction.

use plimsoll_context::{Reply, StopReason, Tokens, Usage};

use super::Overflow;

/// The smallest request that may have been cut: no server in use has a smaller window.
const LEAST_CUT: Tokens = Tokens(2_048);
/// The smallest credible report. A server that cuts keeps at least half of such a window, and some
/// servers report nearly 0, or always the same number.
const LEAST_READ: Tokens = Tokens(512);

/// An overflow that a reply shows without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silent {
    /// The server read more than the window. The window is larger than assumed, or the rest was
    /// dropped.
    OverWindow(Overflow),
    /// The server read much less than was sent: the beginning was dropped.
    InputCut {
        /// The tokens that were read.
        read: Tokens,
        /// The estimated tokens that were sent.
        sent: Tokens,
    },
    /// The request left no space for a reply.
    NoRoom(Overflow),
    /// The window ended inside the reply before its output limit did, or the provider reports this.
    WindowEnded(Overflow),
    /// An empty reply without usage (LM Studio).
    Nothing,
}

/// Known facts besides the reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplyContext {
    /// The window.
    pub window: Option<Tokens>,
    /// The output limit of the request or, if it had none, the tokens reserved for the reply. A longer
    /// reply did not end because of the request's size.
    pub max_output: Option<Tokens>,
    /// The estimated tokens of the request, based on the usage of the request before it.
    pub estimate: Option<Tokens>,
    /// The tokens of the request before it.
    pub previous: Option<Tokens>,
}

/// Detects a silent overflow. The most reliable sign comes first.
#[must_use]
pub fn detect(reply: &Reply, known: &ReplyContext) -> Option<Silent> {
    let Some(usage) = reply.usage else {
        return match reply.stop {
            StopReason::Window => Some(Silent::WindowEnded(Overflow {
                window: known.window,
                ..Overflow::default()
            })),
            _ => reply.parts.is_empty().then_some(Silent::Nothing),
        };
    };
    no_room(reply, &usage, known)
        .or_else(|| window_ended(reply, &usage, known))
        .or_else(|| over_window(&usage, known))
        .or_else(|| input_cut(&usage, known))
}

/// Detects more input than the window.
fn over_window(usage: &Usage, known: &ReplyContext) -> Option<Silent> {
    let over = usage.processed() > known.window?;
    over.then(|| Silent::OverWindow(overflow(usage, known)))
}

/// Detects no output together with at least 99 % of the window read.
fn no_room(reply: &Reply, usage: &Usage, known: &ReplyContext) -> Option<Silent> {
    let window = known.window?;
    let empty = usage.output == Tokens::ZERO || reply.parts.is_empty();
    let full = wide(usage.processed()) * 100 >= wide(window) * 99;
    (empty && full).then(|| Silent::NoRoom(overflow(usage, known)))
}

/// Detects a reply that ended with the window, or because of its length below the output limit, within
/// 1 % of the window.
fn window_ended(reply: &Reply, usage: &Usage, known: &ReplyContext) -> Option<Silent> {
    if reply.stop == StopReason::Window {
        return Some(Silent::WindowEnded(overflow(usage, known)));
    }
    let window = known.window?;
    let below = known.max_output.is_none_or(|limit| usage.output < limit);
    // If the total is far above the assumed window, the reply ended for another reason.
    let total = wide(usage.total_tokens()) * 100;
    let full = total >= wide(window) * 99 && total <= wide(window) * 101;
    (reply.stop == StopReason::Length && below && full)
        .then(|| Silent::WindowEnded(overflow(usage, known)))
}

/// Detects an input of less than 70 % of the estimate although the request grew.
fn input_cut(usage: &Usage, known: &ReplyContext) -> Option<Silent> {
    let (sent, previous) = (known.estimate?, known.previous?);
    let read = usage.processed();
    let can_be = sent >= LEAST_CUT && read >= LEAST_READ;
    let cut = can_be && sent > previous && wide(read) * 100 < wide(sent) * 70;
    cut.then_some(Silent::InputCut { read, sent })
}

fn overflow(usage: &Usage, known: &ReplyContext) -> Overflow {
    Overflow {
        used: Some(usage.processed()),
        window: known.window,
        output: Some(usage.output),
        excess: None,
    }
}

/// Widens a count for multiplication.
fn wide(tokens: Tokens) -> u128 {
    u128::from(tokens.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::Part;

    fn reply(input: u64, output: u64, stop: StopReason) -> Reply {
        Reply {
            parts: if output > 0 {
                vec![Part::text("x")]
            } else {
                Vec::new()
            },
            stop,
            usage: Some(Usage {
                input: Tokens(input),
                output: Tokens(output),
                ..Usage::default()
            }),
            model: None,
        }
    }

    #[test]
    fn signs_of_a_silent_overflow() {
        let known = ReplyContext {
            window: Some(Tokens(4096)),
            max_output: Some(Tokens(1000)),
            estimate: Some(Tokens(3000)),
            previous: Some(Tokens(2500)),
        };
        let kind = |input, output, stop| match detect(&reply(input, output, stop), &known) {
            None => "none",
            Some(Silent::OverWindow(_)) => "over",
            Some(Silent::InputCut { .. }) => "cut",
            Some(Silent::NoRoom(_)) => "no room",
            Some(Silent::WindowEnded(_)) => "ended",
            Some(Silent::Nothing) => "nothing",
        };
        for (input, output, stop, expected) in [
            (3000, 10, StopReason::Stop, "none"),
            (2100, 10, StopReason::Stop, "none"),
            // Too small to be a real report.
            (100, 10, StopReason::Stop, "none"),
            (0, 10, StopReason::Stop, "none"),
            // Ollama keeps half of the window and two.
            (2050, 10, StopReason::Stop, "cut"),
            (4097, 10, StopReason::Stop, "over"),
            (4090, 0, StopReason::Length, "no room"),
            (3600, 496, StopReason::Length, "ended"),
            // The output limit explains it.
            (3090, 1000, StopReason::Length, "none"),
            (3000, 400, StopReason::Length, "none"),
            // Xiaomi reports it like this.
            (4060, 0, StopReason::Length, "no room"),
            (4050, 0, StopReason::Length, "none"),
            // No output, but there was space.
            (3000, 0, StopReason::Stop, "none"),
            // The provider reports it, whatever the assumed window.
            (2900, 300, StopReason::Window, "ended"),
            (9000, 300, StopReason::Window, "ended"),
            // The window was not the reason.
            (4000, 600, StopReason::Length, "none"),
            (9000, 500, StopReason::Length, "over"),
            // The server read and answered all of it, as z.ai does.
            (4500, 200, StopReason::Stop, "over"),
            (4090, 6, StopReason::Stop, "none"),
            (4090, 6, StopReason::ToolCalls, "none"),
        ] {
            assert_eq!(kind(input, output, stop), expected, "{input} {output}");
        }
    }

    #[test]
    fn nothing_is_known_and_nothing_is_found() {
        for (input, output, stop) in [
            (1, 10, StopReason::Stop),
            (1_000_000, 0, StopReason::Length),
            (4_000, 96, StopReason::Length),
        ] {
            let found = detect(&reply(input, output, stop), &ReplyContext::default());
            assert_eq!(found, None, "{input} {output}");
        }
    }

    #[test]
    fn a_smaller_request_that_reads_less_is_no_cut() {
        let known = ReplyContext {
            estimate: Some(Tokens(3000)),
            previous: Some(Tokens(9000)),
            ..ReplyContext::default()
        };
        assert_eq!(detect(&reply(2000, 1, StopReason::Stop), &known), None);
    }

    #[test]
    fn a_small_request_is_never_cut() {
        let known = ReplyContext {
            estimate: Some(Tokens(2_000)),
            previous: Some(Tokens(600)),
            ..ReplyContext::default()
        };
        assert_eq!(detect(&reply(700, 1, StopReason::Stop), &known), None);
    }

    #[test]
    fn nothing_at_all_is_a_sign() {
        let mut nothing = reply(0, 0, StopReason::Stop);
        nothing.usage = None;
        assert_eq!(
            detect(&nothing, &ReplyContext::default()),
            Some(Silent::Nothing)
        );
    }
}
