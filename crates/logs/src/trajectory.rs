//! Trajectories of OpenHands (event histories), SWE-agent (`.traj`) and mini-SWE-agent
//! (`.traj.json`): read only, since none of them can resume from a file.

use std::path::Path;

use plimsoll_foreign::{Protocol, Role};
use plimsoll_wire::__internals::set;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::error::LogError;
use crate::input::{for_each_entry, open, read_rest};
use crate::session::{SessionLog, text};

const NOTHING: &str = "its history is empty";

/// Reads a trajectory of SWE-agent or mini-SWE-agent, whose messages are the list with this key.
pub(crate) fn read_messages(path: &Path, agent: Agent, key: &str) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(agent, path, Protocol::Chat);
    let document = document(&mut log)?;
    log.model = text(&document, "/info/config/model/model_name").map(str::to_owned);
    let entries = document.get(key).and_then(Value::as_array);
    for (at, entry) in entries.into_iter().flatten().enumerate() {
        log.push(at, message(entry).map(|message| (0, Role::Own, message)));
    }
    log.checked(NOTHING)
}

/// Reads a log that is one JSON document. Damage is recorded in the log.
fn document(log: &mut SessionLog) -> Result<Value, LogError> {
    let mut text = Vec::new();
    let input = open(&log.path)?;
    read_rest(log, input, &mut text)?;
    Ok(serde_json::from_slice(&text).unwrap_or_else(|error| {
        log.damaged(error.line(), error.to_string());
        Value::Null
    }))
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

/// Reads the first event history of a file of OpenHands.
pub(crate) fn read_openhands(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::OpenHands, path, Protocol::Chat);
    for_each_entry(&mut log, |log, entry| {
        if !log.units.is_empty() {
            return;
        }
        log.id = entry.text("instance_id").unwrap_or_default();
        let metadata = entry.value("metadata").unwrap_or_default();
        log.model = text(&metadata, "/llm_config/model").map(str::to_owned);
        match entry.value("history") {
            Ok(history) => {
                let events = history.as_array().into_iter().flatten();
                for (at, event) in events.enumerate() {
                    log.push(
                        at,
                        event_message(event).map(|message| (0, Role::Own, message)),
                    );
                }
            }
            Err(error) => log.damaged(
                entry.place.line,
                format!("its history cannot be read: {error}"),
            ),
        }
    })?;
    log.checked(NOTHING)
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
    let action = text("/action");
    match (text("/source"), action) {
        (_, Some("system")) => Some(json!({ "role": "system", "content": text("/args/content")? })),
        (Some("user"), Some("message")) => {
            Some(json!({ "role": "user", "content": text("/args/content")? }))
        }
        (Some("agent"), Some("message")) => {
            Some(json!({ "role": "assistant", "content": text("/args/content")? }))
        }
        (Some("agent"), Some(_)) => {
            let message = event.pointer("/tool_call_metadata/model_response/choices/0/message");
            let calls = message.and_then(|message| message.get("tool_calls")?.as_array());
            let mut calls = calls.into_iter().flatten();
            let one = calls.find(|one| one.get("id").and_then(Value::as_str) == call)?;
            let content = message.and_then(|message| message.get("content")).cloned();
            Some(json!({
                "role": "assistant", "content": content.unwrap_or_default(), "tool_calls": [one],
            }))
        }
        _ => None,
    }
}
