//! Checks whether tool calls and results answer each other: AM1 to AM4, V3 and V4.
//!
//! Part of the validator. Covers the caller's tools and the provider's own tools.

use std::collections::BTreeSet;

use plimsoll_wire::__internals::anthropic::{OpenCalls, calls_server, named_caller};
use serde_json::Value;

use super::validate::{MessagesCheck, content, kind, role, text};

/// Judges a list of messages.
pub(super) fn check(check: &mut MessagesCheck<'_>, messages: &[Value]) {
    let mut ids = BTreeSet::new();
    let mut call_ids: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let results = results(message);
        answers(check, index, message, &results, &call_ids);
        call_ids = calls(message);
        for id in &call_ids {
            if !ids.insert(*id) {
                check.report("duplicate-call", format!("messages.{index}"), &[]);
            }
        }
        if !call_ids.is_empty() {
            unanswered(check, index, &call_ids, messages.get(index + 1));
        }
    }
    of_servers(check, messages);
}

/// Judges the results of one message: AM2, AM3, AM4 and V3.
fn answers(
    check: &mut MessagesCheck<'_>,
    index: usize,
    message: &Value,
    results: &[(usize, &str)],
    call_ids: &[&str],
) {
    let mut seen = BTreeSet::new();
    for (at, id) in results {
        let place = format!("messages.{index}.content.{at}");
        match call_ids.iter().position(|call_id| call_id == id) {
            None => {
                check.report("orphan", place, &[&id]);
            }
            Some(_) if !seen.insert(*id) => {
                check.report("second-result", place, &[&id]);
            }
            // They are paired by their ids, in any order.
            Some(_) => {}
        }
    }
    let first = content(message)
        .iter()
        .take_while(|block| kind(block) == "tool_result")
        .count();
    if first < results.len() && !call_ids.is_empty() {
        let count = results.len();
        check.report("late-results", format!("messages.{index}"), &[&count]);
    }
}

/// Judges the calls of one message against the message that follows it: AM1 and V4.
fn unanswered(
    check: &mut MessagesCheck<'_>,
    index: usize,
    call_ids: &[&str],
    next: Option<&Value>,
) {
    let answered = next.map(results).unwrap_or_default();
    let answered: BTreeSet<&str> = answered.into_iter().map(|(_, id)| id).collect();
    let open = call_ids.iter().copied().filter(|id| !answered.contains(id));
    let open: Vec<&str> = open.collect();
    if open.is_empty() {
        return;
    }
    let place = format!("messages.{index}");
    check.report("open-calls", place.clone(), &[&open.join(", ")]);
    if open.len() < call_ids.len() {
        check.report("part-of-batch", place, &[]);
    }
}

/// Judges tools that the provider runs itself: AM1 and AM2.
///
/// Both blocks are in assistant messages, the result in the same message as the call or in a later one.
fn of_servers(check: &mut MessagesCheck<'_>, messages: &[Value]) {
    let mut waiting: OpenCalls<(&str, usize)> = OpenCalls::default();
    for (index, message) in messages.iter().enumerate() {
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
            } else if kind.ends_with("_tool_result") {
                let id = text(block, "tool_use_id");
                if waiting.result(id) {
                    continue;
                }
                let place = format!("messages.{index}.content.{at}");
                check.report("server-orphan", place, &[&kind, &id]);
            } else {
                waiting.other();
            }
        }
    }
    for (id, (name, index)) in waiting.refused() {
        check.report(
            "open-server-call",
            format!("messages.{index}"),
            &[&name, &id],
        );
    }
}

fn calls(message: &Value) -> Vec<&str> {
    let blocks = content(message).iter();
    let calls = blocks.filter(|block| kind(block) == "tool_use");
    calls.map(|block| text(block, "id")).collect()
}

fn results(message: &Value) -> Vec<(usize, &str)> {
    let blocks = content(message).iter().enumerate();
    let results = blocks.filter(|(_, block)| kind(block) == "tool_result");
    results
        .map(|(at, block)| (at, text(block, "tool_use_id")))
        .collect()
}
