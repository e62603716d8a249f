//! Trajectories of OpenHands (event histories) and SWE-agent (`.traj`): read only, since neither
//! can resume from a file.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::copy::set;
use crate::error::LogError;
use crate::input::{for_each_line, open, read_rest};
use crate::session::{Role, SessionLog, Wire};

const NOTHING: &str = "its history is empty";

/// Reads the history of a SWE-agent trajectory.
pub(crate) fn read_swe_agent(path: &Path) -> Result<SessionLog, LogError> {
    let mut text = Vec::new();
    read_rest(path, open(path)?, &mut text)?;
    let mut log = SessionLog::new(Agent::SweAgent, path, Wire::Chat);
    let document: Value = match serde_json::from_slice(&text) {
        Ok(document) => document,
        Err(error) => {
            log.damaged(error.line(), error.to_string());
            Value::Null
        }
    };
    let history = document.get("history").and_then(Value::as_array);
    for (at, entry) in history.into_iter().flatten().enumerate() {
        let role = entry.get("role").and_then(Value::as_str).unwrap_or("user");
        let content = entry.get("content").cloned().unwrap_or_default();
        let mut message = json!({ "role": role, "content": content });
        if let Some(calls) = entry.get("tool_calls").filter(|calls| calls.is_array()) {
            set(&mut message, "tool_calls", calls.clone());
        }
        if role == "tool" {
            set(
                &mut message,
                "tool_call_id",
                entry
                    .pointer("/tool_call_ids/0")
                    .cloned()
                    .unwrap_or_default(),
            );
        }
        log.push(Role::Other, at, message.to_string());
    }
    log.checked(NOTHING)
}

/// Reads the first event history of a file of OpenHands.
pub(crate) fn read_openhands(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::OpenHands, path, Wire::Chat);
    for_each_line(path, |number, line| {
        if !log.blocks.is_empty() {
            return;
        }
        let Some(run) = log.parse::<Value>(number, &line) else {
            return;
        };
        let text = |pointer: &str| run.pointer(pointer).and_then(Value::as_str);
        log.id = text("/instance_id").unwrap_or_default().to_owned();
        log.model = text("/metadata/llm_config/model").map(str::to_owned);
        let history = run.get("history").and_then(Value::as_array);
        for (at, event) in history.into_iter().flatten().enumerate() {
            if let Some(message) = event_message(event) {
                log.push(Role::Other, at, message.to_string());
            }
        }
    })?;
    log.checked(NOTHING)
}

/// Converts an event to a message of a chat. Returns `None` for events that the model does not see.
fn event_message(event: &Value) -> Option<Value> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
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
