//! Writes a new chat of Gemini CLI, as JSONL. Messages with unchanged blocks are copied unchanged.

use serde_json::{Value, json};

use super::load;
use crate::blocks::{arguments, is_call, own_call};
use crate::copy::{Copy, Group, JsonEntry, joined, parsed, result_text, set, stem};
use crate::error::LogError;
use crate::ids::Ids;
use crate::match_up::MatchedBlock;
use crate::session::{Role, SessionLog, Wire};

/// The number of digits of the id at the end of a file name.
const SHORT: usize = 8;

pub(crate) fn write(
    log: &SessionLog,
    blocks: &[MatchedBlock],
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let mut again = SessionLog::new(log.agent, &log.path, Wire::Messages);
    let chat = load(&log.path, &mut again)?;
    let id = ids.uuid();
    let mut metadata = chat.metadata;
    metadata.insert("sessionId".to_owned(), id.clone().into());
    metadata.shift_remove("memoryScratchpad");
    let mut text = format!("{}\n", Value::Object(metadata));
    let mut time = Value::Null;
    for group in joined(log, blocks)? {
        let source = group.source.and_then(|at| chat.messages.get(at));
        if let Some(at) = source.and_then(|source| source.get("timestamp")) {
            time = at.clone();
        }
        let message = match source {
            Some(source) if group.same => source.clone(),
            _ => message(&group, source, &time, ids)?,
        };
        text.push_str(&message.to_string());
        text.push('\n');
    }
    let name = stem(&log.path);
    let start = name
        .rsplit_once('-')
        .map_or("session-rescued", |(start, _)| start);
    let short: String = id.chars().take(SHORT).collect();
    Ok(Copy {
        path: log.path.with_file_name(format!("{start}-{short}.jsonl")),
        resume: format!("gemini --resume {id}"),
        text,
        id,
    })
}

fn message(
    group: &Group<'_>,
    source: Option<&Value>,
    time: &Value,
    ids: &mut Ids,
) -> Result<Value, LogError> {
    let mut content = Vec::new();
    let mut calls: Vec<Value> = Vec::new();
    for block in &group.blocks {
        let block = parsed(&block.json)?;
        let text = |key| block.get(key).and_then(Value::as_str);
        match text("type") {
            Some("text") => content.push(json!({ "text": text("text") })),
            Some("image") => {
                let image = block.get("source").cloned().unwrap_or_default();
                content.push(json!({ "inlineData": {
                    "mimeType": image.get("media_type"), "data": image.get("data"),
                } }));
            }
            Some("tool_use") => calls.push(call(&block, source)),
            Some("tool_result") => answer(&mut calls, &block),
            _ => {}
        }
    }
    let mut message = match source {
        Some(Value::Object(source)) => source.clone(),
        _ => JsonEntry::new(),
    };
    let is_answer = group.role == Role::Assistant;
    message.entry("id").or_insert_with(|| ids.uuid().into());
    message.entry("timestamp").or_insert_with(|| time.clone());
    message.insert(
        "type".to_owned(),
        if is_answer { "gemini" } else { "user" }.into(),
    );
    message.insert("content".to_owned(), content.into());
    message.shift_remove("displayContent");
    if calls.is_empty() {
        message.shift_remove("toolCalls")
    } else {
        message.insert("toolCalls".to_owned(), calls.into())
    };
    Ok(message.into())
}

/// Returns a call with all its data from the log, except the result.
fn call(block: &Value, source: Option<&Value>) -> Value {
    let id = block.get("id").and_then(Value::as_str).unwrap_or_default();
    let own = own_call(source.and_then(|source| source.get("toolCalls")), "id", id);
    let mut call = own
        .cloned()
        .unwrap_or_else(|| json!({ "id": id, "status": "error" }));
    let name = block.get("name").cloned();
    set(&mut call, "name", name.unwrap_or_default());
    set(&mut call, "args", arguments(block.get("input")));
    set(&mut call, "result", Value::Null);
    call
}

/// Adds a result to its call.
fn answer(calls: &mut [Value], block: &Value) {
    let id = block.get("tool_use_id").and_then(Value::as_str);
    let id = id.unwrap_or_default();
    let Some(call) = calls.iter_mut().find(|call| is_call(call, "id", id)) else {
        return;
    };
    let texts = result_text(block);
    let result = json!([{ "functionResponse": {
        "id": call.get("id"), "name": call.get("name"), "response": { "output": texts },
    } }]);
    set(call, "result", result);
    let is_error = block.get("is_error") == Some(&Value::Bool(true));
    let status = if is_error { "error" } else { "success" };
    set(call, "status", status.into());
    if let Some(call) = call.as_object_mut() {
        call.shift_remove("resultDisplay");
    }
}
