//! The pairs of tool calls and results: OC1, OC2, OC3, OC7, V3 and V4.

use std::collections::BTreeSet;

use plimsoll_wire::openai_chat::ErrorStyle;
use serde_json::Value;

use super::validate::ChatCheck;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{entries, role, text};

/// Judges whether tool calls and tool messages answer each other.
pub(super) fn pairing(check: &mut ChatCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let messages = entries(request, "messages");
    let is_mistral = check.profile.voice == ErrorStyle::Mistral;
    let mut rest = messages.iter().enumerate().peekable();
    while let Some((index, message)) = rest.next() {
        if role(message) == "tool" {
            let place = format!("messages[{index}].role");
            let before = index.checked_sub(1).and_then(|at| messages.get(at));
            if is_mistral {
                let before = before.map_or("none", role);
                check.report("unexpected", place, &[&"tool", &before]);
            } else {
                check.report("orphan", place, &[]);
            }
            continue;
        }
        let ids = entries(message, "tool_calls").iter();
        let ids: Vec<&str> = ids.filter_map(|call| call.get("id")?.as_str()).collect();
        // Results are paired by their ids, in any order. Of two calls with one id, the first is answered
        // first.
        let mut open = ids.clone();
        while let Some((at, tool)) =
            rest.next_if(|(_, next)| !ids.is_empty() && role(next) == "tool")
        {
            let place = format!("messages[{at}].tool_call_id");
            let id = text(tool, "tool_call_id");
            if let Some(call) = open.iter().position(|open| *open == id) {
                open.remove(call);
            } else if ids.contains(&id) {
                check.report("second-result", place, &[&id]);
            } else if is_mistral {
                check.report("unknown-call-id", place, &[&id]);
            } else {
                check.report("orphan", place, &[]);
            }
        }
        end_batch(check, index, (&ids, &open), rest.peek().copied());
    }
}

/// Judges the calls of a message after its results. `next` is the message behind them.
fn end_batch(
    check: &mut ChatCheck<'_>,
    index: usize,
    (ids, open): (&[&str], &[&str]),
    next: Option<(usize, &Value)>,
) {
    let place = format!("messages[{index}].tool_calls");
    if ids.iter().collect::<BTreeSet<_>>().len() < ids.len() {
        check.report("duplicate-call", place.clone(), &[]);
    }
    if open.is_empty() {
        return;
    }
    let open_ids = open.join(", ");
    if check.profile.voice == ErrorStyle::Mistral {
        check.report("count", place.clone(), &[]);
    } else {
        check.report("open-calls", place.clone(), &[&open_ids]);
    }
    if let Some((at, message)) = next
        && matches!(role(message), "user" | "system" | "developer")
    {
        let place = format!("messages[{at}]");
        check.report("message-before-results", place, &[&open_ids]);
    }
    if open.len() < ids.len() {
        check.report("part-of-batch", place, &[]);
    }
}
