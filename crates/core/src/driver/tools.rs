//! Executes tool calls. Each call gets a result, whatever happens. The machine decides which calls
//! run.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{HookInput, HookPoint, Spend};
use plimsoll_context::{Part, ToolCall, ToolResult, head_tail};
use serde_json::Value;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::error::{contained, panic_message};
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
    parts.secrets.strike_out_of(&mut output.parts);
    for part in &mut output.parts {
        if let Part::Text { text } = part
            && let Some(short) = head_tail(text, MAX_TOOL_OUTPUT)
        {
            *text = short;
        }
    }
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
        if let Some(ended) = once(tool, call, cx, timeout).await {
            return ended;
        }
    }
    let text = match tries {
        1 => format!("{late} and was stopped"),
        _ => format!("{late}, {tries} times, and was stopped"),
    };
    Err((text, "timeout"))
}

/// Makes one attempt. Returns `None` after a timeout.
async fn once(
    tool: &Arc<dyn Tool>,
    call: &ToolCall,
    cx: ToolContext,
    timeout: Duration,
) -> Option<ToolOutcome> {
    let (arguments, cancel) = (arguments(call), cx.cancel.clone());
    let tool = Arc::clone(tool);
    // Runs in its own task to contain panics.
    let mut work = JoinSet::new();
    work.spawn(async move { tool.call(arguments, cx).await }.in_current_span());
    let Ok(ended) = tokio::time::timeout(timeout, work.join_next()).await else {
        cancel.cancel();
        return None;
    };
    Some(match ended {
        Some(Ok(returned)) => returned.map_err(|ToolError(text)| (text, "tool_error")),
        Some(Err(error)) if error.is_panic() => {
            let panic = panic_message(&*error.into_panic());
            Err(broken(&call.name, &panic))
        }
        _ => {
            let text = format!("`{}` was stopped before it ended", call.name);
            Err((text, "broken"))
        }
    })
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
