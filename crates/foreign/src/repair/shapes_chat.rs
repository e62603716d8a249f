//! The shapes of Chat Completions.

use plimsoll_wire::__internals::object_text;
use plimsoll_wire::openai_chat::{Dialect, EchoReasoning, ErrorStyle};
use plimsoll_wire::prompt_texts;
use serde_json::{Value, json};

use super::Patient;
use super::piece::{self, as_text, kind, number_id, set, text, text_arguments, text_part, unset};
use super::shapes::reshape;

const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// Converts every message.
pub(super) fn fix(patient: &mut Patient<'_, '_>, dialect: &Dialect) {
    patient.each(|unit| {
        let new = message(unit.value().clone(), dialect);
        reshape(unit, new)
    });
}

/// Returns a message as the server expects it. `None` if it is nothing.
fn message(value: Value, dialect: &Dialect) -> Option<Value> {
    let mut value = match value {
        Value::Null => return None,
        Value::Object(_) => value,
        other => json!({"role": "user", "content": as_text(&other)}),
    };
    let role = text(&value, "role");
    let role = match role {
        known if ROLES.contains(&known) => known.to_owned(),
        _ if value.get("tool_call_id").is_some() => "tool".to_owned(),
        _ if value.get("tool_calls").is_some() => "assistant".to_owned(),
        _ => "user".to_owned(),
    };
    if text(&value, "role") != role {
        set(&mut value, "role", role.as_str().into());
    }
    tool_calls(&mut value, &role, dialect);
    let allows_null = matches!(role.as_str(), "assistant" | "function");
    let content = match value.get("content") {
        None | Some(Value::Null) if allows_null => None,
        content => piece::content(content, |part| content_part(part, &role, dialect)),
    };
    if let Some(content) = content {
        set(&mut value, "content", content);
    }
    number_id(&mut value, "tool_call_id");
    let is_forbidden = dialect.voice == ErrorStyle::Mistral
        && dialect.echo_reasoning == EchoReasoning::Never
        && role == "assistant";
    for key in ["reasoning_content", "reasoning"] {
        let is_wrong = key == "reasoning_content"
            && value
                .get(key)
                .is_some_and(|text| !text.is_string() && !text.is_null());
        if is_forbidden || is_wrong {
            unset(&mut value, key);
        }
    }
    Some(value)
}

/// Converts the list of calls. An empty list is removed.
fn tool_calls(value: &mut Value, role: &str, dialect: &Dialect) {
    let Some(old) = value.get("tool_calls").filter(|calls| !calls.is_null()) else {
        return;
    };
    let calls: Vec<Value> = match old {
        _ if role != "assistant" => Vec::new(),
        Value::Array(calls) => calls.clone(),
        call @ Value::Object(_) => vec![call.clone()],
        _ => Vec::new(),
    };
    let calls: Vec<Value> = calls
        .into_iter()
        .filter_map(|call| one_call(call, dialect))
        .collect();
    if calls.is_empty() {
        unset(value, "tool_calls");
    } else {
        set(value, "tool_calls", calls.into());
    }
}

fn one_call(mut call: Value, dialect: &Dialect) -> Option<Value> {
    call.as_object()?;
    number_id(&mut call, "id");
    let is_custom = kind(&call) == "custom" && !dialect.object_arguments;
    let (key, taken) = if is_custom {
        ("custom", "input")
    } else {
        ("function", "arguments")
    };
    let mut inner = match call.get(key) {
        Some(inner @ Value::Object(_)) => inner.clone(),
        // The name and the arguments stand beside the id, as in other protocols.
        _ if call.get("name").is_some() => {
            let take = |key: &str| call.get(key).cloned().unwrap_or_default();
            json!({"name": take("name"), taken: take(taken)})
        }
        _ => return None,
    };
    let is_openai = ["openai", "openrouter"].contains(&dialect.name.as_str());
    piece::name_call(&mut inner, is_openai);
    text_arguments(&mut inner, taken);
    if dialect.object_arguments {
        let object = object_text(text(&inner, taken)).into_owned();
        set(&mut inner, taken, object.into());
    }
    set(&mut call, key, inner);
    Some(call)
}

/// Returns a part of a content as the server expects it. `None` if it says nothing.
fn content_part(part: Value, role: &str, dialect: &Dialect) -> Option<Value> {
    let mut part = match text_part(part, "text") {
        Ok(text) => return text,
        Err(part) => part,
    };
    let note = |text: &str| Some(json!({"type": "text", "text": text}));
    match kind(&part) {
        "" if has_address(&part) && role != "tool" => {
            set(&mut part, "type", "image_url".into());
            Some(part)
        }
        "" => note(&part.to_string()),
        _ if role == "tool" => note(&piece::part_as_text(&part)),
        "image_url" => has_address(&part).then_some(part),
        "input_audio" | "refusal" | "audio" | "file" => Some(part),
        _ if dialect.name != "openai" => Some(part),
        "thinking" | "redacted_thinking" | "reasoning" | "tool_use" | "tool_call" => None,
        "image" | "document" | "input_image" | "input_file" => note(prompt_texts::LEFT_OUT),
        _ => note(&part.to_string()),
    }
}

/// Checks whether an image has an address, with or without an object around it.
fn has_address(part: &Value) -> bool {
    let image = part.get("image_url").unwrap_or(&Value::Null);
    image.get("url").unwrap_or(image).is_string()
}
