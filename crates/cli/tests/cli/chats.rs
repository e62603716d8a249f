//! Chats for the filters, and an independent check of the filters' output.

use plimsoll::tokens::{Bpe, TokenCounter};
use plimsoll::wire::openai_chat::Dialect;
use plimsoll::{Message, Tokens};
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_wire::openai_chat;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) const TASK: &str = "Find the fault in the parser and mend it.";
pub(crate) const QUESTION: &str = "And what did the last test say?";

/// A task, `count` calls with a result of some hundred tokens each, and a last question.
pub(crate) fn messages(count: usize) -> Vec<Value> {
    let mut messages = vec![
        json!({"role": "system", "content": "You mend programs."}),
        json!({"role": "user", "content": TASK}),
    ];
    for at in 0..count {
        let id = format!("call_{at}");
        let arguments = format!("{{\"path\":\"src/part{at}.rs\"}}");
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}}]}));
        let lines: Vec<String> = (0..40)
            .map(|line| format!("{line}: let value_{line} = step({at}, {line});"))
            .collect();
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": lines.join("\n")}));
    }
    messages.push(json!({"role": "assistant", "content": "The fault was an off-by-one."}));
    messages.push(json!({"role": "user", "content": QUESTION}));
    messages
}

pub(crate) fn tools() -> Value {
    json!([{"type": "function", "function": {"name": "read", "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}])
}

/// What a chat weighs, tools included.
pub(crate) fn weight(chat: &str) -> Tokens {
    let counter = Bpe::o200k();
    let chat = openai_chat::read(chat).unwrap();
    let messages: Tokens = chat.messages.iter().map(|one| counter.message(one)).sum();
    let tools: Tokens = chat.tools.iter().map(|tool| counter.tool(tool)).sum();
    messages + tools
}

/// What the strictest servers say against a chat.
pub(crate) fn faults(chat: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(chat).unwrap();
    let dialects = [Dialect::openai(), Dialect::compatible()];
    let faults = dialects
        .iter()
        .flat_map(|dialect| validate(&value, dialect))
        // Other keys are the caller's, and come back as they are.
        .filter(|fault| fault.place.starts_with("messages"));
    faults.map(|fault| format!("{fault:?}")).collect()
}

/// The raw text of every message.
pub(crate) fn raw(chat: &str) -> Vec<String> {
    let list: &RawValue = if chat.trim_start().starts_with('[') {
        serde_json::from_str(chat).unwrap()
    } else {
        let object: std::collections::HashMap<String, &RawValue> =
            serde_json::from_str(chat).unwrap();
        object["messages"]
    };
    let list: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap();
    list.iter().map(|raw| raw.get().to_owned()).collect()
}

/// The texts of the messages that people wrote.
pub(crate) fn asked(chat: &str) -> Vec<String> {
    let chat = openai_chat::read(chat).unwrap();
    let users = chat
        .messages
        .iter()
        .filter(|one| matches!(one, Message::User { .. }));
    users.map(Message::text).collect()
}
