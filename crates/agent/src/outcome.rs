//! [`Outcome`]: how a run ended and how much it used.
//!
//! A failed run has an outcome as well, and its session can be continued.

use plimsoll_context::{CannotFit, Part, Tokens, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::doom_loop::Repetition;
use crate::failure::Failure;
use crate::limits::LimitKind;
use crate::spend::{Cost, is_default};

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The reason why the run ended.
    pub reason: EndReason,
    /// The answer. If a limit ended the run and the model could sum up, its summary. If a user, a hook
    /// or another limit ended it, the text so far, followed by a sentence in brackets with the
    /// reason; see [`EndReason::is_answer`].
    pub text: String,
    /// Answered model calls.
    pub turns: u64,
    /// Executed tool calls, including those of sub-agents.
    pub tool_calls: u64,
    /// Applied plans.
    pub plans: u64,
    /// Tokens freed by these plans.
    pub freed: Tokens,
    /// The usage of the run, including summaries.
    #[serde(rename = "usage")]
    pub tokens_used: Usage,
    /// The part of the usage that belongs to summaries; their model may have other prices.
    #[serde(default, skip_serializing_if = "is_default")]
    pub summary_usage: Usage,
    /// Estimated usage of the calls for which the provider reported none. Not part of `tokens_used`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub estimated: Usage,
    /// The total cost, including summaries and sub-agents.
    pub cost: Cost,
    /// Queued messages that were not delivered before the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undelivered: Vec<Vec<Part>>,
    /// `true` if the view was restored to its state before the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolled_back: bool,
}

impl Outcome {
    /// Returns the outcome of a run that was answered after one turn, and used nothing.
    #[must_use]
    pub fn answered(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            turns: 1,
            ..Self::default()
        }
    }
}

/// The reason why a run ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoStaticStr, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The model answered without calling tools.
    #[default]
    Answered,
    /// An input filter or a hook rejected the input, or `check_answer` did not accept the answer.
    Refused {
        /// The name of the hook, or `input_filter`.
        by: String,
        /// The reason.
        why: String,
    },
    /// The model repeated itself. The task is not finished.
    DoomLoop {
        /// Number of consecutive repetitions; for a cycle, the number of batches in all its rounds.
        times: u64,
        /// The kind of repetition.
        kind: Repetition,
    },
    /// The run was interrupted.
    Interrupted,
    /// A model call failed.
    Failed {
        /// The failure.
        failure: Failure,
    },
    /// The run was to be continued, but the session has no message yet.
    NothingToDo,
    /// Even the protected messages alone exceed the budget.
    CannotFit {
        /// The sizes, in the provider's tokens.
        cannot_fit: CannotFit,
    },
    /// A limit was reached. In JSON, the kind is the reason: `max_turns`, for example.
    #[serde(untagged)]
    Limit {
        /// The limit.
        #[serde(rename = "reason")]
        kind: LimitKind,
        /// The used amount. Earlier logs contain only the allowed one.
        #[serde(default)]
        used: u64,
        /// The allowed amount.
        #[serde(alias = "limit_ms")]
        limit: u64,
    },
}

impl EndReason {
    /// Returns `true` if the run ended with an answer.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Answered)
    }

    /// Returns `true` if a limit ended the run.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit { .. } | Self::DoomLoop { .. })
    }

    /// Returns the reason as one word, for scripts.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Limit { kind, .. } => kind.into(),
            other => other.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_earlier_logs_are_read() {
        for (json, kind, limit) in [
            (
                r#"{"reason":"max_turns","limit":2}"#,
                LimitKind::MaxTurns,
                2,
            ),
            (
                r#"{"reason":"max_duration","limit_ms":500}"#,
                LimitKind::MaxDuration,
                500,
            ),
        ] {
            let reason: EndReason = serde_json::from_str(json).unwrap();
            let used = 0;
            assert_eq!(reason, EndReason::Limit { kind, used, limit });
        }
        for (name, kind) in [
            ("turns", LimitKind::MaxTurns),
            ("tool_calls", LimitKind::ToolLimit),
        ] {
            let read: LimitKind = serde_json::from_value(name.into()).unwrap();
            assert_eq!(read, kind);
        }
    }
}
