//! Judges whether thinking fits the current tool loop: AM9.

use serde_json::Value;

use super::validate::MessagesCheck;
use crate::rules::json_path::JsonPath;
use crate::rules::table::{content, entries, kind, role};

/// If the model thinks with a budget, the current tool loop must have begun with thinking. If it does not
/// think, the newest message of the loop must not contain thinking.
pub(super) fn thinking(check: &mut MessagesCheck<'_>, _: &JsonPath<'_>, request: &Value) {
    let messages = entries(request, "messages");
    match request.get("thinking").map_or("", kind) {
        "enabled" => begun_with_thinking(check, messages),
        "" | "disabled" if !check.profile.unasked_thinking => unasked(check, messages),
        _ => {}
    }
}

fn begun_with_thinking(check: &mut MessagesCheck<'_>, messages: &[Value]) {
    let mut rest = messages;
    // The beginning of a reply, if the model continues one.
    let mut reply = match rest {
        [before @ .., last] if role(last) == "assistant" => {
            rest = before;
            Some(last)
        }
        _ => None,
    };
    while let [before @ .., call, results] = rest
        && has_results(results)
        && role(call) == "assistant"
    {
        rest = before;
        reply = Some(call);
    }
    let index = rest.len();
    let Some(first) = reply.map(|reply| content(reply).first()) else {
        return;
    };
    if !first.is_some_and(is_thinking) {
        let place = format!("messages.{index}.content.0");
        let found = first.map_or("text", kind);
        check.report("loop-without-thinking", place, &[&found]);
    }
}

fn unasked(check: &mut MessagesCheck<'_>, messages: &[Value]) {
    let mut rest = messages.iter().enumerate().rev();
    let last = rest.find(|(_, message)| !has_results(message));
    let Some((index, last)) = last.filter(|(_, last)| role(last) == "assistant") else {
        return;
    };
    let mut blocks = content(last).iter().enumerate();
    if let Some((at, block)) = blocks.find(|(_, block)| is_thinking(block)) {
        let place = format!("messages.{index}.content.{at}");
        check.report("unasked-thinking", place, &[&kind(block)]);
    }
}

/// Checks whether it is a user message with results of tools.
fn has_results(message: &Value) -> bool {
    let mut blocks = content(message).iter();
    role(message) == "user" && blocks.any(|block| kind(block) == "tool_result")
}

pub(super) fn is_thinking(block: &Value) -> bool {
    matches!(kind(block), "thinking" | "redacted_thinking")
}
