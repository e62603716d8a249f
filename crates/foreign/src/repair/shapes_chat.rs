//! The shapes of Chat Completions.

use plimsoll_wire::__internals::{is_legal_name, object_text, set, text, unset};
use plimsoll_wire::openai_chat::{Dialect, EchoReasoning, ErrorStyle};
use serde_json::{Value, json};

use super::Patient;
use super::piece::{self, as_text, kind, text_arguments, text_part};
use super::shapes::reshape;
use crate::unit::Unit;

/// Converts every message, and the functions of a request whose messages call functions.
pub(super) fn fix(patient: &mut Patient<'_, '_>, dialect: &Dialect) {
    let mut messages = patient.chat.units.iter().map(Unit::value);
    let has_calls = messages
        .any(|value| value.get("function_call").is_some() || text(value, "role") == "function");
    if has_calls {
        functions(patient);
    }
    reshape(patient, |unit| message(unit.value().clone(), dialect));
}

/// Writes the functions of a request as tools behind those that it has, and the choice of one as that of a tool.
fn functions(patient: &mut Patient<'_, '_>) {
    for (old, new) in [("functions", "tools"), ("function_call", "tool_choice")] {
        let tool = |function: Value| json!({"type": "function", "function": function});
        let value = match (patient.chat.key_value(old), patient.chat.key_value(new)) {
            (Value::Null, _) => continue,
            (Value::Array(functions), _) if functions.is_empty() => Err("it is empty"),
            (Value::Array(functions), tools) => {
                let tools = tools.as_array().cloned().unwrap_or_default().into_iter();
                Ok(tools.chain(functions.into_iter().map(tool)).collect())
            }
            (one @ Value::Object(_), Value::Null) => Ok(tool(one)),
            (word, Value::Null) => Ok(word),
            _ => Err("its successor is set"),
        };
        patient.chat.remove_key(old);
        let done = match value {
            Ok(value) => {
                patient.chat.set_key(new, &value);
                format!("wrote it as `{new}`")
            }
            Err(why) => format!("left it out: {why}"),
        };
        patient.note_at(old.to_owned(), done);
    }
}

/// Returns a message as the server expects it. `None` if it is nothing. Functions, which preceded tools, become calls
/// and results without ids.
fn message(value: Value, dialect: &Dialect) -> Option<Value> {
    let mut value = match value {
        Value::Null => return None,
        Value::Object(_) => value,
        other => json!({"role": "user", "content": as_text(&other)}),
    };
    if text(&value, "role") == "function" {
        unset(&mut value, &["name"]);
    }
    let calls = value.get("tool_calls");
    let has_calls = calls.is_some_and(|calls| calls.is_array() || calls.is_object());
    let call = value.get("function_call");
    let call = call.filter(|call| !has_calls && !text(call, "name").is_empty());
    if let Some(call) = call {
        let calls = json!([{"type": "function", "function": call}]);
        set(&mut value, "tool_calls", calls);
        unset(&mut value, &["function_call"]);
    }
    let role = match text(&value, "role") {
        role @ ("system" | "developer" | "user" | "assistant" | "tool") => role,
        "function" => "tool",
        _ => "user",
    };
    let role = role.to_owned();
    set(&mut value, "role", role.as_str());
    tool_calls(&mut value, &role, dialect);
    if !(role == "assistant" && value.get("content").is_none_or(Value::is_null)) {
        let part = |part| content_part(part, &role, dialect);
        piece::convert(&mut value, "content", part);
    }
    let is_forbidden = dialect.voice == ErrorStyle::Mistral
        && dialect.echo_reasoning == EchoReasoning::Never
        && role == "assistant";
    let reasoning = value.get("reasoning_content");
    if is_forbidden || reasoning.is_some_and(|text| !text.is_string() && !text.is_null()) {
        unset(&mut value, &["reasoning_content"]);
    }
    if is_forbidden {
        unset(&mut value, &["reasoning"]);
    }
    Some(value)
}

/// Converts the list of calls. An empty list is removed.
fn tool_calls(value: &mut Value, role: &str, dialect: &Dialect) {
    let calls = match value.get("tool_calls") {
        None | Some(Value::Null) => return,
        Some(Value::Array(calls)) if role == "assistant" => calls.clone(),
        Some(_) => Vec::new(),
    };
    let calls = calls.into_iter();
    let calls: Vec<Value> = calls.filter_map(|call| one_call(call, dialect)).collect();
    if calls.is_empty() {
        unset(value, &["tool_calls"]);
    } else {
        set(value, "tool_calls", calls);
    }
}

fn one_call(mut call: Value, dialect: &Dialect) -> Option<Value> {
    let is_custom = kind(&call) == "custom" && !dialect.object_arguments;
    let (key, taken) = if is_custom {
        ("custom", "input")
    } else {
        ("function", "arguments")
    };
    let mut inner = call.get(key).filter(|inner| inner.is_object())?.clone();
    let is_openai = ["openai", "openrouter"].contains(&dialect.name.as_str());
    piece::name_call(&mut inner, |name| !is_openai || is_legal_name(name));
    text_arguments(&mut inner, taken);
    if dialect.object_arguments {
        let object = object_text(text(&inner, taken)).into_owned();
        set(&mut inner, taken, object);
    }
    set(&mut call, key, inner);
    Some(call)
}

/// Returns a part of a content as the server expects it. `None` if it says nothing.
fn content_part(part: Value, role: &str, dialect: &Dialect) -> Option<Value> {
    let part = match text_part(part, "text") {
        Ok(text) => return text,
        Err(part) => part,
    };
    let note = |text: String| json!({"type": "text", "text": text});
    match kind(&part) {
        _ if role == "tool" => Some(note(piece::part_as_text(&part))),
        "" => Some(note(part.to_string())),
        "image_url" => has_address(&part).then_some(part),
        "input_audio" | "refusal" | "audio" | "file" => Some(part),
        _ if dialect.name != "openai" => Some(part),
        _ => piece::said_part(&part).map(note),
    }
}

/// Checks whether an image has an address, with or without an object around it.
fn has_address(part: &Value) -> bool {
    let image = part.get("image_url").unwrap_or(&Value::Null);
    image.get("url").unwrap_or(image).is_string()
}
