//! One-line texts of the results that a host prints: how a run ended, and what it used.

use std::fmt;
use std::time::Duration;

use plimsoll_context::{Money, Usage};

use crate::notice::{next_does_not_fit, refusal};
use crate::outcome::EndReason;
use crate::spend::{Cost, Spend};

/// A number of things: "1 turn", "2 turns".
pub(crate) struct Counted<'a>(pub(crate) u64, pub(crate) &'a str);

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, noun) = self;
        let ending = if *count == 1 { "" } else { "s" };
        write!(f, "{count} {noun}{ending}")
    }
}

impl fmt::Display for EndReason {
    /// Formats the reason as a short text, such as "Max turns reached (5/5)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered => f.write_str("Answered"),
            Self::MaxTurns { limit } => write!(f, "Max turns reached ({limit}/{limit})"),
            Self::ToolLimit { limit } => write!(f, "Max tool calls reached ({limit}/{limit})"),
            Self::MaxTokens { limit, used } => {
                let next = next_does_not_fit(used < limit);
                write!(f, "Max tokens reached ({used}/{limit}{next})")
            }
            Self::MaxDuration { limit_ms } => {
                let limit = Duration::from_millis(*limit_ms).as_secs_f64();
                write!(f, "Max duration reached ({limit} s)")
            }
            Self::MaxCost { limit, used } => {
                let next = next_does_not_fit(used < limit);
                write!(f, "Max cost reached ({used}/{limit}{next})")
            }
            Self::MaxMemory { limit, used } => {
                write!(f, "Max memory reached ({used}/{limit} bytes)")
            }
            Self::Refused { by, why } => f.write_str(&refusal(by, why)),
            Self::DoomLoop { times, .. } => write!(
                f,
                "The model repeated the same tool calls, {times} messages in a row; the work is not done"
            ),
            Self::Interrupted => f.write_str("Interrupted"),
            Self::Failed { failure } => failure.fmt(f),
            Self::CannotFit { cannot_fit } => cannot_fit.fmt(f),
            Self::NothingToDo => f.write_str("No messages yet"),
        }
    }
}

impl fmt::Display for Spend {
    /// Formats what was used, such as "3 turns, 2 tool calls, read 120 (50 % cached), wrote 40,
    /// $0.0012".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns = Counted(self.turns, "turn");
        let calls = Counted(self.tool_calls, "tool call");
        let usage = self.usage.combine(self.estimated);
        write!(f, "{turns}, {calls}, {usage}, {}", self.cost)?;
        if self.estimated != Usage::default() {
            f.write_str(" (partly estimated)")?;
        }
        Ok(())
    }
}

impl fmt::Display for Cost {
    /// Formats the known part in dollars, and the number of calls whose price is unknown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls = Counted(self.unpriced, "call");
        match (self.known, self.unpriced) {
            (known, 0) => known.fmt(f),
            (Money(0), _) => write!(f, "{calls} of unknown price"),
            (known, _) => write!(f, "{known} and {calls} of unknown price"),
        }
    }
}
