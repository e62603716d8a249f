//! What a request asks for besides its messages: output limit, thinking, temperature, tools, context
//! editing (AM14), and whether thinking fits the tool loop that is under way (AM9). Part of the
//! validator; it judges and repairs nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::profile::{ForcedTools, Profile, Temperature, ThinkingStyle};
use super::settings::MIN_BUDGET;
use super::validate::{Check, content, is_thinking, kind, role, text};
use super::validate_block;
use crate::fault::Rule;

/// Where the API begins to compact, at the earliest.
const MIN_COMPACTION: u64 = 50_000;

/// Judges all settings.
pub(super) fn check(check: &mut Check<'_>, request: &Value) {
    let max = output(check, request);
    thinking(check, request, max);
    temperature(check, request);
    tools(check, request);
    editing(check, request);
}

/// AM9: while the model thinks with a budget, the tool loop under way began with thinking.
pub(super) fn check_loop(check: &mut Check<'_>, request: &Value, messages: &[Value]) {
    if mode(request) != "enabled" {
        return;
    }
    let mut began = None;
    let mut rest = messages.iter().enumerate().rev();
    while let Some((_, message)) = rest.next() {
        let results = content(message)
            .iter()
            .any(|block| kind(block) == "tool_result");
        if role(message) != "user" || !results {
            break;
        }
        match rest.next() {
            Some((index, message)) if role(message) == "assistant" => {
                began = Some((index, message));
            }
            _ => break,
        }
    }
    let Some((index, message)) = began else {
        return;
    };
    let first = content(message).first();
    if first.is_some_and(is_thinking) {
        return;
    }
    let found = first.map_or("text", kind);
    let words = format!(
        "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
         `{found}`. When `thinking` is enabled, a final `assistant` message must start with a \
         thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). To \
         avoid this requirement, disable `thinking`."
    );
    check.fault(Rule::Am9, format!("messages.{index}.content.0"), words);
}

/// How the model is to think: `enabled`, `adaptive`, `disabled` or nothing.
fn mode(request: &Value) -> &str {
    request
        .get("thinking")
        .map_or("", |thinking| text(thinking, "type"))
}

fn thinks(request: &Value) -> bool {
    matches!(mode(request), "enabled" | "adaptive")
}

fn output(check: &mut Check<'_>, request: &Value) -> u64 {
    let max = match request.get("max_tokens") {
        None | Some(Value::Null) => {
            check.fault(Rule::Shape, "max_tokens", "max_tokens: Field required");
            return u64::MAX;
        }
        Some(max) => max.as_u64().unwrap_or(0),
    };
    if max == 0 {
        let words = "max_tokens: Input should be greater than or equal to 1";
        check.fault(Rule::Shape, "max_tokens", words);
    }
    if let Some(limit) = check.profile.max_output.filter(|limit| max > *limit) {
        let model = text(request, "model");
        let words = format!(
            "max_tokens: {max} > {limit}, which is the maximum allowed number of output tokens \
             for {model}"
        );
        check.fault(Rule::Shape, "max_tokens", words);
    }
    max
}

fn thinking(check: &mut Check<'_>, request: &Value, max: u64) {
    let Profile { thinking, .. } = check.profile;
    match (mode(request), thinking) {
        ("" | "disabled", _) if request.get("thinking").is_none_or(is_mode) => return,
        ("enabled", ThinkingStyle::Budget | ThinkingStyle::Either) => {}
        ("adaptive", ThinkingStyle::Adaptive | ThinkingStyle::Either) => {}
        ("enabled", ThinkingStyle::Adaptive) => {
            let words = "\"thinking.type.enabled\" is not supported for this model. Use \
                         \"thinking.type.adaptive\" and \"output_config.effort\" to control \
                         thinking behavior.";
            check.fault(Rule::Shape, "thinking", words);
        }
        ("adaptive", ThinkingStyle::Budget) => {
            let words = "adaptive thinking is not supported on this model";
            check.fault(Rule::Shape, "thinking", words);
        }
        ("enabled" | "adaptive", ThinkingStyle::None) => {
            let model = text(request, "model");
            let words = format!("'{model}' does not support thinking.");
            check.fault(Rule::Shape, "thinking", words);
        }
        _ => {
            let words = "thinking: Input tag found using 'type' does not match any of the \
                         expected tags: 'adaptive', 'disabled', 'enabled'";
            check.fault(Rule::Shape, "thinking", words);
            return;
        }
    }
    if mode(request) == "enabled" {
        let budget = request.get("thinking").and_then(|t| t.get("budget_tokens"));
        match budget.and_then(Value::as_u64) {
            None => {
                let words = "thinking.enabled.budget_tokens: Field required";
                check.fault(Rule::Shape, "thinking", words);
            }
            Some(budget) if budget < MIN_BUDGET => {
                let words = "thinking.enabled.budget_tokens: Input should be greater than or \
                             equal to 1024";
                check.fault(Rule::Shape, "thinking", words);
            }
            Some(budget) if budget >= max => {
                let words = "`max_tokens` must be greater than `thinking.budget_tokens`.";
                check.fault(Rule::Shape, "max_tokens", words);
            }
            Some(_) => {}
        }
    }
    let choice = request.get("tool_choice");
    if choice.is_some_and(|choice| matches!(kind(choice), "any" | "tool")) {
        let words = "Thinking may not be enabled when tool_choice forces tool use.";
        check.fault(Rule::Shape, "tool_choice", words);
    }
}

fn is_mode(thinking: &Value) -> bool {
    kind(thinking) == "disabled"
}

fn temperature(check: &mut Check<'_>, request: &Value) {
    let Some(value) = request.get("temperature").filter(|value| !value.is_null()) else {
        return;
    };
    let value = value.as_f64().unwrap_or(f64::NAN);
    if !(0.0..=1.0).contains(&value) {
        let words = "temperature: range: 0..1";
        check.fault(Rule::Shape, "temperature", words);
        return;
    }
    // One is what the model has anyway.
    if value >= 1.0 {
        return;
    }
    if thinks(request) {
        let words = "`temperature` may only be set to 1 when thinking is enabled or in adaptive \
                     mode.";
        check.fault(Rule::Shape, "temperature", words);
    } else if check.profile.temperature == Temperature::Refused {
        let words = "`temperature` is deprecated for this model.";
        check.fault(Rule::Shape, "temperature", words);
    }
}

fn tools(check: &mut Check<'_>, request: &Value) {
    let tools = request.get("tools").and_then(Value::as_array);
    let mut names = BTreeSet::new();
    for (index, tool) in tools.into_iter().flatten().enumerate() {
        validate_block::tool(check, &format!("tools.{index}"), tool);
        let name = text(tool, "name");
        if !name.is_empty() && !names.insert(name) {
            check.fault(Rule::Shape, "tools", "tools: Tool names must be unique.");
        }
    }
    let Some(choice) = request
        .get("tool_choice")
        .filter(|choice| !choice.is_null())
    else {
        return;
    };
    if matches!(kind(choice), "any" | "tool") && check.profile.forced_tools == ForcedTools::Refused
    {
        let words = "tool_choice: this model does not support forced tool use.";
        check.fault(Rule::Shape, "tool_choice", words);
    }
    match kind(choice) {
        "auto" | "none" | "any" if names.is_empty() => {
            let words = "tool_choice may only be specified while providing tools.";
            check.fault(Rule::Shape, "tool_choice", words);
        }
        "auto" | "none" | "any" => {}
        "tool" if names.contains(text(choice, "name")) => {}
        "tool" => {
            let name = text(choice, "name");
            let words = format!("Tool '{name}' not found in provided tools");
            check.fault(Rule::Shape, "tool_choice", words);
        }
        other => {
            let words = format!(
                "tool_choice: Input tag '{other}' found using 'type' does not match any of the \
                 expected tags: 'any', 'auto', 'none', 'tool'"
            );
            check.fault(Rule::Shape, "tool_choice", words);
        }
    }
}

/// AM14.
fn editing(check: &mut Check<'_>, request: &Value) {
    let edits = request
        .get("context_management")
        .and_then(|m| m.get("edits"));
    let edits = edits.and_then(Value::as_array);
    let mut cleared = false;
    for (index, edit) in edits.into_iter().flatten().enumerate() {
        let place = format!("context_management.edits.{index}");
        let name = kind(edit);
        if name.starts_with("clear_thinking") && cleared {
            let words = format!(
                "{place}: `clear_thinking` must be listed before `clear_tool_uses` in \
                 `context_management.edits`"
            );
            check.fault(Rule::Am14, place, words);
        } else if name.starts_with("clear_tool_uses") {
            cleared = true;
        } else if name.starts_with("compact") {
            let trigger = edit.get("trigger").and_then(|trigger| trigger.get("value"));
            let trigger = trigger.and_then(Value::as_u64);
            if trigger.is_some_and(|trigger| trigger < MIN_COMPACTION) {
                let words = format!(
                    "{place}.trigger.value: Input should be greater than or equal to \
                     {MIN_COMPACTION}"
                );
                check.fault(Rule::Am14, place, words);
            }
        }
    }
}
