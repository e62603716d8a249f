//! The rules that compare messages: their order, and the pairs of tool calls and results.

use std::collections::BTreeSet;

use plimsoll_wire::openai_chat::{EchoReasoning, EmptyReasoning, ErrorStyle};
use serde_json::Value;

use super::validate::ChatCheck;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{entries, role, text};

/// Judges whether reasoning is sent back if the server requires it: OC6.
pub(super) fn reasoning(check: &mut ChatCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let dialect = check.profile;
    let refusal = match dialect.voice {
        ErrorStyle::Kimi => "no-reasoning-kimi",
        _ => "no-reasoning",
    };
    let mut index = 0;
    let messages = entries(request, "messages");
    for exchange in messages.split_inclusive(|message| role(message) == "user") {
        let in_exchange = exchange.iter().any(has_calls);
        for message in exchange {
            let is_required = match dialect.echo_reasoning {
                EchoReasoning::Never => false,
                EchoReasoning::ToolTurns => has_calls(message),
                EchoReasoning::ToolExchanges => in_exchange && role(message) == "assistant",
                EchoReasoning::Always => role(message) == "assistant",
            };
            let is_there = match message.get("reasoning_content").and_then(Value::as_str) {
                Some(text) => !text.is_empty() || dialect.empty_reasoning != EmptyReasoning::Space,
                None => dialect.empty_reasoning == EmptyReasoning::Omit,
            };
            if is_required && !is_there {
                let place = format!("messages[{index}].reasoning_content");
                check.report(refusal, place, &[&index]);
            }
            index += 1;
        }
    }
}

/// Judges whether tool calls and tool messages answer each other: OC1, OC2, OC3, OC7's count, V3 and V4.
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

/// Judges the neighbours of messages and the whole list: OC7, OC8, T1 to T4.
pub(super) fn order(check: &mut ChatCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let messages = entries(request, "messages");
    let dialect = check.profile;
    let is_mistral = dialect.voice == ErrorStyle::Mistral;
    let mut previous = &Value::Null;
    let mut only_systems = true;
    for (index, message) in messages.iter().enumerate() {
        let (role, before) = (role(message), role(previous));
        let is_system = matches!(role, "system" | "developer");
        // Mistral accepts consecutive user messages and an assistant message at the start. Calls
        // without results are reported elsewhere.
        let out_of_turn = match role {
            "assistant" if is_mistral => before == role && !has_calls(previous),
            "assistant" => before == role || only_systems,
            "user" => before == role && !is_mistral,
            _ => false,
        };
        let after_tool = role == "user" && before == "tool";
        for (is_broken, refusal) in [
            (
                is_system && index > 0 && dialect.system_first,
                "late-system",
            ),
            (after_tool && !dialect.user_after_tool, "user-after-tool"),
            (out_of_turn && dialect.merges_roles, "alternate"),
        ] {
            let place = format!("messages[{index}].role");
            if is_broken && is_mistral {
                check.report("unexpected", place, &[&role, &before]);
            } else if is_broken {
                check.report(refusal, place, &[]);
            }
        }
        previous = message;
        only_systems &= is_system;
    }
    // Mistral continues an assistant message that asks for it.
    let is_prefix = is_mistral && previous.get("prefix") == Some(&Value::Bool(true));
    if role(previous) == "assistant" && !dialect.prefill && !is_prefix {
        let refusal = if is_mistral { "last-role" } else { "prefill" };
        let last = messages.len().saturating_sub(1);
        check.report(refusal, format!("messages[{last}]"), &[]);
    }
    if dialect.needs_user && !messages.iter().any(|message| role(message) == "user") {
        check.report("no-user", "messages", &[]);
    }
}

fn has_calls(message: &Value) -> bool {
    !entries(message, "tool_calls").is_empty()
}
