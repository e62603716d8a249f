//! [`Outcome`]: how a run ended and what it spent. Not an error type: a run that fails has an
//! outcome too, and its session can be carried on.

use plimsoll_context::{CacheTally, CannotFit, Tokens, Usage};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why.
    pub reason: EndReason,
    /// The last text of the model, or a sentence that says why there is none.
    pub text: String,
    /// Model calls that were answered.
    pub turns: u64,
    /// Tool calls that ran.
    pub tool_calls: u64,
    /// Plans that were applied.
    pub plans: u64,
    /// What those plans freed.
    pub freed: Tokens,
    /// What the run spent, summaries included.
    pub usage: Usage,
    /// The part of it that summaries took, whose model may have other prices.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub summary_usage: Usage,
    /// What it expected of the prompt cache, and what it read from it.
    #[serde(default, skip_serializing_if = "CacheTally::is_empty")]
    pub cache: CacheTally,
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The model answered without asking for tools.
    Answered,
    /// All turns were used.
    MaxTurns {
        /// The limit.
        limit: u64,
    },
    /// All tool calls were used.
    ToolLimit {
        /// The limit.
        limit: u64,
    },
    /// The model asked for the same tool calls again and again. The work is not done.
    DoomLoop {
        /// How often in a row it had asked.
        times: u64,
    },
    /// Somebody interrupted it.
    Interrupted,
    /// The model could not be called.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// It was to go on, but nobody has said anything yet.
    NothingToDo,
    /// Not even the protected set fits the budget.
    CannotFit {
        /// What would have to fit where.
        cannot_fit: CannotFit,
    },
}

impl EndReason {
    /// Whether the run ended with what it was asked for.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Answered)
    }

    /// One word for scripts.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::MaxTurns { .. } => "max_turns",
            Self::ToolLimit { .. } => "tool_limit",
            Self::DoomLoop { .. } => "doom_loop",
            Self::Interrupted => "interrupted",
            Self::Failed { .. } => "failed",
            Self::NothingToDo => "nothing_to_do",
            Self::CannotFit { .. } => "cannot_fit",
        }
    }
}
