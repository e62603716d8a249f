//! [`ToolQueue`]: the tool calls of a message that this process is handling.
//!
//! It knows which call may start next. It does not see the run: results and events are made in
//! `work.rs`.

use std::collections::{HashMap, VecDeque};

use plimsoll_context::{CallId, ToolCall};

use crate::decode::{Instead, Prepared};
use crate::step::Whom;

/// The tool calls that this process is handling.
#[derive(Debug, Default)]
pub(crate) struct ToolQueue {
    /// Calls that may run and have not been started, in call order.
    ready: VecDeque<Prepared>,
    /// Calls that wait for approval.
    asking: HashMap<CallId, Prepared>,
    /// Calls that were approved.
    allowed: VecDeque<Prepared>,
    /// Calls that are running.
    running: HashMap<CallId, Prepared>,
}

/// A call that left the queue, or began to wait or run.
pub(crate) enum Next {
    /// The call runs now.
    Runs(ToolCall),
    /// Someone has to approve the call.
    Asks {
        call: ToolCall,
        whom: Whom,
        is_protected: bool,
    },
    /// The call does not run and has this result.
    Not(ToolCall, Instead),
}

impl ToolQueue {
    /// Creates a queue of calls in call order.
    pub(crate) fn new(ready: VecDeque<Prepared>) -> Self {
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

    /// Returns the calls that may start or be approved now, if at most `slots` calls may be handled at
    /// the same time.
    pub(crate) fn start(&mut self, slots: usize) -> Vec<Next> {
        let mut next = Vec::new();
        while let Some(mut prepared) = self.take(slots) {
            let call = prepared.call.clone();
            next.push(match (prepared.instead.take(), prepared.whom) {
                (Some(instead), _) => Next::Not(call, instead),
                (None, Some(whom)) => {
                    let is_protected = prepared.is_protected;
                    self.asking.insert(call.id.clone(), prepared);
                    Next::Asks {
                        call,
                        whom,
                        is_protected,
                    }
                }
                (None, None) => {
                    self.running.insert(call.id.clone(), prepared);
                    Next::Runs(call)
                }
            });
        }
        next
    }

    /// Returns the next call to be started or approved, if a slot is free. If two calls have the same
    /// id, the second waits for the first.
    fn take(&mut self, slots: usize) -> Option<Prepared> {
        if self.running.len() + self.asking.len() >= slots {
            return None;
        }
        if let Some(prepared) = self.allowed.pop_front() {
            return Some(prepared);
        }
        match self.holds(&self.ready.front()?.call.id) {
            true => None,
            false => self.ready.pop_front(),
        }
    }

    /// Removes a running call that has ended.
    pub(crate) fn end(&mut self, id: &CallId) -> Option<ToolCall> {
        Some(self.running.remove(id)?.call)
    }

    /// Removes a call that was waiting for approval.
    pub(crate) fn decide(&mut self, id: &CallId) -> Option<Prepared> {
        self.asking.remove(id)
    }

    /// Lets an approved call run.
    pub(crate) fn allow(&mut self, prepared: Prepared) {
        self.allowed.push_back(Prepared {
            whom: None,
            ..prepared
        });
    }

    /// Removes the calls that have not been started and returns them. A call with the id of a call in
    /// progress stays, and gets the result `instead` after it.
    pub(crate) fn skip_unstarted(&mut self, instead: impl Fn() -> Instead) -> Vec<Prepared> {
        let allowed = std::mem::take(&mut self.allowed);
        let ready = std::mem::take(&mut self.ready);
        let mut go = Vec::new();
        for mut prepared in allowed.into_iter().chain(ready) {
            if self.holds(&prepared.call.id) {
                prepared.whom = None;
                prepared.instead.get_or_insert_with(&instead);
                self.ready.push_back(prepared);
            } else {
                go.push(prepared);
            }
        }
        go
    }

    /// Checks whether a call with this id is running or waits for approval.
    fn holds(&self, id: &CallId) -> bool {
        self.running.contains_key(id) || self.asking.contains_key(id)
    }
}
