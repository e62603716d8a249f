//! [`ToolQueue`]: the tool calls of a message that this process is handling, and
//! [`ToolExecutionStrategy`], how many of them run at the same time. Results are always in call order.
//!
//! It knows which call may start next. It does not see the run: results and events are made in
//! `tool_calls.rs`.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use plimsoll_context::{CallId, ToolCall};
use serde::{Deserialize, Serialize};

use crate::decode::{NotRun, PreparedCall};
use crate::ledger::Ledger;
use crate::limits::ExecutionLimits;
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

/// The number of calls that may still run.
pub(crate) struct CallRoom {
    limits: Arc<ExecutionLimits>,
    calls: Option<u64>,
    of_tool: HashMap<String, u64>,
}

impl CallRoom {
    /// Returns what the limits leave after the calls that have run.
    pub(crate) fn new(ledger: &Ledger) -> Self {
        let limits = Arc::clone(&ledger.limits);
        let of_tool = limits.max_calls_per_tool.iter().map(|(tool, limit)| {
            let used = ledger.calls_of.get(tool).copied().unwrap_or_default();
            (tool.clone(), limit.saturating_sub(used))
        });
        let calls = limits.max_tool_calls;
        Self {
            calls: calls.map(|limit| limit.saturating_sub(ledger.tool_calls)),
            of_tool: of_tool.collect(),
            limits,
        }
    }

    /// Uses up one allowed call. Returns an explanation if none is left.
    fn take(&mut self, tool: &str) -> Option<String> {
        if self.calls == Some(0) {
            let limit = self.limits.max_tool_calls.unwrap_or_default();
            return Some(notice::over_limit(limit));
        }
        if let Some(left) = self.of_tool.get_mut(tool) {
            if *left == 0 {
                let limits = &self.limits.max_calls_per_tool;
                let limit = limits.get(tool).copied().unwrap_or_default();
                return Some(notice::over_tool_limit(tool, limit));
            }
            *left -= 1;
        }
        self.calls = self.calls.map(|left| left - 1);
        None
    }
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
    /// handled at the same time and `room` is left for calls that have not started.
    pub(crate) fn start(
        &mut self,
        slots: usize,
        mut room: CallRoom,
    ) -> Vec<(PreparedCall, Option<NotRun>)> {
        for prepared in self.asking.values().chain(&self.allowed) {
            room.take(&prepared.call.name);
        }
        let mut next = Vec::new();
        while let Some((prepared, instead)) = self.take(slots, &mut room) {
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

    /// Returns the next call to be started or approved, if a slot is free. If no room is left, a call
    /// waits for the calls under approval, which may be refused, and is skipped once there are none.
    fn take(
        &mut self,
        slots: usize,
        room: &mut CallRoom,
    ) -> Option<(PreparedCall, Option<NotRun>)> {
        if self.running.len() + self.asking.len() >= slots {
            return None;
        }
        if let Some(prepared) = self.allowed.pop_front() {
            return Some((prepared, None));
        }
        let over_limit = room.take(&self.ready.front()?.call.name);
        if over_limit.is_some() && !self.asking.is_empty() {
            return None;
        }
        Some((self.ready.pop_front()?, over_limit.map(NotRun::skipped)))
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
