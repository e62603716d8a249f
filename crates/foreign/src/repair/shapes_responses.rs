//! The shapes of Responses.

use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use plimsoll_wire::prompt_texts;
use serde_json::{Value, json};

use super::Patient;
use super::piece::{self, as_text, kind, number_id, set, text, text_arguments, text_part, unset};
use super::shapes::reshape;

/// The maximum length of an item's id.
const MAX_ITEM_ID: usize = 64;

/// Converts every item.
pub(super) fn fix(patient: &mut Patient<'_, '_>, profile: &ResponsesProfile) {
    let is_stored = is_stored(patient);
    let entries = patient
        .chat
        .units
        .iter()
        .filter(|unit| !unit.is_beside())
        .count();
    patient.each(|unit| {
        let new = match unit.value() {
            value if unit.is_beside() => Some(as_text(value).into()),
            // A text in place of the list.
            Value::String(_) if entries == 1 => return None,
            value => item(value.clone(), profile, is_stored),
        };
        reshape(unit, new)
    });
}

/// Checks whether the server stores the items of the request.
pub(super) fn is_stored(patient: &Patient<'_, '_>) -> bool {
    patient.is_request && patient.chat.key("store") != Some("false")
}

/// Returns an item as the server expects it. `None` if there is no such item.
fn item(value: Value, profile: &ResponsesProfile, is_stored: bool) -> Option<Value> {
    let message = |text: &str| json!({"type": "message", "role": "user", "content": text});
    let mut value = match value {
        Value::Null => return None,
        Value::Object(_) => value,
        other => return Some(message(&as_text(&other))),
    };
    let has = |key: &str| value.get(key).is_some();
    let named = match items::kind(&value) {
        "message" if text(&value, "role") == "tool" => {
            let take = |one: &str, other: &str| {
                value
                    .get(one)
                    .or(value.get(other))
                    .cloned()
                    .unwrap_or_default()
            };
            value = json!({
                "type": "function_call_output", "call_id": take("tool_call_id", "call_id"),
                "output": take("content", "output"),
            });
            "function_call_output".to_owned()
        }
        "" if has("output") && has("call_id") => "function_call_output".to_owned(),
        "" if has("arguments") && has("name") => "function_call".to_owned(),
        "" if has("content") => "message".to_owned(),
        "" => return None,
        part if items::is_content(part) => {
            value = json!({"type": "message", "role": "user", "content": [value]});
            "message".to_owned()
        }
        kind => kind.to_owned(),
    };
    if items::kind(&value) != named {
        set(&mut value, "type", named.as_str().into());
    }
    match named.as_str() {
        "message" => {
            if !["user", "assistant", "system", "developer"].contains(&text(&value, "role")) {
                set(&mut value, "role", "user".into());
            }
            let is_models = text(&value, "role") == "assistant";
            convert(&mut value, "content", |part| content_part(part, is_models));
        }
        "function_call" => called(&mut value, "arguments"),
        "custom_tool_call" => called(&mut value, "input"),
        "function_call_output" | "custom_tool_call_output" => {
            number_id(&mut value, "call_id");
            convert(&mut value, "output", result_part);
        }
        "reasoning" => {
            let is_list = value.get("summary").is_some_and(Value::is_array);
            if !is_list && profile.reasoning != ReasoningItems::Plain {
                set(&mut value, "summary", json!([]));
            }
        }
        "compaction" if text(&value, "encrypted_content").is_empty() => return None,
        "item_reference" if text(&value, "id").is_empty() || !is_stored => return None,
        kind if !items::is_item(kind) => return None,
        _ => {}
    }
    item_id(&mut value, profile);
    Some(value)
}

/// Removes an id that the server would refuse.
fn item_id(value: &mut Value, profile: &ResponsesProfile) {
    let kind = items::kind(value).to_owned();
    let Some(id) = value.get("id").and_then(Value::as_str) else {
        return;
    };
    let is_its_own = match kind.as_str() {
        "message" => text(value, "role") == "assistant",
        "reasoning" => profile.reasoning != ReasoningItems::Plain,
        _ => true,
    };
    let prefix = items::PREFIXES.iter().find(|(of, _)| *of == kind);
    let is_wrong = prefix.is_some_and(|(_, prefix)| is_its_own && !id.starts_with(prefix));
    let is_long = id.chars().count() > MAX_ITEM_ID && kind != "reasoning";
    if is_wrong || is_long {
        unset(value, "id");
    }
}

fn called(value: &mut Value, taken: &str) {
    number_id(value, "call_id");
    piece::name_call(value, true);
    text_arguments(value, taken);
}

/// Converts a content or an output to the form that the server expects.
fn convert(value: &mut Value, key: &str, part: impl Fn(Value) -> Option<Value>) {
    if let Some(content) = piece::content(value.get(key), part) {
        set(value, key, content);
    }
}

/// Returns a part of an output.
fn result_part(part: Value) -> Option<Value> {
    match text_part(part, "input_text") {
        Ok(text) => text,
        Err(part) if piece::is_file(&part) && kind(&part) != "resource" => {
            content_part(part, false)
        }
        Err(part) => Some(json!({"type": "input_text", "text": piece::part_as_text(&part)})),
    }
}

/// Returns a part as the server expects it. `None` if it says nothing.
fn content_part(part: Value, is_models: bool) -> Option<Value> {
    let text_kind = if is_models {
        "output_text"
    } else {
        "input_text"
    };
    let note = |text: &str| Some(json!({"type": text_kind, "text": text}));
    let part = match text_part(part, text_kind) {
        Ok(text) => return text,
        Err(part) => part,
    };
    match kind(&part) {
        "refusal" if part.get("refusal").is_some_and(Value::is_string) => match is_models {
            true => Some(part),
            false => note(text(&part, "refusal")),
        },
        "input_image" if !is_models => has_one(&part, &["image_url", "file_id"]).then_some(part),
        "input_file" if !is_models => {
            has_one(&part, &["file_id", "file_data", "file_url"]).then_some(part)
        }
        "input_audio" if !is_models => Some(part),
        "image_url" if !is_models => {
            let image = part.get("image_url").unwrap_or(&Value::Null);
            let url = image.get("url").unwrap_or(image).as_str()?;
            Some(json!({"type": "input_image", "image_url": url, "detail": "auto"}))
        }
        "file" if !is_models && part.get("file").is_some_and(Value::is_object) => {
            let mut file = part.get("file").cloned().unwrap_or_default();
            set(&mut file, "type", "input_file".into());
            content_part(file, false)
        }
        "thinking" | "redacted_thinking" | "reasoning" | "tool_use" | "tool_call" => None,
        "image" | "document" | "audio" | "image_url" | "input_image" | "input_file"
        | "input_audio" | "file" => note(prompt_texts::LEFT_OUT),
        _ => note(&part.to_string()),
    }
}

fn has_one(part: &Value, keys: &[&str]) -> bool {
    let is_text = |key: &&&str| part.get(**key).is_some_and(Value::is_string);
    keys.iter().filter(is_text).count() == 1
}

/// Checks whether no server can read a reasoning item: it is not stored, and its content is missing.
pub(super) fn is_forgotten(item: &Value, profile: &ResponsesProfile, is_stored: bool) -> bool {
    let is_kept = is_stored || profile.reasoning != ReasoningItems::Encrypted;
    !is_kept && !items::is_encrypted(item)
}
