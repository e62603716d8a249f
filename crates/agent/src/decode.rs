//! Reads a batch of tool calls as a whole before any of them runs: finds the tools, parses the
//! arguments, and checks whether the calls may run.
//!
//! `tool_calls.rs` runs the calls, and gives results to those that may not run.

use std::collections::HashSet;
use std::sync::Arc;

use plimsoll_context::ToolCall;
use serde_json::{Map, Value};

use crate::arguments::{fit, misfits, read_arguments};
use crate::batch::{BatchCall, MAX_BATCH};
use crate::call_hashes::identity;
use crate::call_target::CallTarget;
use crate::doom_loop::LoopVerdict;
use crate::event::Event;
use crate::hook_input::HookPoint;
use crate::notice;
use crate::permission::{Permission, PermissionMode};
use crate::setup::{KnownTool, Setup};
use crate::state::State;
use crate::step::Approver;
use crate::tool_names::{NameMatch, ToolNames};

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
    pub(crate) instead: Option<NotRun>,
}

/// The reason why a call does not run.
#[derive(Debug, Clone)]
pub(crate) enum NotRun {
    /// The call is faulty.
    Refused(String),
    /// The call is not faulty.
    Skipped(String),
}

/// The decision about a call.
pub(crate) enum CallDecision {
    Runs(PreparedCall),
    Not(NotRun),
}

/// A call without a result, with the decision about it.
pub(crate) struct DecodedCall {
    pub(crate) call: Arc<ToolCall>,
    pub(crate) decision: CallDecision,
    /// The corrections of its name and arguments.
    pub(crate) corrections: Vec<Event>,
}

/// Reads a whole batch before any of its calls runs.
///
/// It does not see the run: the caller reports the corrections and gives the results.
pub(crate) struct BatchReader<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) state: &'a State,
    /// The severity of the model's current repetition.
    pub(crate) looping: LoopVerdict,
    /// No tool may be called any more.
    pub(crate) is_last: bool,
}

impl BatchReader<'_> {
    /// Returns the calls without a result. The decision about a call may depend on earlier calls, and is
    /// repeated after a crash; calls with a result are therefore read as well.
    pub(crate) fn read(&self) -> Vec<DecodedCall> {
        let batch = self.state.batch.iter();
        let calls = batch.flat_map(|batch| batch.calls()).enumerate();
        // The arguments of calls beyond the maximum are not needed.
        let calls = calls.map(|(at, call)| {
            let arguments = read_arguments(&call.call.arguments);
            (call, arguments.map(|read| (at < MAX_BATCH).then_some(read)))
        });
        let calls: Vec<_> = calls.collect();
        let all_read = calls.iter().all(|(_, arguments)| arguments.is_ok());
        let mut seen = HashSet::new();
        let mut decoded = Vec::new();
        for (BatchCall { call, result, .. }, arguments) in calls {
            let mut corrections = Vec::new();
            let decision = match (arguments, self.looping) {
                _ if self.is_last => CallDecision::skipped(notice::NO_TOOLS_NOW),
                (Err(why), _) => CallDecision::refused(notice::unreadable(call, &why)),
                (_, LoopVerdict::Refuse(kind)) => {
                    CallDecision::refused(notice::repeated_call(kind))
                }
                _ if !all_read => CallDecision::refused(notice::BATCH_UNREADABLE),
                (Ok(None), _) => CallDecision::skipped(notice::over_batch()),
                (Ok(Some(arguments)), _) => {
                    self.decide(call, arguments, &mut seen, &mut corrections)
                }
            };
            if result.is_none() {
                decoded.push(DecodedCall {
                    call: Arc::clone(call),
                    decision,
                    corrections,
                });
            }
        }
        decoded
    }

    fn decide(
        &self,
        call: &ToolCall,
        mut arguments: Map<String, Value>,
        seen: &mut HashSet<u64>,
        corrections: &mut Vec<Event>,
    ) -> CallDecision {
        let names = &self.state.facts.names;
        let Some(tool) = tool_of(self.setup, names, call) else {
            let names: Vec<&str> = names.iter().collect();
            return CallDecision::refused(notice::unknown_tool(&call.name, &names));
        };
        let name = &tool.spec.name;
        let written = arguments.clone();
        fit(&tool.spec.schema, &mut arguments);
        let faults = misfits(&tool.spec.schema, &arguments);
        if !faults.is_empty() {
            return CallDecision::refused(notice::misfits(name, &faults));
        }
        let is_changed = arguments != written || is_text(&call.arguments);
        let arguments = Value::Object(arguments);
        let prepared = ToolCall {
            id: call.id.clone(),
            name: name.clone(),
            arguments: if is_changed {
                arguments.to_string()
            } else {
                call.arguments.clone()
            },
            opaque: call.opaque.clone(),
        };
        let is_new = seen.insert(identity(&prepared));
        if call.name != *name {
            corrections.push(Event::ToolCallRepaired {
                call: call.id.clone(),
                from: call.name.clone(),
                to: name.clone(),
            });
        }
        if !is_new && self.setup.limits.identical_tool_calls().is_some() {
            return CallDecision::refused(notice::SAME_CALL);
        }
        match permit(self.setup, tool, prepared, &arguments) {
            Ok(prepared) => CallDecision::Runs(prepared),
            Err(instead) => CallDecision::Not(instead),
        }
    }
}

/// Checks a call of this tool against the rules, and determines its approver.
fn permit(
    setup: &Setup,
    tool: &KnownTool,
    call: ToolCall,
    arguments: &Value,
) -> Result<PreparedCall, NotRun> {
    let name = &tool.spec.name;
    let target = tool.target.of(arguments);
    let asks = match setup.permissions.decide(name, arguments, &target) {
        Some(Permission::Deny) => return Err(NotRun::Refused(notice::denied(name, &target))),
        Some(Permission::Ask) => Some(true),
        Some(Permission::Allow) => None,
        None => (tool.asks || tool.edits_files).then_some(tool.asks),
    };
    let asks = match (asks, setup.permissions.mode()) {
        (None, _) | (_, PermissionMode::Yes) => false,
        (Some(_), PermissionMode::ReadOnly) => {
            return Err(NotRun::Refused(notice::read_only(name)));
        }
        (Some(_), PermissionMode::Ask) => true,
        (Some(asks), PermissionMode::AutoEdit) => asks,
    };
    let hook = setup.hooks.contains(&HookPoint::BeforeToolExecution);
    let whom = match (asks, hook) {
        (true, true) => Some(Approver::Both),
        (true, false) => Some(Approver::Gate),
        (false, true) => Some(Approver::Hook),
        (false, false) => None,
    };
    Ok(PreparedCall {
        call,
        whom,
        is_protected: matches!(&target, CallTarget::Path(path) if path.is_protected),
        instead: None,
    })
}

/// Checks a call whose arguments a hook has rewritten. The hook is not asked again, the gate is.
pub(crate) fn check_rewritten(
    setup: &Setup,
    names: &ToolNames,
    call: &ToolCall,
) -> Result<PreparedCall, NotRun> {
    let mut arguments = read_arguments(&call.arguments)
        .map_err(|why| NotRun::Refused(notice::unreadable(call, &why)))?;
    let Some(tool) = tool_of(setup, names, call) else {
        let names: Vec<&str> = names.iter().collect();
        return Err(NotRun::Refused(notice::unknown_tool(&call.name, &names)));
    };
    fit(&tool.spec.schema, &mut arguments);
    let arguments = Value::Object(arguments);
    let call = ToolCall {
        arguments: arguments.to_string(),
        ..call.clone()
    };
    let prepared = permit(setup, tool, call, &arguments)?;
    let whom = match prepared.whom {
        Some(Approver::Both | Approver::Gate) => Some(Approver::Gate),
        Some(Approver::Hook) | None => None,
    };
    Ok(PreparedCall { whom, ..prepared })
}

/// Returns the tool of a call, if there is one.
pub(crate) fn tool_of<'a>(
    setup: &'a Setup,
    names: &ToolNames,
    call: &ToolCall,
) -> Option<&'a KnownTool> {
    let name = match names.resolve(&call.name) {
        NameMatch::Known => call.name.as_str(),
        NameMatch::Repaired(name) => name,
        NameMatch::Unknown => return None,
    };
    setup.tools.iter().find(|tool| tool.spec.name == name)
}

/// Checks whether the arguments were written as a string of JSON.
fn is_text(arguments: &str) -> bool {
    arguments.trim_start().starts_with('"')
}

impl CallDecision {
    fn refused(why: impl Into<String>) -> Self {
        Self::Not(NotRun::Refused(why.into()))
    }

    fn skipped(why: impl Into<String>) -> Self {
        Self::Not(NotRun::Skipped(why.into()))
    }
}
