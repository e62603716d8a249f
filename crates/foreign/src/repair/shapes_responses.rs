//! The shapes of Responses.

use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::__internals::{is_legal_name, set, text, unset};
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Value, json};

use super::Patient;
use super::piece::{
    as_text, convert, is_file, kind, name_call, part_as_text, said_part, text_arguments, text_part,
};
use super::shapes::reshape;

/// Converts every item.
pub(super) fn fix(patient: &mut Patient<'_, '_>, profile: &ResponsesProfile) {
    let is_stored = is_stored(patient);
    reshape(patient, |unit| match unit.value() {
        value if unit.is_beside() => Some(as_text(value).into()),
        value => item(value.clone(), profile, is_stored),
    });
}

/// Checks whether the server stores the items of the request, as it does by default.
pub(super) fn is_stored(patient: &Patient<'_, '_>) -> bool {
    patient.is_request && patient.chat.key("store") != Some("false")
}

/// Returns an item as the server expects it. `None` if there is no such item.
fn item(value: Value, profile: &ResponsesProfile, is_stored: bool) -> Option<Value> {
    let mut value = match value {
        Value::Null => return None,
        Value::Object(_) => value,
        other => json!({"type": "message", "role": "user", "content": as_text(&other)}),
    };
    let named = match items::kind(&value) {
        "" if value.get("content").is_some() => "message",
        kind => items::KINDS.iter().find(|item| **item == kind)?,
    };
    if items::kind(&value) != named {
        set(&mut value, "type", named);
    }
    match named {
        "message" => {
            if !["user", "assistant", "system", "developer"].contains(&text(&value, "role")) {
                set(&mut value, "role", "user");
            }
            let is_models = text(&value, "role") == "assistant";
            convert(&mut value, "content", |part| content_part(part, is_models));
        }
        "function_call" | "custom_tool_call" => {
            name_call(&mut value, is_legal_name);
            let is_custom = named == "custom_tool_call";
            text_arguments(&mut value, if is_custom { "input" } else { "arguments" });
        }
        "function_call_output" | "custom_tool_call_output" => {
            convert(&mut value, "output", result_part);
        }
        "reasoning" => {
            let is_list = value.get("summary").is_some_and(Value::is_array);
            if !is_list && profile.reasoning != ReasoningItems::Plain {
                set(&mut value, "summary", json!([]));
            }
        }
        "compaction" if text(&value, "encrypted_content").is_empty() => return None,
        "item_reference" if !is_stored || !is_reference(&value) => return None,
        _ => {}
    }
    for key in ["id", "call_id"] {
        // The server takes it for an id, which nothing answers.
        if value.get(key).is_some_and(|id| *id == "") {
            unset(&mut value, &[key]);
        }
    }
    let is_own = |id: &Value| id.as_str().is_none_or(|id| items::accepts_id(named, id));
    if !value.get("id").is_none_or(is_own) {
        unset(&mut value, &["id"]);
    }
    Some(value)
}

fn is_reference(value: &Value) -> bool {
    let id = text(value, "id");
    !id.is_empty() && items::accepts_id("item_reference", id)
}

/// Returns a part of an output.
fn result_part(part: Value) -> Option<Value> {
    match text_part(part, "input_text") {
        Ok(text) => text,
        Err(part) if is_file(&part) && kind(&part) != "resource" => content_part(part, false),
        Err(part) => Some(json!({"type": "input_text", "text": part_as_text(&part)})),
    }
}

/// Returns a part as the server expects it. `None` if it says nothing.
fn content_part(part: Value, is_models: bool) -> Option<Value> {
    let text_kind = if is_models {
        "output_text"
    } else {
        "input_text"
    };
    let note = |text: String| json!({"type": text_kind, "text": text});
    let part = match text_part(part, text_kind) {
        Ok(text) => return text,
        Err(part) => part,
    };
    let has_one = |keys: &[&str]| {
        let is_text = |key: &&&str| part.get(**key).is_some_and(Value::is_string);
        keys.iter().filter(is_text).count() == 1
    };
    match kind(&part) {
        "refusal" if part.get("refusal").is_some_and(Value::is_string) => match is_models {
            true => Some(part),
            false => Some(note(text(&part, "refusal").to_owned())),
        },
        "input_image" if !is_models => has_one(&["image_url", "file_id"]).then_some(part),
        "input_file" if !is_models => {
            has_one(&["file_id", "file_data", "file_url"]).then_some(part)
        }
        "input_audio" if !is_models => Some(part),
        _ => said_part(&part).map(note),
    }
}
