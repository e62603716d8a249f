//! What a request asks for besides its messages: output limit, thinking, temperature, tools, context
//! editing (AM14), and whether thinking fits the tool loop that is under way (AM9). Part of the
//! validator; it judges and repairs nothing.

use std::collections::BTreeSet;

use plimsoll_wire::anthropic::MIN_BUDGET;
use plimsoll_wire::anthropic::{
    EffortSupport, ForcedTools, NoThinking, Profile, Samplers, Temperature, ThinkingStyle,
    UnaskedThinking,
};
use serde_json::Value;

use super::validate::{Check, content, is_thinking, kind, role, text};
use super::validate_block;
use crate::fault::{Fault, Rule};

/// What announces thinking between tool calls.
const INTERLEAVED: &str = "interleaved-thinking-";
/// The least that a model which thinks may be kept to.
const MIN_TOP_P: f64 = 0.95;
/// How hard a model may be told to work.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// Where the API begins to compact, at the earliest.
const MIN_COMPACTION: u64 = 50_000;

/// Judges all settings.
pub(super) fn check(check: &mut Check<'_>, request: &Value) {
    let max = output(check, request);
    thinking(check, request, max);
    samplers(check, request);
    effort(check, request);
    stops(check, request);
    tools(check, request);
    editing(check, request);
}

/// AM9: while the model thinks with a budget, the tool loop under way began with thinking; while it
/// does not think, the loop's newest message holds none.
pub(super) fn check_loop(check: &mut Check<'_>, request: &Value, messages: &[Value]) {
    match mode(request) {
        "enabled" => {}
        "" | "disabled" => return check_unasked(check, messages),
        _ => return,
    }
    let mut rest = messages.iter().enumerate().rev().peekable();
    // The model's own last word, where it goes on from there.
    let mut began = rest.next_if(|(_, message)| role(message) == "assistant");
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

/// How the fault of thinking that no request asks for begins, behind its place.
const UNASKED: &str = "When thinking is disabled, an `assistant` message in the final position \
                       cannot contain";

fn check_unasked(check: &mut Check<'_>, messages: &[Value]) {
    if check.profile.unasked_thinking == UnaskedThinking::Accepted {
        return;
    }
    let mut rest = messages.iter().enumerate().rev();
    let is_results = |message: &Value| {
        let mut blocks = content(message).iter();
        role(message) == "user" && blocks.any(|block| kind(block) == "tool_result")
    };
    let Some((index, last)) = rest.find(|(_, message)| !is_results(message)) else {
        return;
    };
    if role(last) != "assistant" {
        return;
    }
    let Some(at) = content(last).iter().position(is_thinking) else {
        return;
    };
    let place = format!("messages.{index}.content.{at}");
    let kind = content(last).get(at).map_or("thinking", kind);
    let words = format!(
        "{place}: {UNASKED} `{kind}`. To use thinking blocks, enable `thinking` in your request."
    );
    check.fault(Rule::Am9, place, words);
}

/// Whether a fault is that.
pub(crate) fn is_unasked(fault: &Fault) -> bool {
    fault.rule == Rule::Am9 && fault.words.contains(UNASKED)
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
        ("disabled", _) if check.profile.no_thinking == NoThinking::Refused => {
            let words = "\"thinking.type.disabled\" is not supported for this model. Use \
                         \"thinking.type.adaptive\" and \"output_config.effort\" to control \
                         thinking behavior.";
            check.fault(Rule::Shape, "thinking", words);
            return;
        }
        ("" | "disabled", _) if request.get("thinking").is_none_or(is_mode) => return,
        ("enabled" | "adaptive", ThinkingStyle::Either | ThinkingStyle::Unknown) => {}
        ("enabled", ThinkingStyle::Budget) | ("adaptive", ThinkingStyle::Adaptive) => {}
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
            // Thinking between tool calls may take what all of its replies together have.
            Some(budget) if budget >= max && !check.announces(INTERLEAVED) => {
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

/// What the API takes of sampling settings: all, one at a time, or none.
fn samplers(check: &mut Check<'_>, request: &Value) {
    temperature(check, request);
    let get = |key: &str| request.get(key).filter(|value| !value.is_null());
    let refused = check.profile.temperature == Temperature::Refused;
    if let Some(top) = get("top_p") {
        let top = top.as_f64().unwrap_or(f64::NAN);
        if !(0.0..=1.0).contains(&top) {
            check.fault(Rule::Shape, "top_p", "top_p: range: 0..1");
        } else if refused && top < MIN_TOP_P {
            let words = "`top_p` is deprecated for this model.";
            check.fault(Rule::Shape, "top_p", words);
        } else if thinks(request) && top < MIN_TOP_P {
            let words = "`top_p` must be greater than or equal to 0.95 or unset when thinking is \
                         enabled or in adaptive mode.";
            check.fault(Rule::Shape, "top_p", words);
        } else if !refused
            && check.profile.samplers == Samplers::One
            && get("temperature").is_some()
        {
            let words = "`temperature` and `top_p` cannot both be specified for this model. \
                         Please use only one.";
            check.fault(Rule::Shape, "top_p", words);
        }
    }
    if get("top_k").is_some() {
        if refused {
            let words = "`top_k` is deprecated for this model.";
            check.fault(Rule::Shape, "top_k", words);
        } else if thinks(request) {
            let words = "`top_k` must be unset when thinking is enabled or in adaptive mode.";
            check.fault(Rule::Shape, "top_k", words);
        }
    }
}

fn effort(check: &mut Check<'_>, request: &Value) {
    let config = request.get("output_config");
    let Some(effort) = config
        .and_then(|config| config.get("effort"))
        .filter(|effort| !effort.is_null())
    else {
        return;
    };
    if check.profile.effort == EffortSupport::Refused {
        let words = "This model does not support the effort parameter.";
        check.fault(Rule::Shape, "output_config.effort", words);
    } else if !effort
        .as_str()
        .is_some_and(|effort| EFFORTS.contains(&effort))
    {
        let words = "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or \
                     'max'";
        check.fault(Rule::Shape, "output_config.effort", words);
    }
}

fn stops(check: &mut Check<'_>, request: &Value) {
    let stops = request.get("stop_sequences").and_then(Value::as_array);
    let blank = |stop: &Value| stop.as_str().is_some_and(|stop| stop.trim().is_empty());
    if stops.into_iter().flatten().any(blank) {
        let words = "stop_sequences: each stop sequence must contain non-whitespace";
        check.fault(Rule::Shape, "stop_sequences", words);
    }
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
