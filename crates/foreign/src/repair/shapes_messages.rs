//! The shapes of Messages.

use std::mem;

use plimsoll_wire::__internals::{is_word, legal_name};
use plimsoll_wire::anthropic::MessagesProfile;
use plimsoll_wire::prompt_texts;
use serde_json::{Map, Value, json};

use super::Patient;
use super::piece::{
    as_text, is_file, is_text, kind, list_mut, number_id, part_as_text, set, text, text_part,
};
use super::shapes::reshape;
use crate::unit::{Place, Role, Unit};

/// The longest name of a tool.
const MAX_NAME: usize = 128;
/// The types of images that the API reads.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
/// The key under which arguments are sent that are no object.
const MALFORMED: &str = "malformed_arguments";

/// Converts every message and block.
pub(super) fn fix(patient: &mut Patient<'_, '_>, profile: &MessagesProfile) {
    entries(patient);
    systems(patient, profile);
    patient.each(|unit| {
        let new = match unit.role {
            _ if unit.is_beside() => Some(system(unit.value().clone())),
            role => block(unit.value().clone(), role),
        };
        reshape(unit, new)
    });
}

/// Makes messages of the entries that are none.
fn entries(patient: &mut Patient<'_, '_>) {
    let mut at = 0;
    let old = mem::take(&mut patient.chat.units);
    let mut odd = Vec::new();
    for mut unit in old {
        if unit.role != Role::Own || !unit.is_left() {
            patient.chat.units.push(unit);
            at += 1;
            continue;
        }
        odd.push(at);
        let Some((role, blocks)) = message(unit.value()) else {
            unit.remove();
            patient.chat.units.push(unit);
            at += 1;
            continue;
        };
        unit.role = role;
        let turn = unit.turn;
        let mut blocks = blocks.into_iter();
        match blocks.next() {
            Some(first) => *unit.edit() = first,
            None => unit.remove(),
        }
        patient.chat.units.push(unit);
        let rest = blocks.map(|block| Unit::inserted(role, turn, block));
        patient.chat.units.extend(rest);
        at = patient.chat.units.len();
    }
    for at in odd {
        let is_left = patient.chat.units.get(at).is_some_and(Unit::is_left);
        patient.note(
            at,
            if is_left {
                "wrote it as the message that it has to be"
            } else {
                "it says nothing; dropped it"
            },
        );
    }
}

/// Returns the role and the blocks of an entry that is no message.
fn message(entry: &Value) -> Option<(Role, Vec<Value>)> {
    let text_block = |text: &str| json!({"type": "text", "text": text});
    match entry {
        Value::Null => return None,
        Value::Object(_) => {}
        other => return Some((Role::User, vec![text_block(&as_text(other))])),
    }
    let content = entry.get("content").cloned().unwrap_or_default();
    let role = match text(entry, "role") {
        "assistant" | "model" => Role::Assistant,
        "system" | "developer" => Role::System,
        "tool" => {
            let id = entry
                .get("tool_call_id")
                .or(entry.get("tool_use_id"))
                .cloned();
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
            return Some((Role::User, vec![result]));
        }
        _ => Role::User,
    };
    let blocks = match content {
        Value::Null => Vec::new(),
        Value::Array(blocks) => blocks,
        part @ Value::Object(_) if !kind(&part).is_empty() || is_text(&part) => vec![part],
        other => vec![text_block(&as_text(&other))],
    };
    Some((role, blocks))
}

/// Moves system messages of the list that the model does not accept: those before all others into the
/// system prompt, later ones into the user's role.
fn systems(patient: &mut Patient<'_, '_>, profile: &MessagesProfile) {
    let mut is_first = true;
    let mut leading = Vec::new();
    for at in 0..patient.chat.units.len() {
        let Some(unit) = patient.chat.units.get_mut(at) else {
            continue;
        };
        if !unit.is_left() || unit.is_beside() {
            continue;
        }
        if unit.role != Role::System {
            is_first = false;
            continue;
        }
        let block = block(unit.value().clone(), Role::System);
        if is_first {
            unit.remove();
            leading.extend(block);
            patient.note(at, "moved it into the system prompt");
        } else if !profile.later_system {
            unit.role = Role::User;
            let text = block
                .map(|block| text(&block, "text").to_owned())
                .unwrap_or_default();
            let text = format!("{}\n\n{text}", prompt_texts::LATER_SYSTEM);
            *unit.edit() = json!({"type": "text", "text": text});
            patient.note(
                at,
                "moved it into the user's role: the model accepts no later system message",
            );
        }
    }
    if leading.is_empty() {
        return;
    }
    match patient
        .chat
        .units
        .first_mut()
        .filter(|unit| unit.is_beside() && unit.is_left())
    {
        Some(unit) => {
            let mut blocks = match unit.value() {
                Value::Array(blocks) => blocks.clone(),
                other => vec![json!({"type": "text", "text": as_text(other)})],
            };
            blocks.append(&mut leading);
            *unit.edit() = blocks.into();
        }
        None => {
            let mut unit =
                Unit::of_body(Place::Beside, Role::System, usize::MAX, None, Value::Null);
            *unit.edit() = leading.into();
            patient.chat.units.insert(0, unit);
        }
    }
}

/// Returns a system prompt as the API expects it.
fn system(value: Value) -> Value {
    match value {
        Value::Array(blocks) => {
            let blocks = blocks
                .into_iter()
                .filter_map(|one| block(one, Role::System));
            blocks.collect()
        }
        Value::String(_) => value,
        object @ Value::Object(_) => block(object, Role::System).into_iter().collect(),
        other => as_text(&other).into(),
    }
}

/// Returns a block as the API expects it in a message of this role. `None` if it cannot be there.
fn block(value: Value, role: Role) -> Option<Value> {
    let value = match text_part(value, "text") {
        Ok(text) => return text,
        Err(block) => block,
    };
    let note = |text: &str| Some(json!({"type": "text", "text": text}));
    let kind = kind(&value).to_owned();
    match (role, kind.as_str()) {
        (Role::System, _) => None,
        (Role::User | Role::Own, "image" | "document") => media(value),
        (Role::User | Role::Own, "tool_result") => Some(result(value)),
        (Role::User | Role::Own, "thinking" | "redacted_thinking" | "tool_use") => None,
        (Role::Assistant, "tool_use") => Some(call(value)),
        (Role::Assistant, "thinking" | "redacted_thinking") => Some(value),
        (Role::Assistant, "image" | "document" | "tool_result") => None,
        (_, "search_result" | "container_upload" | "compaction") => Some(value),
        (_, kind) if kind.ends_with("_tool_use") || kind.ends_with("_tool_result") => Some(value),
        (Role::User | Role::Own, "image_url" | "input_image" | "input_file" | "file") => {
            note(prompt_texts::LEFT_OUT)
        }
        (Role::User | Role::Own, _) => note(&value.to_string()),
        (Role::Assistant, _) => None,
    }
}

/// Returns an image or a document if its source is whole, and a note in its place otherwise.
fn media(block: Value) -> Option<Value> {
    let source = block.get("source").unwrap_or(&Value::Null);
    let has =
        |key: &str| source.get(key).is_some_and(Value::is_string) && !text(source, key).is_empty();
    let is_whole = match kind(source) {
        "base64" if kind(&block) == "image" => {
            has("data") && IMAGES.contains(&text(source, "media_type"))
        }
        "base64" => has("data") && has("media_type"),
        "text" => has("data"),
        "url" => has("url"),
        "file" => has("file_id"),
        "content" => true,
        _ => false,
    };
    match is_whole {
        true => Some(block),
        false => Some(json!({"type": "text", "text": prompt_texts::LEFT_OUT})),
    }
}

fn call(mut call: Value) -> Value {
    number_id(&mut call, "id");
    let name = call
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or("unnamed");
    if !is_word(name) || name.len() > MAX_NAME || !call.get("name").is_some_and(Value::is_string) {
        let name = legal_name(name).into_owned();
        set(&mut call, "name", name.into());
    }
    let input = match call.get("input") {
        Some(Value::Object(_)) => return call,
        None | Some(Value::Null) => json!({}),
        Some(Value::String(text)) => match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(object) => object.into(),
            Err(_) if text.trim().is_empty() => json!({}),
            Err(_) => json!({MALFORMED: text}),
        },
        Some(other) => json!({MALFORMED: other}),
    };
    set(&mut call, "input", input);
    call
}

fn result(mut result: Value) -> Value {
    number_id(&mut result, "tool_use_id");
    let is_error = result.get("is_error") == Some(&Value::Bool(true));
    let content = match result.get("content") {
        None | Some(Value::String(_)) => return result,
        Some(Value::Array(_)) => {
            if let Some(parts) = list_mut(&mut result, "content") {
                let old = mem::take(parts);
                parts.extend(
                    old.into_iter()
                        .filter_map(|part| result_part(part, is_error)),
                );
            }
            return result;
        }
        Some(Value::Null) => "".into(),
        Some(part @ Value::Object(_)) if !kind(part).is_empty() => {
            result_part(part.clone(), is_error).into_iter().collect()
        }
        Some(other) => other.to_string().into(),
    };
    set(&mut result, "content", content);
    result
}

/// Returns a part of a result. The result of a failed call consists of texts.
fn result_part(part: Value, is_error: bool) -> Option<Value> {
    match kind(&part) {
        "image" | "document" if !is_error && is_file(&part) => media(part),
        "search_result" | "tool_reference" if !is_error => Some(part),
        "text" | "input_text" | "output_text" | "" => block(part, Role::User),
        _ => Some(json!({"type": "text", "text": part_as_text(&part)})),
    }
}
