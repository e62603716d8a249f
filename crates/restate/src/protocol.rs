//! The messages sent through Restate: requests and their short replies.

use std::time::Duration;

use plimsoll_agent::{Answer, Entry, ExecutionLimits, LimitOverrides};
use plimsoll_context::{Money, Tokens};
use plimsoll_store::OpenQuestion;
use serde::{Deserialize, Serialize};

/// The virtual object whose keys are the names of sessions.
pub const SERVICE: &str = "plimsoll";
/// The version of the requests. A worker refuses newer ones.
pub const FORMAT: u32 = 1;

/// A request to run a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequest {
    /// The version of the request: [`FORMAT`].
    pub format: u32,
    /// Identifies the request permanently: it is stored in the session's log, and a request with
    /// the same key is not run again. `None` uses the id of the invocation.
    #[serde(default)]
    pub key: Option<String>,
    /// The user's message.
    pub prompt: String,
    /// The limits of the run. They can tighten the worker's own limits, but not loosen them.
    #[serde(default)]
    pub limits: RunLimits,
}

/// The limits of one run. `None` uses the worker's limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// Maximum number of model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// Maximum number of tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<Tokens>,
    /// Maximum duration in milliseconds, from the beginning of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_ms: Option<u64>,
    /// Maximum cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
    /// Maximum number of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u64>,
}

/// The result of a run that has ended. Its details are in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReply {
    /// The name of the session.
    pub session: String,
    /// The number of entries in its log.
    pub entries: u64,
    /// The reason why the run ended, in a word.
    pub reason: String,
}

/// A message to the active run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRequest {
    /// The sender's id for the message. A message with the same id is delivered once, however often
    /// it is sent.
    pub id: String,
    /// The text; not needed for an interrupt.
    #[serde(default)]
    pub text: String,
}

/// An answer to a question of the active run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The key of the question: see [`OpenQuestion::key`].
    pub key: String,
    /// The decision.
    #[serde(flatten)]
    pub answer: Answer,
}

/// The status of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// The key of the active run's request, if any.
    pub run: Option<String>,
    /// The number of entries in its log.
    pub entries: u64,
    /// The calls that wait for approval.
    pub questions: Vec<OpenQuestion>,
}

/// A request for the entries of a log after a given entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsRequest {
    /// The entry's number; 0 for all.
    pub after: u64,
    /// The maximum time to wait for new entries, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
    /// The number of known open questions. A different number counts as new.
    #[serde(default)]
    pub questions: usize,
}

/// A page of entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsReply {
    /// Entries with their numbers. Texts of tools are shortened as in live events.
    pub entries: Vec<(u64, Entry)>,
    /// The calls that wait for approval.
    pub questions: Vec<OpenQuestion>,
}

impl RunLimits {
    /// Combines these limits with a worker's own; the tighter one applies.
    pub(crate) fn within(&self, own: &ExecutionLimits) -> LimitOverrides {
        fn least<T: Ord>(asked: Option<T>, own: Option<T>) -> Option<Option<T>> {
            let asked = asked?;
            Some(Some(match own {
                Some(own) => asked.min(own),
                None => asked,
            }))
        }
        let duration = self.max_duration_ms.map(Duration::from_millis);
        LimitOverrides {
            max_turns: self.max_turns.map(|turns| turns.min(own.max_turns)),
            max_total_tokens: least(self.max_total_tokens, own.max_total_tokens),
            max_duration: least(duration, own.max_duration),
            max_cost: least(self.max_cost, own.max_cost),
            max_tool_calls: least(self.max_tool_calls, own.max_tool_calls),
            ..LimitOverrides::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_can_tighten_limits_and_not_loosen_them() {
        let own = ExecutionLimits {
            max_turns: 10,
            max_total_tokens: Some(Tokens(1_000)),
            max_tool_calls: None,
            ..ExecutionLimits::default()
        };
        let asked = RunLimits {
            max_turns: Some(50),
            max_total_tokens: Some(Tokens(500)),
            max_tool_calls: Some(3),
            ..RunLimits::default()
        };
        let limits = asked.within(&own).over(&own);
        assert_eq!(limits.max_turns, 10);
        assert_eq!(limits.max_total_tokens, Some(Tokens(500)));
        assert_eq!(limits.max_tool_calls, Some(3));
        assert_eq!(limits.max_duration, own.max_duration);
    }
}
