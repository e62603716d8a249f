//! Writes a new chat of Gemini CLI, as JSONL. Messages without changes are copied.

use std::path::Path;

use plimsoll_foreign::Role;
use plimsoll_wire::__internals::{RawObject, quoted, set, unset};
use serde_json::{Value, json};

use super::{block, parts};
use crate::blocks::arguments;
use crate::copy::{
    CopiedEntry, Copy, EntryWriter, Group, answer_all, called, merged, result_text, stem,
};
use crate::session::{SessionLog, text};

/// The number of digits of the id at the end of a file name.
const SHORT: usize = 8;

/// Returns the file name of a copy.
pub(crate) fn name(log: &SessionLog, id: &str) -> String {
    let name = stem(&log.path);
    let start = name.rsplit_once('-');
    let start = start.map_or("session-rescued", |(start, _)| start);
    let short: String = id.chars().take(SHORT).collect();
    format!("{start}-{short}.jsonl")
}

pub(crate) struct GeminiWriter;

impl EntryWriter for GeminiWriter {
    fn begin(&mut self, new: &mut Copy<'_>, _: &RawObject<'_>) {
        let mut metadata = new.log.metadata.clone();
        set(&mut metadata, "sessionId", new.id.clone());
        set(&mut metadata, "summary", new.log.copy_title());
        unset(&mut metadata, &["memoryScratchpad"]);
        if metadata.get("projectHash").is_none() {
            // Its line was damaged. The project names the folder of its chats.
            let folder = new.log.path.ancestors().nth(2).and_then(Path::file_name);
            let folder = folder.unwrap_or_default().to_string_lossy();
            set(&mut metadata, "projectHash", folder.into_owned());
        }
        new.line(&metadata.to_string());
    }

    fn entry(&mut self, new: &mut Copy<'_>, entry: &CopiedEntry<'_>) {
        let CopiedEntry { group, own, near } = entry;
        let mut changes = Vec::new();
        // A line without an id is no message.
        if !own.get("id").is_some_and(|id| id.starts_with('"')) {
            changes.push(("id", Some(quoted(&new.ids.uuid()))));
        }
        if !group.is_same() {
            let message: Value = serde_json::from_str(&own.with(&[])).unwrap_or_default();
            let is_answer = group.role == Role::Assistant;
            let kind = if is_answer { "gemini" } else { "user" };
            let time = near.get("timestamp").unwrap_or("null").to_owned();
            let (content, calls) = pieces(group, &message);
            let calls = Some(Value::from(calls).to_string()).filter(|calls| calls != "[]");
            changes.extend([
                ("timestamp", Some(time)),
                ("type", Some(quoted(kind))),
                ("content", Some(Value::from(content).to_string())),
                ("displayContent", None),
                ("toolCalls", calls),
            ]);
        }
        let kind = own
            .get("type")
            .map_or(group.role == Role::Assistant, |kind| kind == "\"gemini\"");
        if let Some(tokens) = new.tokens.filter(|_| kind) {
            let tokens = json!({ "input": tokens, "output": 0, "cached": 0, "total": tokens });
            changes.push(("tokens", Some(tokens.to_string())));
        }
        new.line(&own.with(&changes));
    }
}

/// Returns the parts and the calls of a changed message. Calls in its parts become calls of `toolCalls`.
fn pieces(group: &Group<'_>, message: &Value) -> (Vec<Value>, Vec<Value>) {
    let (results, mut others) = group.results_and_others();
    let tagged = |call: &Value| json!({ "toolCall": call });
    let calls = message.get("toolCalls").and_then(Value::as_array);
    let part = |part: &Value| match (part, part.get("functionCall")) {
        (Value::String(text), _) => json!({ "text": text }),
        (_, Some(call)) => tagged(call),
        (part, None) => part.clone(),
    };
    let mut own: Vec<Value> = parts(message).iter().map(part).collect();
    own.extend(calls.into_iter().flatten().map(tagged));
    let is_unseen = |own: &Value| own.get("toolCall").is_none() && block(own).is_none();
    if group.role != Role::Assistant {
        others.extend(&results);
    }
    let mut pieces = merged(&own, is_unseen, others, own_piece);
    answer_all(&mut pieces, results, "/toolCall/id", answer);
    let mut calls = Vec::new();
    pieces.retain_mut(|piece| {
        let call = piece.get_mut("toolCall").map(Value::take);
        let is_part = call.is_none() && *piece != json!({ "text": "" });
        calls.extend(call);
        is_part
    });
    (pieces, calls)
}

/// Returns the piece of a changed block. A call keeps everything except its arguments.
fn own_piece(block: &Value, own: Option<&Value>) -> Option<Value> {
    let of = |pointer: &str| text(block, pointer);
    Some(match of("/type")? {
        "text" => json!({ "text": of("/text") }),
        "image" => json!({ "inlineData": {
            "mimeType": of("/source/media_type"), "data": of("/source/data"),
        } }),
        "tool_result" => {
            let name = own.and_then(|own| own.pointer("/functionResponse/name"));
            response(of("/tool_use_id"), name, block)
        }
        "tool_use" => {
            let own = own.and_then(|own| own.get("toolCall"));
            let mut call = called(block, own, ["id", "name"], json!({ "status": "error" }));
            set(&mut call, "args", arguments(block.get("input")));
            json!({ "toolCall": call })
        }
        _ => return None,
    })
}

fn response(id: Option<&str>, name: Option<&Value>, block: &Value) -> Value {
    json!({ "functionResponse": {
        "id": id, "name": name, "response": { "output": result_text(block) },
    } })
}

/// Adds a result to its call.
fn answer(piece: &mut Value, block: &Value) {
    let Some(call) = piece.get_mut("toolCall") else {
        return;
    };
    let result = response(text(call, "/id"), call.get("name"), block);
    set(call, "result", json!([result]));
    let is_error = block.get("is_error") == Some(&Value::Bool(true));
    set(call, "status", if is_error { "error" } else { "success" });
    unset(call, &["resultDisplay"]);
}
