//! Trajectories of SWE-agent (`.traj`) and mini-SWE-agent (`.traj.json`): read only, since neither of them can
//! resume from a file.

use std::path::Path;

use plimsoll_foreign::{Protocol, Role};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::copy::set;
use crate::error::LogError;
use crate::input::{open, read_rest};
use crate::session::{SessionLog, text};

const NOTHING: &str = "its history is empty";

/// Reads the history of a SWE-agent trajectory.
pub(crate) fn read_swe_agent(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::SweAgent, path, Protocol::Chat);
    let document = document(&mut log)?;
    for (at, entry) in entries(&document, "history") {
        push(&mut log, at, entry, entry.pointer("/tool_call_ids/0"));
    }
    log.checked(NOTHING)
}

/// Reads a mini-SWE-agent trajectory.
pub(crate) fn read_mini_swe_agent(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::MiniSweAgent, path, Protocol::Chat);
    let document = document(&mut log)?;
    log.model = text(&document, "/info/config/model/model_name").map(str::to_owned);
    for (at, entry) in entries(&document, "messages") {
        // The last entry may be the note `exit`, which no model sees.
        let role = text(entry, "/role");
        if role.is_some_and(|role| ["system", "user", "assistant", "tool"].contains(&role)) {
            push(&mut log, at, entry, entry.get("tool_call_id"));
        }
    }
    log.checked(NOTHING)
}

/// Reads a log that is one JSON document. Damage is recorded in the log.
fn document(log: &mut SessionLog) -> Result<Value, LogError> {
    let mut text = Vec::new();
    let halves = read_rest(&log.path, open(&log.path)?, &mut text)?;
    log.replaced(None, halves);
    Ok(serde_json::from_slice(&text).unwrap_or_else(|error| {
        log.damaged(error.line(), error.to_string());
        Value::Null
    }))
}

fn entries<'d>(document: &'d Value, key: &str) -> impl Iterator<Item = (usize, &'d Value)> {
    let entries = document.get(key).and_then(Value::as_array);
    entries.into_iter().flatten().enumerate()
}

/// Adds an entry in the shape of Chat Completions; `call` is the id of the call of a result.
fn push(log: &mut SessionLog, at: usize, entry: &Value, call: Option<&Value>) {
    let role = text(entry, "/role").unwrap_or("user");
    let mut message = json!({ "role": role, "content": entry.get("content") });
    if let Some(calls) = entry.get("tool_calls").filter(|calls| calls.is_array()) {
        set(&mut message, "tool_calls", calls.clone());
    }
    if role == "tool" {
        set(
            &mut message,
            "tool_call_id",
            call.cloned().unwrap_or_default(),
        );
    }
    log.push(at, [(0, Role::Own, message)]);
}
