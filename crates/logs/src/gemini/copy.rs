//! Writes a new chat of Gemini CLI, as JSONL. Messages without changes are copied.

use std::path::Path;

use plimsoll_foreign::{Change, Protocol, Role, Unit};
use serde_json::{Value, json};

use super::load;
use crate::blocks::{arguments, wire_id};
use crate::copy::{Copy, Group, groups, result_text, set, stem, unset};
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
    let mut lines = vec![metadata.to_string()];
    let mut time = Value::Null;
    for group in groups(log, units) {
        let source = group.place.and_then(|place| chat.messages.get(place.line));
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
    let own = source.and_then(|source| source.get("toolCalls")?.as_array());
    let own_call = |id: &str| {
        let mut own = own.into_iter().flatten();
        own.find(|call| text(call, "/id").map(wire_id).as_deref() == Some(id))
    };
    let mut content = Vec::new();
    let mut calls: Vec<(&str, Value)> = Vec::new();
    let (results, others) = group.results_and_others();
    for unit in others {
        let block = unit.value();
        let of = |pointer: &str| text(block, pointer);
        match of("/type") {
            Some("text") => content.push(json!({ "text": of("/text") })),
            Some("image") => content.push(json!({ "inlineData": {
                "mimeType": of("/source/media_type"), "data": of("/source/data"),
            } })),
            Some("tool_use") => {
                let id = of("/id").unwrap_or_default();
                let new = || json!({ "id": id, "name": of("/name"), "status": "error" });
                let mut call = own_call(id).cloned().unwrap_or_else(new);
                set(&mut call, "args", arguments(block.get("input")));
                calls.push((id, call));
            }
            _ => {}
        }
    }
    for unit in results {
        let id = text(unit.value(), "/tool_use_id").unwrap_or_default();
        let call = calls.iter_mut().find(|(call, _)| *call == id);
        if let Some((_, call)) = call.filter(|_| unit.change() != Change::Unchanged) {
            answer(call, unit.value());
        }
    }
    let mut message = source
        .cloned()
        .unwrap_or_else(|| json!({ "id": ids.uuid(), "timestamp": time }));
    let is_answer = group.role == Role::Assistant;
    set(
        &mut message,
        "type",
        if is_answer { "gemini" } else { "user" },
    );
    set(&mut message, "content", content);
    unset(&mut message, &["displayContent", "toolCalls"]);
    if !calls.is_empty() {
        let calls: Vec<Value> = calls.into_iter().map(|(_, call)| call).collect();
        set(&mut message, "toolCalls", calls);
    }
    message
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
