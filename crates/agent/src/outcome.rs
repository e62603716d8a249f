//! [`Outcome`]: how a run ended and what it spent. Not an error type: a run that fails has an
//! outcome too, and its session can be carried on.

use plimsoll_context::{Bytes, CacheTally, CannotFit, Money, Part, Tokens, Usage};
use serde::{Deserialize, Serialize};

use crate::doom_loop::Repetition;
use crate::failure::Failure;
use crate::spend::Cost;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// What calls took besides whose provider did not say it, by our own count: no part of `usage`.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub estimated: Usage,
    /// What it expected of the prompt cache, and what it read from it.
    #[serde(default, skip_serializing_if = "CacheTally::is_empty")]
    pub cache: CacheTally,
    /// What all of it cost, summaries and sub-agents included.
    #[serde(default)]
    pub cost: Cost,
    /// Messages that waited for the run and came too late for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undelivered: Vec<Vec<Part>>,
    /// The view was put back to what it was before the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolled_back: bool,
}

pub(crate) fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// All tokens were used.
    MaxTokens {
        /// The limit.
        limit: Tokens,
        /// What was used, as the limit counts.
        used: Tokens,
    },
    /// All time was used.
    MaxDuration {
        /// The limit in milliseconds.
        limit_ms: u64,
    },
    /// All money was used.
    MaxCost {
        /// The limit.
        limit: Money,
        /// What was used.
        used: Money,
    },
    /// The run's messages took all memory that they may.
    MaxMemory {
        /// The limit.
        limit: Bytes,
        /// What they took.
        used: Bytes,
    },
    /// An input filter or a hook did not want it.
    Refused {
        /// Who: a hook by its name, or `input_filter`.
        by: String,
        /// Why.
        why: String,
    },
    /// The model went round in circles. The work is not done.
    DoomLoop {
        /// How often in a row it had said or asked the same; in a cycle, how many batches it was long.
        times: u64,
        /// In what it repeated itself.
        #[serde(default)]
        kind: Repetition,
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
        /// The sizes, in the provider's tokens.
        cannot_fit: CannotFit,
    },
}

impl EndReason {
    /// Whether the run ended with what it was asked for.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Answered)
    }

    /// Whether a limit of the run ended it.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(
            self,
            Self::MaxTurns { .. }
                | Self::ToolLimit { .. }
                | Self::MaxTokens { .. }
                | Self::MaxDuration { .. }
                | Self::MaxCost { .. }
                | Self::MaxMemory { .. }
                | Self::DoomLoop { .. }
        )
    }

    /// One word for scripts.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::MaxTurns { .. } => "max_turns",
            Self::ToolLimit { .. } => "tool_limit",
            Self::MaxTokens { .. } => "max_tokens",
            Self::MaxDuration { .. } => "max_duration",
            Self::MaxCost { .. } => "max_cost",
            Self::MaxMemory { .. } => "max_memory",
            Self::Refused { .. } => "refused",
            Self::DoomLoop { .. } => "doom_loop",
            Self::Interrupted => "interrupted",
            Self::Failed { .. } => "failed",
            Self::NothingToDo => "nothing_to_do",
            Self::CannotFit { .. } => "cannot_fit",
        }
    }
}
