//! The meanings of refusals, one word each.

use plimsoll_context::Tokens;
use plimsoll_wire::overflow::{Overflow, Verdict};

pub(crate) fn over(used: impl Into<Option<u64>>, window: impl Into<Option<u64>>) -> Verdict {
    Verdict::Overflow(Overflow {
        used: used.into().map(Tokens),
        window: window.into().map(Tokens),
        ..Overflow::default()
    })
}

pub(crate) fn over_with_output(used: u64, window: u64, output: u64) -> Verdict {
    Verdict::Overflow(Overflow {
        used: Some(Tokens(used)),
        window: Some(Tokens(window)),
        output: Some(Tokens(output)),
        excess: None,
    })
}

pub(crate) fn over_by(excess: u64) -> Verdict {
    Verdict::Overflow(Overflow {
        excess: Some(Tokens(excess)),
        ..Overflow::default()
    })
}

/// The output limit alone explains it.
pub(crate) fn clamp(used: u64, window: u64) -> Verdict {
    Verdict::OutputTooLarge {
        limit: Tokens(window - used),
        used: Some(Tokens(used)),
        window: Some(Tokens(window)),
    }
}

pub(crate) fn cap(limit: u64) -> Verdict {
    Verdict::OutputTooLarge {
        limit: Tokens(limit),
        used: None,
        window: None,
    }
}

pub(crate) fn soft(limit: u64, requested: u64) -> Verdict {
    Verdict::SoftWindow {
        limit: Tokens(limit),
        requested: Tokens(requested),
    }
}
