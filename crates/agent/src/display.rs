//! One-line texts of the results that a host prints: how a run ended, and what it used.

use std::fmt;

use plimsoll_context::{Money, Usage, counted};

use crate::limits::LimitKind;
use crate::notice::refusal;
use crate::outcome::EndReason;
use crate::spend::{Cost, Spend};

impl fmt::Display for EndReason {
    /// Formats the reason as a short text, such as "Max turns reached (5/5)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered => f.write_str("Answered"),
            Self::Limit { kind, used, limit } => {
                let is_forecast = matches!(kind, LimitKind::MaxTokens | LimitKind::MaxCost);
                let next = if is_forecast && used < limit {
                    ", and the next call would exceed it"
                } else {
                    ""
                };
                let (used, limit) = (kind.amount(*used), kind.amount(*limit));
                write!(f, "Max {} reached ({used}/{limit}{next})", kind.noun())
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
        let turns = counted(self.turns, "turn");
        let calls = counted(self.tool_calls, "tool call");
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
        let calls = counted(self.unpriced, "call");
        match (self.known, self.unpriced) {
            (known, 0) => known.fmt(f),
            (Money(0), _) => write!(f, "{calls} of unknown price"),
            (known, _) => write!(f, "{known} and {calls} of unknown price"),
        }
    }
}
