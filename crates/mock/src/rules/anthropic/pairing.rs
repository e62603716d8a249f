//! The pairs of tool calls and results: AM1 to AM4, V3 and V4.

use std::collections::BTreeSet;

use plimsoll_wire::__internals::anthropic::{OpenCalls, calls_server, named_caller};
use serde_json::Value;

use super::validate::MessagesCheck;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{content, entries, kind, role, text};

/// Judges the calls of the caller's tools. Results are paired with them by their ids, in any order.
pub(super) fn pairing(check: &mut MessagesCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let messages = entries(request, "messages");
    let mut ids = BTreeSet::new();
    let mut call_ids: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages.{index}");
        results(check, &place, message, &call_ids);
        let calls = content(message).iter();
        let calls = calls.filter(|block| kind(block) == "tool_use");
        call_ids = calls.map(|block| text(block, "id")).collect();
        for _ in call_ids.iter().filter(|id| !ids.insert(**id)) {
            check.report("duplicate-call", place.clone(), &[]);
        }
        let answered = messages.get(index + 1).map(result_ids).unwrap_or_default();
        let is_open = |id: &&str| !answered.iter().any(|(_, answered)| answered == id);
        let open: Vec<&str> = call_ids.iter().copied().filter(is_open).collect();
        if open.is_empty() {
            continue;
        }
        check.report("open-calls", place.clone(), &[&open.join(", ")]);
        if open.len() < call_ids.len() {
            check.report("part-of-batch", place, &[]);
        }
    }
}

/// Judges the results in a message by the calls of the message before it: AM2, AM3, AM4 and V3.
fn results(check: &mut MessagesCheck<'_>, place: &str, message: &Value, call_ids: &[&str]) {
    let results = result_ids(message);
    let mut seen = BTreeSet::new();
    for (at, id) in &results {
        let place = format!("{place}.content.{at}");
        if !call_ids.contains(id) {
            check.report("orphan", place, &[id]);
        } else if !seen.insert(*id) {
            check.report("second-result", place, &[id]);
        }
    }
    let blocks = content(message).iter();
    let first = blocks.take_while(|block| kind(block) == "tool_result");
    if first.count() < results.len() && !call_ids.is_empty() {
        check.report("late-results", place, &[&results.len()]);
    }
}

/// Returns the results in a message: their places, and the ids of their calls.
fn result_ids(message: &Value) -> Vec<(usize, &str)> {
    let blocks = content(message).iter().enumerate();
    let results = blocks.filter(|(_, block)| kind(block) == "tool_result");
    let ids = results.map(|(at, block)| (at, text(block, "tool_use_id")));
    ids.collect()
}

/// Judges tools that the provider runs itself: AM1 and AM2.
///
/// Both blocks are in assistant messages, the result in the same message as the call or in a later one.
pub(super) fn server_pairing(check: &mut MessagesCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let mut waiting: OpenCalls<(&str, usize)> = OpenCalls::default();
    for (index, message) in entries(request, "messages").iter().enumerate() {
        let blocks = content(message);
        if role(message) != "assistant" {
            let is_text = message.get("content").is_some_and(Value::is_string);
            if is_text || blocks.iter().any(|block| kind(block) != "tool_result") {
                waiting.other_message()
            } else {
                waiting.answered()
            }
            continue;
        }
        waiting.turn();
        for (at, block) in blocks.iter().enumerate() {
            let kind = kind(block);
            if calls_server(kind) {
                waiting.call(text(block, "id"), (text(block, "name"), index));
            } else if kind == "tool_use" {
                waiting.host_call(named_caller(block));
            } else if !kind.ends_with("_tool_result") {
                waiting.other();
            } else if !waiting.result(text(block, "tool_use_id")) {
                let place = format!("messages.{index}.content.{at}");
                let id = text(block, "tool_use_id");
                check.report("server-orphan", place, &[&kind, &id]);
            }
        }
    }
    for (id, (name, index)) in waiting.refused() {
        let place = format!("messages.{index}");
        check.report("open-server-call", place, &[name, &id]);
    }
}
