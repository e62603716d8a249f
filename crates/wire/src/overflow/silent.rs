//! Overflows that no error tells of: a server cut the history, or the window ended inside the
//! reply. Pure functions over what was reported; what to do about it is not decided here.

use plimsoll_context::{Reply, StopReason, Tokens, Usage};

use super::Overflow;

/// What a reply shows that its provider did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silent {
    /// More was read than the window holds: the window is larger than thought, or the rest was
    /// dropped while it was read.
    OverWindow(Overflow),
    /// Much less was read than was sent: the beginning was dropped.
    InputCut {
        /// What was read.
        read: Tokens,
        /// What was sent, by estimate.
        sent: Tokens,
    },
    /// The request left no room for a reply.
    NoRoom(Overflow),
    /// The window ended inside the reply, before its output limit did.
    WindowEnded(Overflow),
    /// A reply with nothing in it and no usage (LM Studio answers so).
    Nothing,
}

/// What is known besides the reply.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known {
    /// The window.
    pub window: Option<Tokens>,
    /// The output limit of the request.
    pub max_output: Option<Tokens>,
    /// The request by estimate, calibrated by what was reported before.
    pub estimate: Option<Tokens>,
    /// What the request before this one was reported to take.
    pub previous: Option<Tokens>,
}

/// Looks for a silent overflow; the surest sign first.
#[must_use]
pub fn detect(reply: &Reply, known: &Known) -> Option<Silent> {
    let Some(usage) = reply.usage else {
        return reply.parts.is_empty().then_some(Silent::Nothing);
    };
    over_window(&usage, known)
        .or_else(|| no_room(reply, &usage, known))
        .or_else(|| window_ended(reply, &usage, known))
        .or_else(|| input_cut(&usage, known))
}

/// More input than the window.
fn over_window(usage: &Usage, known: &Known) -> Option<Silent> {
    let over = usage.processed() > known.window?;
    over.then(|| Silent::OverWindow(overflow(usage, known)))
}

/// Nothing written, and 99 % of the window or more read.
fn no_room(reply: &Reply, usage: &Usage, known: &Known) -> Option<Silent> {
    let window = known.window?;
    let empty = usage.output == Tokens::ZERO || reply.parts.is_empty();
    let full = wide(usage.processed()) * 100 >= wide(window) * 99;
    (empty && full).then(|| Silent::NoRoom(overflow(usage, known)))
}

/// Stopped for length, below the output limit, within 1 % of the window.
fn window_ended(reply: &Reply, usage: &Usage, known: &Known) -> Option<Silent> {
    let window = known.window?;
    let below = known.max_output.is_none_or(|limit| usage.output < limit);
    let full = wide(usage.total_tokens()) * 100 >= wide(window) * 99;
    (reply.stop == StopReason::Length && below && full)
        .then(|| Silent::WindowEnded(overflow(usage, known)))
}

/// Less than 70 % of the estimate read although the request grew.
fn input_cut(usage: &Usage, known: &Known) -> Option<Silent> {
    let (sent, previous) = (known.estimate?, known.previous?);
    let read = usage.processed();
    let cut = sent > previous && wide(read) * 100 < wide(sent) * 70;
    cut.then_some(Silent::InputCut { read, sent })
}

fn overflow(usage: &Usage, known: &Known) -> Overflow {
    Overflow {
        used: Some(usage.processed()),
        window: known.window,
        output: Some(usage.output),
        excess: None,
    }
}

/// Room for a product.
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
        let known = Known {
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
            // Ollama keeps half of the window and two.
            (2050, 10, StopReason::Stop, "cut"),
            (4097, 10, StopReason::Stop, "over"),
            (4090, 0, StopReason::Length, "no room"),
            (3600, 496, StopReason::Length, "ended"),
            // The output limit explains it.
            (3090, 1000, StopReason::Length, "none"),
            (3000, 400, StopReason::Length, "none"),
        ] {
            assert_eq!(kind(input, output, stop), expected, "{input} {output}");
        }
    }

    #[test]
    fn a_smaller_request_that_reads_less_is_no_cut() {
        let known = Known {
            estimate: Some(Tokens(3000)),
            previous: Some(Tokens(9000)),
            ..Known::default()
        };
        assert_eq!(detect(&reply(2000, 1, StopReason::Stop), &known), None);
    }

    #[test]
    fn nothing_at_all_is_a_sign() {
        let mut nothing = reply(0, 0, StopReason::Stop);
        nothing.usage = None;
        assert_eq!(detect(&nothing, &Known::default()), Some(Silent::Nothing));
    }
}
