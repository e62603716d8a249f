//! What travels through Restate: requests, and short answers to them.

use std::time::Duration;

use plimsoll_agent::{Answer, Entry, ExecutionLimits, LimitOverrides};
use plimsoll_context::{Money, Tokens};
use plimsoll_store::OpenQuestion;
use serde::{Deserialize, Serialize};

/// The virtual object whose keys are the names of sessions.
pub const SERVICE: &str = "plimsoll";
/// The version of what is sent to it. A worker refuses a newer one.
pub const FORMAT: u32 = 1;

/// What a session is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequest {
    /// See [`FORMAT`].
    pub format: u32,
    /// Names the request for ever: the session's log has it, and a request with the same key is not run
    /// again. `None`: the name of the invocation.
    #[serde(default)]
    pub key: Option<String>,
    /// What is said.
    pub prompt: String,
    /// Limits of the run. They may be tighter than the worker's own, not looser.
    #[serde(default)]
    pub limits: RunLimits,
}

/// Limits of one run; `None` is the worker's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunLimits {
    /// Model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_total_tokens: Option<Tokens>,
    /// Milliseconds, from the beginning of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_ms: Option<u64>,
    /// Money.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Money>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u64>,
}

/// The run has ended; how is in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReply {
    /// The session.
    pub session: String,
    /// The entries of its log.
    pub entries: u64,
    /// Why the run ended, in a word.
    pub reason: String,
}

/// Something said to the run that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The sender's name for it: it is taken once, however often it is sent.
    pub id: String,
    /// What it says; not needed for an interrupt.
    #[serde(default)]
    pub text: String,
}

/// An answer to a question of the run that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The call that is asked about: see [`OpenQuestion::key`].
    pub key: String,
    /// Yes or no.
    #[serde(flatten)]
    pub answer: Answer,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// The key of the request whose run is under way, if any is.
    pub run: Option<String>,
    /// The entries of its log.
    pub entries: u64,
    /// Calls that wait for somebody's yes or no.
    pub questions: Vec<OpenQuestion>,
}

/// Asks for what the log has behind an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsRequest {
    /// The entry's number; 0 for all.
    pub after: u64,
    /// How long to wait for something new.
    #[serde(default)]
    pub wait_ms: u64,
    /// How many open questions are known: another number is something new.
    #[serde(default)]
    pub questions: usize,
}

/// What the log has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventsReply {
    /// Entries with their numbers, texts of tools shortened as in live events.
    pub entries: Vec<(u64, Entry)>,
    /// Calls that wait for somebody's yes or no.
    pub questions: Vec<OpenQuestion>,
}

impl RunLimits {
    /// The tighter of these and a worker's own.
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
