//! The messages sent through Restate: requests and their short replies.

use plimsoll_agent::{Answer, Entry, ExecutionLimits};
use plimsoll_store::OpenQuestion;
use serde::{Deserialize, Serialize};

/// The virtual object whose keys are the names of sessions.
pub const SERVICE: &str = "plimsoll";
/// The version of the requests. A worker refuses newer ones.
pub const FORMAT: u32 = 2;

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
    pub limits: ExecutionLimits,
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
