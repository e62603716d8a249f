//! Reads a batch of tool calls as a whole before any of them runs: finds the tools, parses the
//! arguments, and checks whether the calls may run.
//!
//! `tool_calls.rs` runs the calls, and gives results to those that may not run.

use std::collections::HashSet;
use std::sync::Arc;

use plimsoll_context::{ToolCall, ToolSpec};
use serde_json::{Map, Value};

use crate::arguments::{fit, misfits, read_arguments};
use crate::batch::{BatchCall, CallKey, MAX_BATCH};
use crate::call_target::CallTarget;
use crate::doom_loop::identity;
use crate::event::ToolPhase;
use crate::hook_input::HookPoint;
use crate::notice;
use crate::permission::{Permission, PermissionMode};
use crate::setup::{KnownTool, Setup};
use crate::state::State;
use crate::step::Question;
use crate::tool_names::ToolNames;

/// The result of a call that does not run.
#[derive(Debug, Clone)]
pub(crate) struct NotRun {
    /// `Error` if the call is faulty, otherwise `Skipped`.
    pub(crate) phase: ToolPhase,
    /// The reason, for the model.
    pub(crate) why: String,
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
) -> Vec<(Arc<ToolCall>, Result<Question, NotRun>)> {
    let calls = || state.batch.iter().flat_map(|batch| batch.calls());
    let arguments: Vec<_> = calls()
        .map(|call| read_arguments(&call.call.arguments))
        .collect();
    let all_read = arguments.iter().all(Result::is_ok);
    let finds_loops = setup.limits.identical_tool_calls().is_some();
    let mut seen = HashSet::new();
    let mut decoded = Vec::new();
    for (at, (BatchCall { call, result, .. }, arguments)) in calls().zip(arguments).enumerate() {
        let decision = match arguments {
            _ if is_last => Err(NotRun::skipped(notice::NO_TOOLS_NOW)),
            Err(why) => Err(NotRun::refused(notice::unreadable(call, &why))),
            _ if is_repeated => Err(NotRun::refused(notice::REPEATED_CALL)),
            _ if !all_read => Err(NotRun::refused(notice::BATCH_UNREADABLE)),
            Ok(_) if at >= MAX_BATCH => Err(NotRun::skipped(notice::over_batch())),
            Ok(arguments) => {
                let question = prepare(setup, &state.facts.names, call, arguments);
                match question {
                    Ok(question) if !seen.insert(identity(&question.call)) && finds_loops => {
                        Err(NotRun::refused(notice::SAME_CALL))
                    }
                    question => question,
                }
            }
        };
        if result.is_none() {
            decoded.push((Arc::clone(call), decision));
        }
    }
    decoded
}

/// Finds the tool of a call, whose name the call gets, converts the arguments to the types that the tool expects, and
/// checks the call against the rules.
fn prepare(
    setup: &Setup,
    names: &ToolNames,
    call: &ToolCall,
    mut arguments: Map<String, Value>,
) -> Result<Question, NotRun> {
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
    let target = tool.target.of(&arguments);
    let asks = match setup.permissions.decide(name, &arguments, &target) {
        Some(Permission::Deny) => return Err(NotRun::refused(notice::denied(name, &target))),
        Some(Permission::Ask) => Some(true),
        Some(Permission::Allow) => None,
        None => (tool.asks || tool.edits_files).then_some(tool.asks),
    };
    let asks_gate = match (asks, setup.permissions.mode()) {
        (None, _) | (_, PermissionMode::Yes) => false,
        (Some(_), PermissionMode::ReadOnly) => {
            return Err(NotRun::refused(notice::read_only(name)));
        }
        (Some(_), PermissionMode::Ask) => true,
        (Some(asks), PermissionMode::AutoEdit) => asks,
    };
    Ok(Question {
        call: corrected,
        asks_hook: setup.hooks.contains(&HookPoint::BeforeToolExecution),
        asks_gate,
        // It is known once the call is asked about.
        key: CallKey::default(),
        is_protected: matches!(&target, CallTarget::Path(path) if path.is_protected),
    })
}

/// Checks a call whose arguments a hook has rewritten. The hook is not asked again, the gate is.
pub(crate) fn check_rewritten(
    setup: &Setup,
    names: &ToolNames,
    call: &ToolCall,
) -> Result<Question, NotRun> {
    let arguments = read_arguments(&call.arguments)
        .map_err(|why| NotRun::refused(notice::unreadable(call, &why)))?;
    Ok(Question {
        asks_hook: false,
        ..prepare(setup, names, call, arguments)?
    })
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
