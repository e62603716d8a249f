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
    running: HashMap<CallId, PreparedCall>,
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

    /// Returns the calls that start, wait for approval or are given up now, if at most `slots` calls may be handled
    /// at the same time and `room` is left for calls that have not started.
    pub(crate) fn start(&mut self, slots: usize, mut room: CallRoom) -> Vec<PreparedCall> {
        for prepared in self.asking.values().chain(&self.allowed) {
            room.take(&prepared.call.name);
        }
        let mut next = Vec::new();
        while let Some(prepared) = self.take(slots, &mut room) {
            let handled = match (&prepared.instead, prepared.whom) {
                (Some(_), _) => None,
                (None, Some(_)) => Some(&mut self.asking),
                (None, None) => Some(&mut self.running),
            };
            if let Some(handled) = handled {
                handled.insert(prepared.call.id.clone(), prepared.clone());
            }
            next.push(prepared);
        }
        next
    }

    /// Returns the next call to be started or approved, if a slot is free. If two calls have the same
    /// id, the second waits for the first. If no room is left, a call waits for the calls under approval,
    /// which may be refused, and is skipped once there are none.
    fn take(&mut self, slots: usize, room: &mut CallRoom) -> Option<PreparedCall> {
        if self.running.len() + self.asking.len() >= slots {
            return None;
        }
        if let Some(prepared) = self.allowed.pop_front() {
            return Some(prepared);
        }
        let next = self.ready.front()?;
        if self.holds(&next.call.id) {
            return None;
        }
        let over_limit = match next.instead {
            Some(_) => None,
            None => room.take(&next.call.name),
        };
        if over_limit.is_some() && !self.asking.is_empty() {
            return None;
        }
        let mut next = self.ready.pop_front()?;
        next.instead = next.instead.or(over_limit.map(NotRun::skipped));
        Some(next)
    }

    /// Removes a running call that has ended.
    pub(crate) fn end(&mut self, id: &CallId) -> Option<ToolCall> {
        Some(self.running.remove(id)?.call)
    }

    /// Removes a call that was waiting for approval.
    pub(crate) fn decide(&mut self, id: &CallId) -> Option<PreparedCall> {
        self.asking.remove(id)
    }

    /// Lets an approved call run, or be approved by the next approver.
    pub(crate) fn allow(&mut self, prepared: PreparedCall) {
        self.allowed.push_back(prepared);
    }

    /// Removes the calls that have not been started and returns them. A call with the id of a call in
    /// progress stays, and gets the result `instead` after it.
    pub(crate) fn skip_unstarted(&mut self, instead: &NotRun) -> Vec<PreparedCall> {
        let allowed = std::mem::take(&mut self.allowed);
        let ready = std::mem::take(&mut self.ready);
        let unstarted = allowed.into_iter().chain(ready);
        let (stay, go) = unstarted.partition(|prepared| self.holds(&prepared.call.id));
        self.ready = stay;
        for prepared in &mut self.ready {
            prepared.whom = None;
            prepared.instead.get_or_insert_with(|| instead.clone());
        }
        Vec::from(go)
    }

    /// Checks whether a call with this id is running or waits for approval.
    fn holds(&self, id: &CallId) -> bool {
        self.running.contains_key(id) || self.asking.contains_key(id)
    }
}
