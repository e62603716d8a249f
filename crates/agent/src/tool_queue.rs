//! [`ToolQueue`]: the tool calls of a message that this process is handling, and
//! [`ToolExecutionStrategy`], how many of them run at the same time. Results are always in call order.
//!
//! It knows which call may start next. It does not see the run: results and events are made in
//! `tool_calls.rs`.

use std::collections::{HashMap, VecDeque};

use plimsoll_context::{CallId, ToolCall};
use serde::{Deserialize, Serialize};

use crate::decode::{NotRun, PreparedCall};
use crate::ledger::Ledger;
use crate::notice;

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
    /// Calls that may run and have not been started, in call order.
    ready: VecDeque<PreparedCall>,
    /// Calls that wait for approval.
    asking: HashMap<CallId, PreparedCall>,
    /// Calls that were approved.
    allowed: VecDeque<PreparedCall>,
    /// Calls that are running.
    running: HashMap<CallId, ToolCall>,
}

impl ToolQueue {
    /// Creates a queue of calls in call order.
    pub(crate) fn new(ready: VecDeque<PreparedCall>) -> Self {
        Self {
            ready,
            ..Self::default()
        }
    }

    /// Returns `true` if no call is waiting or running.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
            && self.asking.is_empty()
            && self.allowed.is_empty()
            && self.ready.is_empty()
    }

    /// Returns the calls that start, wait for approval or get another result now, if at most `slots` calls may be
    /// handled at the same time and the limit of calls leaves some.
    pub(crate) fn start(
        &mut self,
        slots: usize,
        ledger: &Ledger,
    ) -> Vec<(PreparedCall, Option<NotRun>)> {
        let limit = ledger.limits.max_tool_calls.unwrap_or(u64::MAX);
        let taken = (self.asking.len() + self.allowed.len()) as u64;
        let mut left = limit.saturating_sub(ledger.tool_calls.saturating_add(taken));
        let mut next = Vec::new();
        while let Some((prepared, instead)) = self.take(slots, &mut left, limit) {
            let id = prepared.call.id.clone();
            match (&instead, prepared.whom) {
                (Some(_), _) => {}
                (None, Some(_)) => drop(self.asking.insert(id, prepared.clone())),
                (None, None) => drop(self.running.insert(id, prepared.call.clone())),
            }
            next.push((prepared, instead));
        }
        next
    }

    /// Returns the next call to be started or approved, if a slot is free. If no call is left, it
    /// waits for the calls under approval, which may be refused, and is skipped once there are none.
    fn take(
        &mut self,
        slots: usize,
        left: &mut u64,
        limit: u64,
    ) -> Option<(PreparedCall, Option<NotRun>)> {
        if self.running.len() + self.asking.len() >= slots {
            return None;
        }
        if let Some(prepared) = self.allowed.pop_front() {
            return Some((prepared, None));
        }
        if *left == 0 && !self.asking.is_empty() {
            return None;
        }
        let over_limit = (*left == 0).then(|| NotRun::skipped(notice::over_limit(limit)));
        *left = left.saturating_sub(1);
        Some((self.ready.pop_front()?, over_limit))
    }

    /// Removes a running call that has ended.
    pub(crate) fn end(&mut self, id: &CallId) -> Option<ToolCall> {
        self.running.remove(id)
    }

    /// Removes a call that was waiting for approval.
    pub(crate) fn decide(&mut self, id: &CallId) -> Option<PreparedCall> {
        self.asking.remove(id)
    }

    /// Lets an approved call run, or be approved by the next approver.
    pub(crate) fn allow(&mut self, prepared: PreparedCall) {
        self.allowed.push_back(prepared);
    }

    /// Removes the calls that have not been started and returns them.
    pub(crate) fn take_unstarted(&mut self) -> Vec<PreparedCall> {
        let (allowed, ready) = (self.allowed.drain(..), self.ready.drain(..));
        allowed.chain(ready).collect()
    }
}
