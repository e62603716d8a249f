//! Judges the settings of a request: output limit, thinking, temperature, tools, and context editing
//! (AM14). Also checks whether thinking fits the current tool loop (AM9). Part of the validator.

use std::collections::BTreeSet;

use plimsoll_wire::__internals::anthropic::{FAMILIES, MCP_TOOLSET, family_of};
use serde_json::Value;

use super::validate::{MessagesCheck, content, is_thinking, kind, role, text};
use crate::rules::json_path::JsonPath;
use crate::rules::table::entries;

/// The prefix of the beta header that announces thinking between tool calls.
pub(super) const INTERLEAVED: &str = "interleaved-thinking-";
/// The smallest trigger that the API accepts for its compaction, in tokens.
const MIN_COMPACTION: u64 = 50_000;

/// Judges all settings.
pub(super) fn check(check: &mut MessagesCheck<'_>, request: &Value) {
    output(check, request);
    check.judge("thinking", "", &JsonPath::Dotted(""), request);
    check.judge("settings", "", &JsonPath::Dotted(""), request);
    tools(check, request);
    check.judge("tool_choice", "", &JsonPath::Dotted(""), request);
    editing(check, request);
}

/// Judges AM9. If the model thinks with a budget, the current tool loop must have begun with thinking.
/// If it does not think, the newest message of the loop must not contain thinking.
pub(super) fn check_loop(check: &mut MessagesCheck<'_>, request: &Value, messages: &[Value]) {
    match mode(request) {
        "enabled" => {}
        "" | "disabled" => return check_unasked(check, messages),
        _ => return,
    }
    let mut rest = messages.iter().enumerate().rev().peekable();
    // The beginning of a reply, if the model continues one.
    let mut reply_start = rest.next_if(|(_, message)| role(message) == "assistant");
    while let Some((_, message)) = rest.next() {
        let results = content(message)
            .iter()
            .any(|block| kind(block) == "tool_result");
        if role(message) != "user" || !results {
            break;
        }
        match rest.next() {
            Some((index, message)) if role(message) == "assistant" => {
                reply_start = Some((index, message));
            }
            _ => break,
        }
    }
    let Some((index, message)) = reply_start else {
        return;
    };
    let first = content(message).first();
    if first.is_some_and(is_thinking) {
        return;
    }
    let found = first.map_or("text", kind);
    check.report(
        "loop-without-thinking",
        format!("messages.{index}.content.0"),
        &[&found],
    );
}

fn check_unasked(check: &mut MessagesCheck<'_>, messages: &[Value]) {
    if check.profile.unasked_thinking {
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
    check.report("unasked-thinking", place, &[&kind]);
}

/// Returns the thinking mode: `enabled`, `adaptive`, `disabled` or an empty text.
fn mode(request: &Value) -> &str {
    request.get("thinking").map_or("", kind)
}

/// Judges the output limit by the model's maximum.
fn output(check: &mut MessagesCheck<'_>, request: &Value) {
    let max = request.get("max_tokens").and_then(Value::as_u64);
    let (Some(max), Some(limit)) = (max, check.profile.max_output) else {
        return;
    };
    if max > limit {
        let model = text(request, "model");
        check.report("output-limit", "max_tokens", &[&max, &limit, &model]);
    }
}

fn tools(check: &mut MessagesCheck<'_>, request: &Value) {
    let mut names = BTreeSet::new();
    for (index, tool) in entries(request, "tools").iter().enumerate() {
        let list = JsonPath::Dotted("tools");
        let place = list.entry(index);
        match kind(tool) {
            "" | "custom" => {
                check.judge("custom-tool", "", &place, tool);
            }
            MCP_TOOLSET => {
                check.judge(MCP_TOOLSET, "", &place, tool);
            }
            kind => hosted(check, place, kind, text(tool, "name")),
        }
        let name = text(tool, "name");
        if !name.is_empty() && !names.insert(name) {
            check.report("tool-twice", "tools", &[]);
        }
    }
}

/// Judges the definition of a tool that the provider defines.
fn hosted(check: &mut MessagesCheck<'_>, place: JsonPath<'_>, kind: &str, name: &str) {
    match family_of(kind) {
        None => {
            let known = FAMILIES.iter().map(|family| format!("'{}_…'", family.kind));
            let known: Vec<String> = known.collect();
            check.report("tool-type", place, &[&kind, &known.join(", ")]);
        }
        Some(_) if name.is_empty() => check.report("no-tool-name", place, &[&kind]),
        Some(family) => {
            if let Some(known) = family.name.filter(|known| *known != name) {
                check.report("other-tool-name", place, &[&kind, &known]);
            }
        }
    }
}

/// Judges context editing: AM14.
fn editing(check: &mut MessagesCheck<'_>, request: &Value) {
    let edits = request.get("context_management");
    let edits = edits.map(|management| entries(management, "edits"));
    let mut cleared = false;
    for (index, edit) in edits.into_iter().flatten().enumerate() {
        let place = format!("context_management.edits.{index}");
        let name = kind(edit);
        if name.starts_with("clear_thinking") && cleared {
            check.report("edit-order", place, &[]);
        } else if name.starts_with("clear_tool_uses") {
            cleared = true;
        } else if name.starts_with("compact") {
            let trigger = edit.get("trigger").and_then(|trigger| trigger.get("value"));
            let trigger = trigger.and_then(Value::as_u64);
            if trigger.is_some_and(|trigger| trigger < MIN_COMPACTION) {
                check.report("compaction-trigger", place, &[]);
            }
        }
    }
}
