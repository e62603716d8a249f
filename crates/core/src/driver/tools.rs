//! Executes tool calls. Each call gets a result, whatever happens. The machine decides which calls
//! run.

use std::sync::Arc;

use plimsoll_agent::{HookInput, HookPoint, Spend};
use plimsoll_context::{Part, ToolCall, ToolResult, head_tail};
use serde_json::Value;

use crate::error::{contained, in_own_task};
use crate::hooks::HookContext;
use crate::parts::Parts;
use crate::tool::{MAX_TOOL_OUTPUT, Tool, ToolContext, ToolError, ToolOutput};

/// The result of a tool call and its side effects.
pub(super) struct FinishedCall {
    pub(super) result: ToolResult,
    pub(super) spent: Spend,
    /// The kind of failure in its span, if it failed.
    pub(super) fault: Option<&'static str>,
}

/// What a tool returns, or a text for the model and the kind of failure.
type ToolOutcome = Result<ToolOutput, (String, &'static str)>;

/// Executes one tool call.
pub(super) async fn execute(
    parts: Arc<Parts>,
    tool: Option<Arc<dyn Tool>>,
    call: ToolCall,
    cx: ToolContext,
    hooks: HookContext,
) -> FinishedCall {
    let outcome = match tool {
        Some(tool) => {
            let ended = contained(attempts(&parts, &tool, &call, &cx)).await;
            ended.unwrap_or_else(|panic| Err(broken(&call.name, &panic)))
        }
        None => {
            let text = format!("there is no tool `{}`", call.name);
            Err((text, "unknown_tool"))
        }
    };
    let (mut output, fault) = match outcome {
        Ok(output) => (output, None),
        Err((text, fault)) if text.trim().is_empty() => {
            ("failed without a message".into(), Some(fault))
        }
        Err((text, fault)) => (text.into(), Some(fault)),
    };
    clean(&parts, &mut output.parts);
    let mut result = ToolResult {
        call: call.id,
        parts: output.parts,
        is_error: fault.is_some(),
    };
    transform_result(&parts, &hooks, &call.name, &mut result).await;
    FinishedCall {
        result,
        spent: cx.reservation.spent(),
        fault,
    }
}

/// Calls a tool. Calls an idempotent one again after a timeout.
async fn attempts(
    parts: &Parts,
    tool: &Arc<dyn Tool>,
    call: &ToolCall,
    cx: &ToolContext,
) -> ToolOutcome {
    let (name, timeout) = (&call.name, tool.timeout());
    let late = format!("`{name}` did not end within {} s", timeout.as_secs_f32());
    let tries = if tool.idempotent() {
        parts.settings.tool_retries.saturating_add(1)
    } else {
        1
    };
    for number in 1..=tries {
        if number > 1 {
            parts.warn([format!("{late} and is called again ({number} of {tries})")]);
        }
        let cx = ToolContext {
            cancel: cx.cancel.child_token(),
            ..cx.clone()
        };
        let (tool, arguments, cancel) = (Arc::clone(tool), arguments(call), cx.cancel.clone());
        let work = in_own_task(timeout, async move { tool.call(arguments, cx).await });
        match work.await {
            Some(Ok(returned)) => return returned.map_err(|ToolError(text)| (text, "tool_error")),
            Some(Err(panic)) => return Err(broken(name, &panic)),
            None => cancel.cancel(),
        }
    }
    let text = match tries {
        1 => format!("{late} and was stopped"),
        _ => format!("{late}, {tries} times, and was stopped"),
    };
    Err((text, "timeout"))
}

/// Returns the failure of a tool that panicked.
fn broken(name: &str, panic: &str) -> (String, &'static str) {
    (format!("`{name}` broke down: {panic}"), "broken")
}

/// Lets the hooks rewrite the text of a tool's result. If one of them fails, the text is withheld,
/// because the hook may remove secrets.
async fn transform_result(parts: &Parts, cx: &HookContext, tool: &str, result: &mut ToolResult) {
    if !parts.hooks.has(HookPoint::TransformToolResult) {
        return;
    }
    let input = HookInput::TransformToolResult {
        tool: tool.to_owned(),
        call: result.call.clone(),
        result: Part::texts(&result.parts),
        is_error: result.is_error,
    };
    let outcome = parts.call_hooks(cx, input).await;
    let text = match (outcome.faults.first(), outcome.input) {
        (Some(fault), _) => {
            result.is_error = true;
            format!("the result was withheld, because the hook that reads it first failed: {fault}")
        }
        (None, HookInput::TransformToolResult { result, .. }) if outcome.is_rewritten => result,
        (None, _) => return,
    };
    let is_withheld = !outcome.faults.is_empty();
    result
        .parts
        .retain(|part| part.as_text().is_none() && !is_withheld);
    result.parts.insert(0, Part::text(text));
    clean(parts, &mut result.parts);
}

/// Strikes keys out of the texts, and shortens those that are too long.
fn clean(parts: &Parts, output: &mut [Part]) {
    parts.secrets.strike_out_of(output);
    for part in output {
        if let Part::Text { text } = part
            && let Some(short) = head_tail(text, MAX_TOOL_OUTPUT)
        {
            *text = short;
        }
    }
}

/// Returns the arguments of a call. Missing arguments become an empty object.
pub(super) fn arguments(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap_or_else(|_| serde_json::json!({}))
}
