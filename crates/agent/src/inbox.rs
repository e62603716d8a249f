//! Messages that are queued for a run: steers for its next model call, and follow-ups for the time
//! after its answer.
//!
//! Each message is logged when it arrives, and is later either delivered or dropped.

use plimsoll_context::Part;
use serde::{Deserialize, Serialize};

use crate::entry::Waiting;

/// Maximum number of queued messages. Further ones are rejected with a warning.
pub const MAX_WAITING: usize = 64;

/// The way in which queued messages are delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    /// All messages together.
    #[default]
    All,
    /// Only the oldest message; the others wait for the next time.
    OneAtATime,
}

/// A queued message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueuedMessage {
    pub(crate) id: u64,
    pub(crate) kind: Waiting,
    pub(crate) parts: Vec<Part>,
}
