//! [`ToolQueue`]: the tool calls of a message that this process is handling, and
//! [`ToolExecutionStrategy`], how many of them run at the same time. Results are always in call order.
//!
//! It knows which call may start next. It does not see the run: results and events are made in
//! `tool_calls.rs`.

use std::collections::{HashMap, VecDeque};

use plimsoll_context::{CallId, ToolCall};
use serde::{Deserialize, Serialize};

use crate::step::Question;

/// Upper bound for the configured number of parallel tool calls. Each may hold a process or a
/// connection.
pub const MAX_PARALLEL_TOOLS: usize = 64;
/// The number of tool calls of one message that run at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolExecutionStrategy {
    /// One after the other.
    #[default]
    Sequential,
    /// All of them, up to [`MAX_PARALLEL_TOOLS`].
    Parallel,
    /// This number of calls.
    Batched(usize),
}

impl ToolExecutionStrategy {
    /// Returns the number for `max_parallel_tools`.
    ///
    /// # Errors
    /// If the number is 0 or above [`MAX_PARALLEL_TOOLS`]. The error states the valid range.
    pub fn max_parallel_tools(self) -> Result<usize, String> {
        match self {
            Self::Sequential => Ok(1),
            Self::Parallel => Ok(MAX_PARALLEL_TOOLS),
            Self::Batched(calls) if (1..=MAX_PARALLEL_TOOLS).contains(&calls) => Ok(calls),
            Self::Batched(calls) => Err(format!(
                "tool_execution is batched({calls}); choose 1 to {MAX_PARALLEL_TOOLS} calls at once"
            )),
        }
    }
}

/// The tool calls that this process is handling.
#[derive(Debug, Default)]
pub(crate) struct ToolQueue {
    /// Calls that have not been started, in call order. Approved ones come first.
    pub(crate) ready: VecDeque<Question>,
    /// Calls that wait for approval.
    pub(crate) asking: HashMap<CallId, Question>,
    /// Calls that are running.
    pub(crate) running: HashMap<CallId, ToolCall>,
}

impl ToolQueue {
    /// Returns `true` if no call is waiting or running.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.asking.is_empty() && self.ready.is_empty()
    }

    /// Takes the next call, if fewer than `slots` calls are running or wait for approval. No more calls wait
    /// for approval than are `left`.
    pub(crate) fn next(&mut self, slots: usize, left: u64) -> Option<Question> {
        let asking = self.asking.len();
        let is_free = asking == 0 || (asking as u64) < left;
        let is_free = is_free && self.running.len() + asking < slots;
        is_free.then(|| self.ready.pop_front()).flatten()
    }
}
