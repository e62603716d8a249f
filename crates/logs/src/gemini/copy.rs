//! Writes a new chat of Gemini CLI, as JSONL. Messages without changes are copied.

use std::path::Path;

use plimsoll_foreign::{Protocol, Role, Unit};
use plimsoll_wire::__internals::{set, unset};
use serde_json::{Value, json};

use super::{block, id_of, load};
use crate::blocks::{arguments, wire_id};
use crate::copy::{Copy, Group, answer_all, groups, merged, result_text, stem};
use crate::error::LogError;
use crate::ids::Ids;
use crate::session::{SessionLog, text};

/// The number of digits of the id at the end of a file name.
const SHORT: usize = 8;

pub(crate) fn write(
    log: &SessionLog,
    units: &[Unit<'_>],
    tokens: Option<u64>,
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let mut again = SessionLog::new(log.agent, &log.path, Protocol::Messages);
    let chat = load(&mut again)?;
    let id = ids.uuid();
    let mut metadata = Value::Object(chat.metadata);
    set(&mut metadata, "sessionId", id.clone());
    set(&mut metadata, "summary", log.copy_title());
    unset(&mut metadata, &["memoryScratchpad"]);
    if metadata.get("projectHash").is_none() {
        // Its line was damaged. The project names the folder of its chats.
        let folder = log.path.ancestors().nth(2).and_then(Path::file_name);
        let folder = folder.unwrap_or_default().to_string_lossy();
        set(&mut metadata, "projectHash", folder.into_owned());
    }
    let messages: Vec<&Value> = chat.messages.values().collect();
    let mut lines = vec![metadata.to_string()];
    let mut time = Value::Null;
    for group in groups(log, units) {
        let source = group.place.and_then(|place| messages.get(place.line));
        let source = source.copied();
        if let Some(at) = source.and_then(|source| source.get("timestamp")) {
            time = at.clone();
        }
        let mut message = match source {
            Some(source) if group.same => source.clone(),
            _ => message(&group, source, &time, ids),
        };
        let is_answer = text(&message, "/type") == Some("gemini");
        if let Some(tokens) = tokens.filter(|_| is_answer) {
            let tokens = json!({ "input": tokens, "output": 0, "cached": 0, "total": tokens });
            set(&mut message, "tokens", tokens);
        }
        // A line without an id is no message.
        if id_of(&message).is_none() {
            set(&mut message, "id", ids.uuid());
        }
        lines.push(message.to_string());
    }
    let name = stem(&log.path);
    let start = name
        .rsplit_once('-')
        .map_or("session-rescued", |(start, _)| start);
    let short: String = id.chars().take(SHORT).collect();
    Ok(Copy {
        path: log.path.with_file_name(format!("{start}-{short}.jsonl")),
        text: lines.join("\n") + "\n",
        id,
    })
}

fn message(group: &Group<'_>, source: Option<&Value>, time: &Value, ids: &mut Ids) -> Value {
    let own = |key: &str| source.and_then(|source| source.get(key));
    let (results, others) = group.results_and_others();
    let is_call = |unit: &&Unit<'_>| text(unit.value(), "/type") == Some("tool_use");
    let (calls, said): (Vec<&Unit<'_>>, Vec<_>) = others.into_iter().partition(is_call);
    let content = merged(own("content"), |own| block(own).is_none(), said, own_part);
    let mut calls = merged(own("toolCalls"), |_| false, calls, own_call);
    answer_all(&mut calls, results, "/id", answer);
    let new = || json!({ "id": ids.uuid(), "timestamp": time });
    let mut message = source.cloned().unwrap_or_else(new);
    let is_answer = group.role == Role::Assistant;
    set(
        &mut message,
        "type",
        if is_answer { "gemini" } else { "user" },
    );
    set(&mut message, "content", content);
    unset(&mut message, &["displayContent", "toolCalls"]);
    if !calls.is_empty() {
        set(&mut message, "toolCalls", calls);
    }
    message
}

/// Returns the part of a changed text or image.
fn own_part(block: &Value, _: Option<&Value>) -> Option<Value> {
    let of = |pointer: &str| text(block, pointer);
    match of("/type")? {
        "text" => Some(json!({ "text": of("/text") })),
        "image" => Some(json!({ "inlineData": {
            "mimeType": of("/source/media_type"), "data": of("/source/data"),
        } })),
        _ => None,
    }
}

/// Returns a changed call. It keeps everything except its arguments, and its id if that was changed.
fn own_call(block: &Value, own: Option<&Value>) -> Option<Value> {
    let of = |pointer: &str| text(block, pointer);
    let new = || json!({ "id": of("/id"), "name": of("/name"), "status": "error" });
    let mut call = own.cloned().unwrap_or_else(new);
    if text(&call, "/id").map(wire_id).as_deref() != of("/id") {
        set(&mut call, "id", of("/id"));
    }
    set(&mut call, "args", arguments(block.get("input")));
    Some(call)
}

/// Adds a result to its call.
fn answer(call: &mut Value, block: &Value) {
    let result = json!([{ "functionResponse": {
        "id": call.get("id"), "name": call.get("name"), "response": { "output": result_text(block) },
    } }]);
    set(call, "result", result);
    let is_error = block.get("is_error") == Some(&Value::Bool(true));
    set(call, "status", if is_error { "error" } else { "success" });
    unset(call, &["resultDisplay"]);
}
