//! The shapes of Messages.

use plimsoll_wire::__internals::anthropic::is_passed_through;
use plimsoll_wire::__internals::{is_word, set, text};
use plimsoll_wire::{Target, prompt_texts};
use serde_json::{Map, Value, json};

use super::Patient;
use super::piece::{
    as_text, convert, is_file, kind, name_call, part_as_text, said_part, text_part,
};
use super::shapes::reshape;
use crate::unit::{Role, Unit};

/// The longest name of a tool.
const MAX_NAME: usize = 128;
/// The key under which arguments are sent that are no object.
const MALFORMED: &str = "malformed_arguments";

/// Converts every message and block.
pub(super) fn fix(patient: &mut Patient<'_, '_>) {
    entries(patient);
    systems(patient);
    reshape(patient, |unit| match unit.role {
        _ if unit.is_beside() => Some(system(unit.value().clone())),
        role => block(unit.value().clone(), role),
    });
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Makes messages of the entries that are none.
fn entries(patient: &mut Patient<'_, '_>) {
    let mut added: Vec<(usize, Unit<'_>)> = Vec::new();
    for at in 0..patient.chat.units.len() {
        let unit = patient.chat.units.get_mut(at);
        let Some(unit) = unit.filter(|unit| unit.role == Role::Own && unit.is_left()) else {
            continue;
        };
        let (turn, (role, own)) = (unit.turn, blocks(unit.value().clone()));
        let mut own = own.into_iter();
        let done = match own.next() {
            Some(first) => {
                unit.role = role;
                *unit.edit() = first;
                "wrote it as the message that it has to be"
            }
            None => {
                unit.remove();
                "it says nothing; dropped it"
            }
        };
        added.extend(own.map(|block| (at + 1, Unit::inserted(role, turn, block))));
        patient.note(at, done);
    }
    patient.chat.insert_all(added);
}

/// Returns the role and the blocks of an entry, which may be no message.
pub(crate) fn blocks(entry: Value) -> (Role, Vec<Value>) {
    let role = match text(&entry, "role") {
        "assistant" | "model" => Role::Assistant,
        "system" | "developer" => Role::System,
        _ => Role::User,
    };
    let content = match entry {
        Value::Object(mut entry) => entry.shift_remove("content").unwrap_or_default(),
        other @ Value::Null => other,
        other => as_text(&other).into(),
    };
    (role, content_blocks(content))
}

/// Returns the blocks of a content, which may have any type.
fn content_blocks(content: Value) -> Vec<Value> {
    match content {
        Value::Null => Vec::new(),
        Value::Array(blocks) => blocks,
        block @ Value::Object(_) => vec![block],
        other => vec![text_block(&as_text(&other))],
    }
}

/// Moves system messages of the list into the system prompt, again if those before them were removed. Some models
/// accept those behind the first message.
pub(super) fn systems(patient: &mut Patient<'_, '_>) {
    let Target::Messages(profile) = patient.target else {
        return;
    };
    let mut is_first = true;
    let mut moved = Vec::new();
    for at in 0..patient.chat.units.len() {
        let Some(unit) = patient.left(at).filter(|unit| !unit.is_beside()) else {
            continue;
        };
        let is_system = unit.role == Role::System;
        is_first &= is_system;
        if is_system && (is_first || !profile.later_system) {
            moved.extend(block(unit.value().clone(), Role::System));
            patient.remove(at, "moved it into the system prompt");
        }
    }
    if moved.is_empty() {
        return;
    }
    let units = &mut patient.chat.units;
    let is_prompt = |unit: &Unit<'_>| unit.is_beside() && unit.is_left();
    if !units.first().is_some_and(is_prompt) {
        units.insert(0, Unit::beside(None, json!([])));
    }
    if let Some(unit) = units.first_mut() {
        let mut blocks = content_blocks(unit.value().clone());
        blocks.append(&mut moved);
        *unit.edit() = blocks.into();
    }
}

/// Returns a system prompt as the API expects it.
fn system(value: Value) -> Value {
    match value {
        Value::String(_) => value,
        Value::Array(_) | Value::Object(_) => {
            let blocks = content_blocks(value).into_iter();
            blocks.filter_map(|one| block(one, Role::System)).collect()
        }
        other => as_text(&other).into(),
    }
}

/// Returns a block as the API expects it in a message of this role. `None` if it cannot be there.
fn block(value: Value, role: Role) -> Option<Value> {
    let value = match text_part(value, "text") {
        Ok(text) => return text,
        Err(block) => block,
    };
    let is_answer = role == Role::Assistant;
    match kind(&value) {
        _ if role == Role::System => None,
        "image" | "document" if !is_answer => Some(media(value)),
        "tool_result" if !is_answer => Some(result(value)),
        "tool_use" if is_answer => Some(call(value)),
        "thinking" | "redacted_thinking" if is_answer => Some(value),
        kind if is_passed_through(kind) => Some(value),
        _ if is_answer => None,
        _ => said_part(&value).map(|text| text_block(&text)),
    }
}

/// Returns an image or a document if its source is whole, and a note in its place otherwise.
fn media(block: Value) -> Value {
    let source = block.get("source").unwrap_or(&Value::Null);
    let has = |key: &str| !text(source, key).is_empty();
    let is_image = kind(&block) == "image";
    let is_whole = match (kind(source), text(source, "media_type")) {
        ("base64", "image/jpeg" | "image/png" | "image/gif" | "image/webp") => has("data"),
        ("base64", media_type) => has("data") && !is_image && !media_type.is_empty(),
        ("text", _) => has("data"),
        ("url", _) => has("url"),
        ("file", _) => has("file_id"),
        (kind, _) => kind == "content",
    };
    match is_whole {
        true => block,
        false => text_block(prompt_texts::LEFT_OUT),
    }
}

fn call(mut call: Value) -> Value {
    name_call(&mut call, |name| is_word(name) && name.len() <= MAX_NAME);
    let input = match call.get("input") {
        Some(Value::Object(_)) => return call,
        None | Some(Value::Null) => json!({}),
        Some(Value::String(text)) if text.trim().is_empty() => json!({}),
        Some(other) => serde_json::from_str::<Map<String, Value>>(&as_text(other))
            .map_or_else(|_| json!({MALFORMED: other}), Value::from),
    };
    set(&mut call, "input", input);
    call
}

fn result(mut result: Value) -> Value {
    let is_error = result.get("is_error") == Some(&Value::Bool(true));
    if result.get("content").is_some() {
        convert(&mut result, "content", |part| result_part(part, is_error));
    }
    result
}

/// Returns a part of a result. The result of a failed call consists of texts.
fn result_part(part: Value, is_error: bool) -> Option<Value> {
    match kind(&part) {
        "image" | "document" if !is_error && is_file(&part) => Some(media(part)),
        "search_result" | "tool_reference" if !is_error => Some(part),
        "text" | "input_text" | "output_text" | "" => block(part, Role::User),
        _ => Some(text_block(&part_as_text(&part))),
    }
}
