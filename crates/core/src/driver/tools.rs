//! Executes tool calls. Each call gets a result, whatever happens. The machine decides which calls
//! run.

use std::any::Any;
use std::sync::Arc;

use plimsoll_agent::{Event, HookInput, HookPoint, Spend};
use plimsoll_context::{CallId, Part, ToolCall, ToolResult, head_tail};
use serde_json::Value;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::error::panic_message;
use crate::hooks::HookContext;
use crate::parts::Parts;
use crate::secret::Secrets;
use crate::tool::{MAX_TOOL_OUTPUT, Tool, ToolContext, ToolError, ToolOutput};

/// The result of a tool call and its side effects.
pub(super) struct FinishedCall {
    pub(super) result: ToolResult,
    pub(super) spent: Spend,
    /// The kind of failure in its span, if it failed.
    pub(super) fault: Option<&'static str>,
}

impl FinishedCall {
    /// Creates the result of a call whose tool panicked outside its own task.
    pub(super) fn broken(call: CallId, panic: Box<dyn Any + Send>) -> Self {
        let text = format!("the tool broke down: {}", panic_message(&*panic));
        Self {
            result: failed(call, text),
            spent: Spend::default(),
            fault: Some("broken"),
        }
    }
}

/// Executes one tool call. Retries idempotent tools after a timeout.
pub(super) async fn execute(
    parts: Arc<Parts>,
    tool: Option<Arc<dyn Tool>>,
    call: ToolCall,
    cx: ToolContext,
    hooks: HookContext,
) -> FinishedCall {
    let name = call.name.clone();
    let (mut result, fault) = match tool {
        None => {
            let text = format!("there is no tool `{}`", call.name);
            (failed(call.id, text), Some("unknown_tool"))
        }
        Some(tool) => {
            let tries = if tool.idempotent() {
                parts.settings.tool_retries.saturating_add(1)
            } else {
                1
            };
            let mut number = 1;
            loop {
                let attempt = ToolContext {
                    cancel: cx.cancel.child_token(),
                    ..cx.clone()
                };
                match once(&tool, &call, attempt, &parts.secrets).await {
                    Some(ended) => break ended,
                    None if number < tries => {
                        number += 1;
                        let text = format!(
                            "`{}` did not end within {} s and is called again ({number} of {tries})",
                            call.name,
                            tool.timeout().as_secs_f32()
                        );
                        parts.tell(Event::Warning { text });
                    }
                    None => break (too_late(&*tool, &call, tries), Some("timeout")),
                }
            }
        }
    };
    transform_result(&parts, &hooks, &name, &mut result).await;
    FinishedCall {
        result,
        spent: cx.reservation.spent(),
        fault,
    }
}

/// Makes one attempt. Returns the result and, if it failed, the kind of failure. `None` after a timeout.
async fn once(
    tool: &Arc<dyn Tool>,
    call: &ToolCall,
    cx: ToolContext,
    secrets: &Secrets,
) -> Option<(ToolResult, Option<&'static str>)> {
    let (id, name, timeout) = (call.id.clone(), &call.name, tool.timeout());
    let arguments = arguments(call);
    let cancel = cx.cancel.clone();
    let tool = Arc::clone(tool);
    // Runs in its own task to contain panics.
    let mut work = JoinSet::new();
    work.spawn(async move { tool.call(arguments, cx).await }.in_current_span());
    let (text, fault) = match tokio::time::timeout(timeout, work.join_next()).await {
        Ok(Some(Ok(Ok(mut output)))) => {
            secrets.strike_out_of(&mut output.parts);
            return Some((done(id, output), None));
        }
        Ok(Some(Ok(Err(ToolError(text))))) => (text, "tool_error"),
        Ok(Some(Err(error))) if error.is_panic() => {
            let text = panic_message(&*error.into_panic());
            (format!("`{name}` broke down: {text}"), "broken")
        }
        Ok(_) => {
            let text = format!("`{name}` was stopped before it ended");
            (text, "broken")
        }
        Err(_) => {
            cancel.cancel();
            return None;
        }
    };
    Some((failed(id, secrets.strike_out(text)), Some(fault)))
}

/// Lets the hooks rewrite the text of a tool's result. If one of them fails, the text is withheld,
/// because the hook may remove secrets.
async fn transform_result(parts: &Parts, cx: &HookContext, tool: &str, result: &mut ToolResult) {
    if !parts.hooks.has(HookPoint::TransformToolResult) {
        return;
    }
    let texts: Vec<&str> = result.parts.iter().filter_map(Part::as_text).collect();
    let input = HookInput::TransformToolResult {
        tool: tool.to_owned(),
        call: result.call.clone(),
        result: texts.join("\n"),
        is_error: result.is_error,
    };
    let outcome = parts.hooks.call(cx, input).await;
    parts.warn(outcome.faults.clone());
    let text = match (outcome.faults.first(), outcome.input) {
        (Some(fault), _) => {
            result.is_error = true;
            format!("the result was withheld, because the hook that reads it first failed: {fault}")
        }
        (None, HookInput::TransformToolResult { result, .. }) if outcome.is_rewritten => result,
        (None, _) => return,
    };
    let text = parts.secrets.strike_out(text);
    let text = head_tail(&text, MAX_TOOL_OUTPUT).unwrap_or(text);
    let is_withheld = !outcome.faults.is_empty();
    result
        .parts
        .retain(|part| part.as_text().is_none() && !is_withheld);
    result.parts.insert(0, Part::text(text));
}

/// Returns the arguments of a call. Missing arguments become an empty object.
pub(super) fn arguments(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| serde_json::json!({}))
}

fn too_late(tool: &dyn Tool, call: &ToolCall, tries: u32) -> ToolResult {
    let secs = tool.timeout().as_secs_f32();
    let name = &call.name;
    let text = match tries {
        1 => format!("`{name}` did not end within {secs} s and was stopped"),
        _ => format!("`{name}` did not end within {secs} s, {tries} times, and was stopped"),
    };
    failed(call.id.clone(), text)
}

fn done(call: CallId, output: ToolOutput) -> ToolResult {
    let mut parts = output.parts;
    for part in &mut parts {
        if let Part::Text { text } = part
            && let Some(short) = head_tail(text, MAX_TOOL_OUTPUT)
        {
            *text = short;
        }
    }
    ToolResult {
        call,
        parts,
        is_error: false,
    }
}

fn failed(call: CallId, text: String) -> ToolResult {
    let text = head_tail(&text, MAX_TOOL_OUTPUT).unwrap_or(text);
    let text = if text.trim().is_empty() {
        "failed without a message".to_owned()
    } else {
        text
    };
    ToolResult {
        call,
        parts: vec![Part::text(text)],
        is_error: true,
    }
}
