//! The output of `codex exec --json`: JSONL with events of a thread, its turns and their items. It
//! contains the texts and calls of the agent, but no messages of the user.

use plimsoll_foreign::Role;
use plimsoll_wire::__internals::{set, unset};
use serde_json::{Value, json};

use crate::error::LogError;
use crate::input::{EntryPlace, for_each_entry};
use crate::session::{SessionLog, text};

/// The keys of an item that are its result. The others are the arguments of a call.
const RESULT: [&str; 5] = [
    "aggregated_output",
    "exit_code",
    "result",
    "error",
    "status",
];

/// Reads the output of a run, with items that did not end as calls without a result.
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    let mut open: Vec<(EntryPlace, Value)> = Vec::new();
    for_each_entry(log, |log, entry| {
        let value = |key: &str| entry.value(key).unwrap_or_default();
        let item = value("item");
        let is_same = |other: &Value| other.get("id") == item.get("id");
        match entry.text("type").unwrap_or_default().as_str() {
            "thread.started" => log.id = entry.text("thread_id").unwrap_or_default(),
            "item.started" | "item.updated" => {
                match open.iter_mut().find(|(_, other)| is_same(other)) {
                    Some((_, other)) => *other = item,
                    None => open.push((entry.place, item)),
                }
            }
            "item.completed" => {
                open.retain(|(_, other)| !is_same(other));
                push(log, entry.place, &item, true);
            }
            "error" => log.last_error = entry.text("message"),
            "turn.failed" => {
                log.last_error = text(&value("error"), "/message").map(str::to_owned);
            }
            "turn.completed" => log.last_error = None,
            _ => {}
        }
    })?;
    for (place, item) in open {
        push(log, place, &item, false);
    }
    Ok("it contains no items; name the file with the whole output of the run")
}

/// Adds an item: a message, or a call with the name of the item's type and, if it `ended`, its result.
fn push(log: &mut SessionLog, place: EntryPlace, item: &Value, ended: bool) {
    let kind = text(item, "/type").or(text(item, "/item_type"));
    let kind = match kind.unwrap_or_default() {
        "agent_message" | "assistant_message" => {
            let content = json!([{ "type": "output_text", "text": text(item, "/text") }]);
            let message = json!({ "type": "message", "role": "assistant", "content": content });
            log.push(place, [(0, Role::Own, message)]);
            return;
        }
        // Reasoning and notes of Codex are not part of a history.
        "" | "reasoning" | "error" => return,
        kind => kind,
    };
    let (mut arguments, mut result) = (item.clone(), json!({}));
    unset(&mut arguments, &["id", "type", "item_type"]);
    for key in RESULT {
        if let Some(value) = item.get(key).filter(|value| !value.is_null()) {
            set(&mut result, key, value.clone());
        }
        unset(&mut arguments, &[key]);
    }
    let id = format!("exec_{}", place.number);
    let call = json!({
        "type": "function_call", "call_id": id, "name": kind, "arguments": arguments.to_string(),
    });
    let output =
        json!({ "type": "function_call_output", "call_id": id, "output": result.to_string() });
    let output = ended.then_some((1, Role::Own, output));
    log.push(place, std::iter::once((0, Role::Own, call)).chain(output));
}
