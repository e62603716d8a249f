//! Reads a batch of tool calls as a whole before any of them runs: finds the tools, parses the
//! arguments, and checks whether the calls may run.
//!
//! `tool_calls.rs` runs the calls, and gives results to those that may not run.

use std::collections::HashSet;
use std::sync::Arc;

use plimsoll_context::{ToolCall, ToolSpec};
use serde_json::{Map, Value};

use crate::arguments::{fit, misfits, read_arguments};
use crate::batch::{BatchCall, MAX_BATCH};
use crate::call_target::CallTarget;
use crate::doom_loop::identity;
use crate::event::{Event, ToolPhase};
use crate::hook_input::HookPoint;
use crate::notice;
use crate::permission::{Permission, PermissionMode};
use crate::setup::{KnownTool, Setup};
use crate::state::State;
use crate::step::Approver;
use crate::tool_names::ToolNames;

/// A call that may run, with the corrected tool name and arguments.
#[derive(Debug, Clone)]
pub(crate) struct PreparedCall {
    pub(crate) call: ToolCall,
    /// The approver of the call, if it needs approval.
    pub(crate) whom: Option<Approver>,
    /// `true` if the call would change a protected file.
    pub(crate) is_protected: bool,
}

/// The result of a call that does not run.
#[derive(Debug, Clone)]
pub(crate) struct NotRun {
    /// `Error` if the call is faulty, otherwise `Skipped`.
    pub(crate) phase: ToolPhase,
    /// The reason, for the model.
    pub(crate) why: String,
}

/// A call without a result, with the decision about it.
pub(crate) struct DecodedCall {
    pub(crate) call: Arc<ToolCall>,
    pub(crate) decision: Result<PreparedCall, NotRun>,
    /// The correction of its name, if it was corrected.
    pub(crate) correction: Option<Event>,
}

impl NotRun {
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self {
            phase: ToolPhase::Error,
            why: why.into(),
        }
    }

    pub(crate) fn skipped(why: impl Into<String>) -> Self {
        Self {
            phase: ToolPhase::Skipped,
            why: why.into(),
        }
    }
}

/// Reads a whole batch before any of its calls runs, and returns the calls without a result. If
/// `is_repeated` is set, it is a repetition that does not run; if `is_last` is set, no tool may be called
/// any more.
///
/// The decision about a call may depend on earlier calls, and is repeated after a crash; calls with a result are
/// therefore read as well.
pub(crate) fn read_batch(
    setup: &Setup,
    state: &State,
    is_repeated: bool,
    is_last: bool,
) -> Vec<DecodedCall> {
    let batch = state.batch.iter();
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
        let mut correction = None;
        let decision = match arguments {
            _ if is_last => Err(NotRun::skipped(notice::NO_TOOLS_NOW)),
            Err(why) => Err(NotRun::refused(notice::unreadable(call, &why))),
            _ if is_repeated => Err(NotRun::refused(notice::REPEATED_CALL)),
            _ if !all_read => Err(NotRun::refused(notice::BATCH_UNREADABLE)),
            Ok(None) => Err(NotRun::skipped(notice::over_batch())),
            Ok(Some(arguments)) => match correct(setup, &state.facts.names, call, arguments) {
                Ok((tool, corrected, arguments)) => {
                    correction = renamed(call, &corrected);
                    let is_new = seen.insert(identity(&corrected));
                    if !is_new && setup.limits.identical_tool_calls().is_some() {
                        Err(NotRun::refused(notice::SAME_CALL))
                    } else {
                        permit(setup, tool, corrected, &arguments)
                    }
                }
                Err(instead) => Err(instead),
            },
        };
        if result.is_none() {
            decoded.push(DecodedCall {
                call: Arc::clone(call),
                decision,
                correction,
            });
        }
    }
    decoded
}

fn renamed(written: &ToolCall, corrected: &ToolCall) -> Option<Event> {
    (written.name != corrected.name).then(|| Event::ToolCallRepaired {
        call: written.id.clone(),
        from: written.name.clone(),
        to: corrected.name.clone(),
    })
}

/// Finds the tool of a call. Returns it with the call, which has the tool's name and arguments of the types that the
/// tool expects.
fn correct<'a>(
    setup: &'a Setup,
    names: &ToolNames,
    call: &ToolCall,
    mut arguments: Map<String, Value>,
) -> Result<(&'a KnownTool, ToolCall, Value), NotRun> {
    let Some(tool) = tool_of(setup, names, call) else {
        let names: Vec<&str> = names.iter().collect();
        return Err(NotRun::refused(notice::unknown_tool(&call.name, &names)));
    };
    let ToolSpec { name, schema, .. } = &tool.spec;
    let written = arguments.clone();
    fit(schema, &mut arguments);
    let faults = misfits(schema, &arguments);
    if !faults.is_empty() {
        return Err(NotRun::refused(notice::misfits(name, &faults)));
    }
    let is_changed = arguments != written || is_text(&call.arguments);
    let arguments = Value::Object(arguments);
    let mut corrected = ToolCall {
        name: name.clone(),
        ..call.clone()
    };
    if is_changed {
        corrected.arguments = arguments.to_string();
    }
    Ok((tool, corrected, arguments))
}

/// Checks a corrected call against the rules, and determines its approver.
fn permit(
    setup: &Setup,
    tool: &KnownTool,
    call: ToolCall,
    arguments: &Value,
) -> Result<PreparedCall, NotRun> {
    let name = &tool.spec.name;
    let target = tool.target.of(arguments);
    let asks = match setup.permissions.decide(name, arguments, &target) {
        Some(Permission::Deny) => return Err(NotRun::refused(notice::denied(name, &target))),
        Some(Permission::Ask) => Some(true),
        Some(Permission::Allow) => None,
        None => (tool.asks || tool.edits_files).then_some(tool.asks),
    };
    let asks = match (asks, setup.permissions.mode()) {
        (None, _) | (_, PermissionMode::Yes) => false,
        (Some(_), PermissionMode::ReadOnly) => {
            return Err(NotRun::refused(notice::read_only(name)));
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
    })
}

/// Checks a call whose arguments a hook has rewritten. The hook is not asked again, the gate is.
pub(crate) fn check_rewritten(
    setup: &Setup,
    names: &ToolNames,
    call: &ToolCall,
) -> Result<PreparedCall, NotRun> {
    let arguments = read_arguments(&call.arguments)
        .map_err(|why| NotRun::refused(notice::unreadable(call, &why)))?;
    let (tool, call, arguments) = correct(setup, names, call, arguments)?;
    let prepared = permit(setup, tool, call, &arguments)?;
    let asks = matches!(prepared.whom, Some(Approver::Both | Approver::Gate));
    let whom = asks.then_some(Approver::Gate);
    Ok(PreparedCall { whom, ..prepared })
}

/// Returns the tool of a call, if there is one.
pub(crate) fn tool_of<'a>(
    setup: &'a Setup,
    names: &ToolNames,
    call: &ToolCall,
) -> Option<&'a KnownTool> {
    let name = names.resolve(&call.name)?;
    setup.tools.iter().find(|tool| tool.spec.name == name)
}

/// Checks whether the arguments were written as a string of JSON.
fn is_text(arguments: &str) -> bool {
    arguments.trim_start().starts_with('"')
}
