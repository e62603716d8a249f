//! The conditions of `rules/openai_chat.txt` that are code.

use plimsoll_wire::__internals::is_json_object;
use plimsoll_wire::__internals::openai_chat::reasons;
use plimsoll_wire::CallIdForm;
use plimsoll_wire::openai_chat::{Dialect, Reach, reach, takes_temperature};
use serde_json::Value;

use crate::rules::table::{Flag, entries, role, text};

/// All conditions by name.
pub(super) const ALL: [(&str, Flag<Dialect>); 11] = [
    ("nine", |_, _, id| {
        let id = id.and_then(Value::as_str);
        id.is_some_and(|id| CallIdForm::NineAlphanumeric.accepts(id))
    }),
    ("object-text", |_, _, arguments| {
        let arguments = arguments.and_then(Value::as_str);
        arguments.is_some_and(is_json_object)
    }),
    ("reasons", |_, request, _| reasons(text(request, "model"))),
    ("fixed-temperature", |_, request, temperature| {
        let model = request.get("model").and_then(Value::as_str);
        let effort = request.get("reasoning_effort").and_then(Value::as_str);
        let values = model.zip(temperature.and_then(Value::as_f64));
        values.is_some_and(|(model, value)| !takes_temperature(model, effort, value))
    }),
    ("elsewhere", |_, request, _| {
        reach(text(request, "model")) == Reach::Nothing
    }),
    ("no-tools", |_, request, _| {
        reach(text(request, "model")) == Reach::NoTools
    }),
    ("tools-unasked", |_, request, _| {
        reach(text(request, "model")) == Reach::ToolsUnasked
    }),
    ("tools-at-none", |_, request, _| {
        reach(text(request, "model")) == Reach::ToolsAtNone
    }),
    // Another message of the same exchange has tool calls.
    ("calls-tools", |check, _, _| {
        let (before, after) = check.list.split_at(check.entry);
        let is_user = |message: &&Value| role(message) == "user";
        let before = before.iter().rev().take_while(|one| !is_user(one));
        let after = after.iter().take_while(|one| !is_user(one));
        let mut exchange = before.chain(after);
        exchange.any(|message| !entries(message, "tool_calls").is_empty())
    }),
    // Only system messages come before it.
    ("opens", |check, _, _| {
        let mut before = check.list.iter().take(check.entry);
        before.all(|message| matches!(role(message), "system" | "developer"))
    }),
    ("mentions-json", |_, request, _| {
        let messages = entries(request, "messages").iter();
        let mut contents = messages.filter_map(|message| message.get("content"));
        contents.any(|content| content.to_string().to_lowercase().contains("json"))
    }),
];
