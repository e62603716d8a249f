//! Trajectories of OpenHands (event histories), SWE-agent (`.traj`) and mini-SWE-agent
//! (`.traj.json`): read only, since none of them can resume from a file.

use plimsoll_foreign::Role;
use plimsoll_wire::__internals::set;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::error::LogError;
use crate::input::for_each_entry;
use crate::session::{SessionLog, text};

/// Reads the first history of a file. OpenHands writes one on each line.
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    let mut is_over = false;
    for_each_entry(log, |log, entry| {
        let value = |key: &str| entry.value(key).unwrap_or_default();
        is_over |= !entry.place.is_listed && !log.units.is_empty();
        if is_over {
            return;
        }
        if !entry.place.is_listed {
            log.id = entry.text("instance_id").unwrap_or_default();
            let model = text(&value("info"), "/config/model/model_name").map(str::to_owned);
            let of_events = text(&value("metadata"), "/llm_config/model").map(str::to_owned);
            log.model = model.or(of_events);
            return;
        }
        let read = entry
            .object()
            .map(Value::from)
            .map(|entry| match log.agent {
                Agent::OpenHands => event_message(&entry),
                _ => message(&entry),
            });
        match read {
            Ok(message) => log.push(entry.place, message.map(|one| (0, Role::Own, one))),
            Err(error) => log.unread(entry, "it", &error),
        }
    })?;
    Ok("its history is empty")
}

/// Converts an entry to a message of Chat Completions. Returns `None` for others, such as the note `exit` at the end.
fn message(entry: &Value) -> Option<Value> {
    let role = text(entry, "/role")?;
    if !["system", "user", "assistant", "tool"].contains(&role) {
        return None;
    }
    let mut message = json!({ "role": role, "content": entry.get("content") });
    if let Some(calls) = entry.get("tool_calls").filter(|calls| calls.is_array()) {
        set(&mut message, "tool_calls", calls.clone());
    }
    if role == "tool" {
        let id = text(entry, "/tool_call_id").or(text(entry, "/tool_call_ids/0"));
        set(&mut message, "tool_call_id", id);
    }
    Some(message)
}

/// Converts an event to a message of a chat. Returns `None` for events that the model does not see.
fn event_message(event: &Value) -> Option<Value> {
    let text = |pointer: &str| text(event, pointer);
    let call = text("/tool_call_metadata/tool_call_id");
    if event.get("observation").is_some() {
        return Some(json!({
            "role": "tool", "tool_call_id": call?, "content": text("/content").unwrap_or_default(),
        }));
    }
    let role = match (text("/source"), text("/action")) {
        (_, Some("system")) => "system",
        (Some("user"), Some("message")) => "user",
        (Some("agent"), Some("message")) => "assistant",
        (Some("agent"), Some(_)) => {
            let message = event.pointer("/tool_call_metadata/model_response/choices/0/message");
            let calls = message.and_then(|message| message.get("tool_calls")?.as_array());
            let mut calls = calls.into_iter().flatten();
            let one = calls.find(|one| one.get("id").and_then(Value::as_str) == call)?;
            let content = message.and_then(|message| message.get("content")).cloned();
            return Some(json!({
                "role": "assistant", "content": content.unwrap_or_default(), "tool_calls": [one],
            }));
        }
        _ => return None,
    };
    Some(json!({ "role": role, "content": text("/args/content")? }))
}
