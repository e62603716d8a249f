//! Reads a batch of tool calls as a whole before any of them runs: finds the tools, parses the
//! arguments, and checks whether the calls may run.
//!
//! Calls that may not run receive their result here. Tools are started elsewhere.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use plimsoll_context::ToolCall;
use serde_json::Value;

use crate::arguments::{Arguments, fit};
use crate::call_target::CallTarget;
use crate::doom_loop::{LoopVerdict, Repetition};
use crate::event::{Event, LoopConsequence};
use crate::identity::identity;
use crate::limits::ExecutionLimits;
use crate::moment::HookPoint;
use crate::notice;
use crate::outcome::EndReason;
use crate::permission::Permission;
use crate::permission_mode::PermissionMode;
use crate::phase::Phase;
use crate::run::Run;
use crate::setup::KnownTool;
use crate::state::Tally;
use crate::step::Approver;
use crate::tool_execution::MAX_BATCH;
use crate::tool_names::NameMatch;
use crate::tool_queue::ToolQueue;

/// A call that may run, with the corrected tool name and arguments.
#[derive(Debug, Clone)]
pub(crate) struct PreparedCall {
    pub(crate) call: ToolCall,
    /// The approver of the call, if it needs approval.
    pub(crate) whom: Option<Approver>,
    /// `true` if the call would change a protected file.
    pub(crate) is_protected: bool,
    /// The result in place of running the call. It waits for an earlier call with the same id, which
    /// would receive it otherwise.
    pub(crate) instead: Option<Instead>,
}

/// The reason why a call does not run.
#[derive(Debug, Clone)]
pub(crate) enum Instead {
    /// The call is faulty.
    Refused(String),
    /// The call is not faulty.
    Skipped(String),
}

/// The decision about a call.
enum CallDecision {
    Runs(PreparedCall),
    Not(Instead),
}

/// A call as the model wrote it.
struct RawCall {
    call: Arc<ToolCall>,
    is_open: bool,
    /// `None` if the arguments are no longer needed.
    arguments: Result<Option<Arguments>, String>,
}

/// The number of calls that may still run.
struct Room {
    limits: Arc<ExecutionLimits>,
    calls: Option<u64>,
    of_tool: HashMap<String, u64>,
    /// The calls of this batch so far.
    seen: HashSet<u64>,
}

impl Run {
    /// Reads a whole batch before any of its calls runs. Calls that cannot run receive their result
    /// now.
    pub(crate) fn decode_batch(&mut self) {
        // A run that is about to end ends for that reason, even if its last answer is a repetition.
        let looping = match self.current.finalizing {
            Some(_) => LoopVerdict::No,
            None => self.looping(),
        };
        match looping {
            LoopVerdict::Stop(kind, times) => {
                self.tell_loop(kind, LoopConsequence::Stopped);
                return self.finish(EndReason::DoomLoop { times, kind });
            }
            LoopVerdict::Refuse(kind) => self.tell_loop(kind, LoopConsequence::Refused),
            LoopVerdict::Nudge(_) | LoopVerdict::No => {}
        }
        let calls = self.written_calls();
        let all_read = calls.iter().all(|call| call.arguments.is_ok());
        let turns_left = self.setup.limits.max_turns > self.state.facts.tally.turns;
        let mut room = Room::new(Arc::clone(&self.setup.limits), &self.state.facts.tally);
        let mut ready = VecDeque::new();
        let mut ids = HashSet::new();
        for RawCall {
            call,
            is_open,
            arguments,
        } in calls
        {
            let decoded = match (arguments, looping) {
                _ if self.current.finalizing.is_some() || !turns_left => {
                    CallDecision::skipped(notice::NO_TOOLS_NOW)
                }
                (Err(why), _) => CallDecision::refused(notice::unreadable(&call, &why)),
                (_, LoopVerdict::Refuse(kind)) => {
                    CallDecision::refused(notice::repeated_call(kind))
                }
                _ if !all_read => CallDecision::refused(notice::BATCH_UNREADABLE),
                (Ok(None), _) => CallDecision::skipped(notice::over_batch()),
                (Ok(Some(arguments)), _) => self.decode(&call, is_open, arguments, &mut room),
            };
            match decoded {
                _ if !is_open => {}
                CallDecision::Runs(prepared) => {
                    ids.insert(call.id.clone());
                    ready.push_back(prepared);
                }
                CallDecision::Not(instead) if ids.contains(&call.id) => {
                    ready.push_back(PreparedCall {
                        call: ToolCall::clone(&call),
                        whom: None,
                        is_protected: false,
                        instead: Some(instead),
                    })
                }
                CallDecision::Not(instead) => self.settle(&call, instead),
            }
        }
        self.phase = Phase::Working(ToolQueue::new(ready));
    }

    /// Returns the severity of the model's current repetition.
    pub(crate) fn looping(&self) -> LoopVerdict {
        let most = self.setup.limits.identical_tool_calls();
        most.map_or(LoopVerdict::No, |most| self.state.doom_loop.looping(most))
    }

    pub(crate) fn tell_loop(&mut self, kind: Repetition, consequence: LoopConsequence) {
        self.notify(Event::LoopDetected { kind, consequence });
    }

    /// Returns the tool of a call, if there is one.
    pub(crate) fn tool_of(&self, call: &ToolCall) -> Option<&KnownTool> {
        let name = match self.state.facts.names.resolve(&call.name) {
            NameMatch::Known => call.name.as_str(),
            NameMatch::Repaired(name) => name,
            NameMatch::Unknown => return None,
        };
        self.setup.tools.iter().find(|tool| tool.spec.name == name)
    }

    /// Returns all calls of the batch, including those with a result. The decision about a call may
    /// depend on earlier calls, and is repeated after a crash.
    fn written_calls(&self) -> Vec<RawCall> {
        let batch = self.state.batch.iter();
        let calls = batch.flat_map(|batch| batch.calls()).enumerate();
        calls
            .map(|(at, call)| RawCall {
                call: Arc::clone(&call.call),
                is_open: call.result.is_none(),
                arguments: Arguments::read(&call.call.arguments)
                    .map(|arguments| (at < MAX_BATCH).then_some(arguments)),
            })
            .collect()
    }

    fn decode(
        &mut self,
        call: &ToolCall,
        is_open: bool,
        arguments: Arguments,
        room: &mut Room,
    ) -> CallDecision {
        let Some(tool) = self.tool_of(call) else {
            let names: Vec<&str> = self.state.facts.names.iter().collect();
            return CallDecision::refused(notice::unknown_tool(&call.name, &names));
        };
        let (name, target) = (tool.spec.name.clone(), tool.target.clone());
        let (asks, edits_files) = (tool.asks, tool.edits_files);
        let fitted = fit(&tool.spec.schema, arguments);
        let arguments = Value::Object(fitted.object);
        let prepared = ToolCall {
            id: call.id.clone(),
            name: name.clone(),
            arguments: match fitted.changes.is_empty() {
                true => call.arguments.clone(),
                false => arguments.to_string(),
            },
            opaque: call.opaque.clone(),
        };
        let is_new = room.seen.insert(identity(&prepared));
        if is_open {
            self.tell_changes(call, &name, fitted.changes);
        }
        if !fitted.faults.is_empty() {
            return CallDecision::refused(notice::unfit(&name, &fitted.faults));
        }
        if !is_new && self.setup.limits.identical_tool_calls().is_some() {
            return CallDecision::refused(notice::SAME_CALL);
        }
        let target = target.of(&arguments);
        let asks = match self.setup.permissions.decide(&name, &arguments, &target) {
            Some(Permission::Deny) => return CallDecision::refused(notice::denied(&name, &target)),
            Some(Permission::Ask) => Some(true),
            Some(Permission::Allow) => None,
            None => (asks || edits_files).then_some(asks),
        };
        let asks = match (asks, self.setup.permissions.mode()) {
            (None, _) | (_, PermissionMode::Yes) => false,
            (Some(_), PermissionMode::ReadOnly) => {
                return CallDecision::refused(notice::read_only(&name));
            }
            (Some(_), PermissionMode::Ask) => true,
            (Some(asks), PermissionMode::AutoEdit) => asks,
        };
        if is_open && let Some(why) = room.take(&name) {
            return CallDecision::skipped(why);
        }
        let hook = self.setup.hooks.contains(&HookPoint::BeforeToolExecution);
        let whom = match (asks, hook) {
            (true, true) => Some(Approver::Both),
            (true, false) => Some(Approver::Gate),
            (false, true) => Some(Approver::Hook),
            (false, false) => None,
        };
        CallDecision::Runs(PreparedCall {
            call: prepared,
            whom,
            is_protected: matches!(&target, CallTarget::Path(path) if path.is_protected),
            instead: None,
        })
    }

    fn tell_changes(&mut self, call: &ToolCall, name: &str, changes: Vec<crate::Coercion>) {
        if call.name != name {
            self.notify(Event::ToolCallRepaired {
                call: call.id.clone(),
                from: call.name.clone(),
                to: name.to_owned(),
            });
        }
        if !changes.is_empty() {
            self.notify(Event::ArgumentsCoerced {
                call: call.id.clone(),
                name: name.to_owned(),
                changes,
            });
        }
    }
}

impl CallDecision {
    fn refused(why: impl Into<String>) -> Self {
        Self::Not(Instead::Refused(why.into()))
    }

    fn skipped(why: impl Into<String>) -> Self {
        Self::Not(Instead::Skipped(why.into()))
    }
}

impl Room {
    fn new(limits: Arc<ExecutionLimits>, tally: &Tally) -> Self {
        let calls = limits.max_tool_calls;
        let of_tool = limits.max_calls_per_tool.iter().map(|(tool, limit)| {
            let used = tally.calls_of.get(tool).copied().unwrap_or_default();
            (tool.clone(), limit.saturating_sub(used))
        });
        Self {
            calls: calls.map(|limit| {
                limit
                    .saturating_sub(tally.tool_calls)
                    .saturating_sub(tally.spent.tool_calls)
            }),
            of_tool: of_tool.collect(),
            limits,
            seen: HashSet::new(),
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
