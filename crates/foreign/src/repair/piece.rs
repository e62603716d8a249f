//! The calls, results and texts in a unit of each protocol.

use plimsoll_wire::__internals::openai_responses::items;
use plimsoll_wire::__internals::{legal_name, list, set, text};
use plimsoll_wire::{Protocol, prompt_texts};
use serde_json::{Map, Value, json};

use crate::unit::{Role, Unit};

/// The types of parts with a file.
const FILES: [&str; 8] = [
    "image",
    "image_url",
    "input_image",
    "document",
    "file",
    "input_file",
    "audio",
    "input_audio",
];

/// The text of the result that closes a call without one.
pub const CLOSED_CALL: &str = "aborted: this call has no result";

pub(super) fn kind(value: &Value) -> &str {
    text(value, "type")
}

pub(super) fn list_mut<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Vec<Value>> {
    value.get_mut(key)?.as_array_mut()
}

/// Returns the parts in the lists of a value, and behind them the value itself, each with its JSON pointer.
pub(super) fn parts(value: &Value) -> impl Iterator<Item = (String, &Value)> {
    let lists = ["", "/content", "/output"].into_iter();
    let inner = lists.flat_map(|key| {
        let list = value.pointer(key).and_then(Value::as_array);
        let parts = list.into_iter().flatten().enumerate();
        parts.map(move |(at, part)| (format!("{key}/{at}"), part))
    });
    inner.chain(std::iter::once((String::new(), value)))
}

/// Returns the role of a unit: that of its message, or the one that it states itself.
pub(super) fn role<'u>(unit: &'u Unit<'_>) -> &'u str {
    match unit.role {
        Role::Own => text(unit.value(), "role"),
        role => role.name(),
    }
}

/// Checks whether the model wrote a unit.
pub(super) fn is_models(protocol: Protocol, unit: &Unit<'_>) -> bool {
    match protocol {
        Protocol::Chat | Protocol::Messages => role(unit) == "assistant",
        Protocol::Responses => match items::kind(unit.value()) {
            "" => false,
            "message" => role(unit) == "assistant",
            kind => !items::is_clients(kind),
        },
    }
}

/// Returns the ids of the calls that need a result of the client.
pub(super) fn calls(protocol: Protocol, unit: &Unit<'_>) -> Vec<Option<String>> {
    let value = unit.value();
    match protocol {
        Protocol::Chat if role(unit) == "assistant" => {
            let calls = list(value, "tool_calls").iter();
            calls.map(|call| id(call, "id")).collect()
        }
        Protocol::Messages if unit.role == Role::Assistant && kind(value) == "tool_use" => {
            vec![id(value, "id")]
        }
        Protocol::Responses => {
            let is_call = !output_kind(protocol, value).is_empty();
            let id = items::call_id(value).map(str::to_owned);
            let needs_result = is_call && (is_callers(items::kind(value)) || id.is_some());
            needs_result.then_some(id).into_iter().collect()
        }
        Protocol::Chat | Protocol::Messages => Vec::new(),
    }
}

/// Checks whether an item of Responses is a call of the caller's own tools.
fn is_callers(kind: &str) -> bool {
    matches!(kind, "function_call" | "custom_tool_call")
}

/// Returns the id of the call that a result names. `None` for a unit that is no result.
pub(super) fn result(protocol: Protocol, unit: &Unit<'_>) -> Option<Option<String>> {
    let value = unit.value();
    match protocol {
        Protocol::Chat => (role(unit) == "tool").then(|| id(value, "tool_call_id")),
        Protocol::Messages => (unit.role == Role::User && kind(value) == "tool_result")
            .then(|| id(value, "tool_use_id")),
        Protocol::Responses => {
            let own = items::call_id(value).map(str::to_owned);
            let on_server = own.is_none() && text(value, "execution") == "server";
            (items::is_output(items::kind(value)) && !on_server).then_some(own)
        }
    }
}

/// Returns the kind of the results that a unit's calls need. Only Responses has several.
pub(super) fn output_kind(protocol: Protocol, call: &Value) -> &'static str {
    let kind = items::kind(call);
    let mut pairs = items::PAIRS.iter();
    let pair = pairs.find(|(call, ..)| protocol == Protocol::Responses && *call == kind);
    pair.map_or("", |(.., output)| output)
}

/// Sets the id of a call.
pub(super) fn set_call_id(protocol: Protocol, value: &mut Value, nth: usize, id: &str) {
    match protocol {
        Protocol::Chat => {
            if let Some(call) = list_mut(value, "tool_calls").and_then(|calls| calls.get_mut(nth)) {
                set(call, "id", id);
            }
        }
        Protocol::Messages => set(value, "id", id),
        Protocol::Responses => set(value, "call_id", id),
    }
}

/// Sets the id of the call that a result names.
pub(super) fn set_result_id(protocol: Protocol, value: &mut Value, id: &str) {
    let key = match protocol {
        Protocol::Chat => "tool_call_id",
        Protocol::Messages => "tool_use_id",
        Protocol::Responses => "call_id",
    };
    set(value, key, id);
}

/// Returns a result that closes a call. `None` for calls of the provider's own tools, whose results cannot
/// be invented.
pub(super) fn closing(protocol: Protocol, call: &Value, id: &str) -> Option<Value> {
    match protocol {
        Protocol::Chat => Some(json!({"role": "tool", "tool_call_id": id, "content": CLOSED_CALL})),
        Protocol::Messages => Some(json!({
            "type": "tool_result", "tool_use_id": id, "content": CLOSED_CALL, "is_error": true,
        })),
        Protocol::Responses if is_callers(items::kind(call)) => Some(json!({
            "type": output_kind(protocol, call), "call_id": id, "output": CLOSED_CALL,
        })),
        Protocol::Responses => None,
    }
}

/// Returns a user message, or a block of one.
pub(super) fn user(protocol: Protocol, text: &str) -> Value {
    match protocol {
        Protocol::Chat => json!({"role": "user", "content": text}),
        Protocol::Responses => json!({"type": "message", "role": "user", "content": text}),
        Protocol::Messages => json!({"type": "text", "text": text}),
    }
}

/// Gives a call a name if it has none that the server accepts.
pub(super) fn name_call(call: &mut Value, accepts: impl Fn(&str) -> bool) {
    let name = call.get("name").and_then(Value::as_str);
    if !name.is_some_and(accepts) {
        let name = legal_name(name.unwrap_or("unnamed")).into_owned();
        set(call, "name", name);
    }
}

/// Writes the arguments of a call as a text. A call without arguments has an empty object.
pub(super) fn text_arguments(call: &mut Value, key: &str) {
    let text = match call.get(key) {
        Some(Value::String(_)) => return,
        None | Some(Value::Null) => "{}".to_owned(),
        Some(other) => other.to_string(),
    };
    set(call, key, text);
}

/// Checks whether a part has a text.
pub(super) fn is_text(part: &Value) -> bool {
    part.get("text").is_some_and(Value::is_string)
}

/// Returns a value as a text: texts as they are, and the JSON of other values.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Converts a text of any protocol to a part of this kind. Returns `Ok(None)` if it says nothing, and the part
/// itself if it is no text.
pub(super) fn text_part(mut part: Value, own: &str) -> Result<Option<Value>, Value> {
    let new = |text: &Value| Ok(Some(json!({"type": own, "text": as_text(text)})));
    if part.is_null() {
        return Ok(None);
    }
    if !part.is_object() {
        return new(&part);
    }
    match (kind(&part), part.get("text")) {
        ("", Some(Value::String(_))) => {
            set(&mut part, "type", own);
            Ok(Some(part))
        }
        (kind, Some(Value::String(_))) if kind == own => Ok(Some(part)),
        // The JSON of a tool, perhaps.
        ("text", None) if has_more(&part) => new(&part.to_string().into()),
        ("text" | "input_text" | "output_text", None | Some(Value::Null)) => Ok(None),
        ("text" | "input_text" | "output_text", Some(text)) => new(text),
        _ => Err(part),
    }
}

/// Checks whether a part has keys that do not belong to a text.
fn has_more(part: &Value) -> bool {
    let mut keys = part.as_object().into_iter().flat_map(Map::keys);
    keys.any(|key| !["type", "cache_control", "citations"].contains(&key.as_str()))
}

/// Checks whether a part contains a file. Results of tools may look like parts of a message.
pub(super) fn is_file(part: &Value) -> bool {
    let is_kind = FILES.contains(&kind(part)) || kind(part) == "resource";
    // The keys of its bytes or its address.
    let is_source = |key: &String| {
        matches!(
            key.as_str(),
            "source"
                | "data"
                | "blob"
                | "url"
                | "image_url"
                | "file"
                | "file_id"
                | "file_data"
                | "file_url"
                | "input_audio"
        )
    };
    let inner = part.get("resource").unwrap_or(part).as_object();
    is_kind && inner.is_some_and(|inner| inner.keys().any(is_source))
}

/// Returns the text in place of a part that a message cannot have. `None` for reasoning and calls, which a message does
/// not say.
pub(super) fn said_part(part: &Value) -> Option<String> {
    match kind(part) {
        "thinking" | "redacted_thinking" | "reasoning" | "tool_use" | "tool_call" => None,
        _ => Some(part_as_text(part)),
    }
}

/// Returns the text in place of a part that cannot be sent: a note for a file, its JSON otherwise.
pub(super) fn part_as_text(part: &Value) -> String {
    match is_file(part) {
        true => prompt_texts::LEFT_OUT.to_owned(),
        false => part.to_string(),
    }
}

/// Converts a content, with each of its parts. A text stays.
pub(super) fn convert(value: &mut Value, key: &str, part: impl Fn(Value) -> Option<Value>) {
    let content: Value = match value.get(key) {
        Some(Value::String(_)) => return,
        None | Some(Value::Null) => "".into(),
        Some(Value::Array(parts)) => parts.iter().cloned().filter_map(part).collect(),
        Some(one @ Value::Object(_)) if is_text(one) || !kind(one).is_empty() => {
            part(one.clone()).into_iter().collect()
        }
        Some(other) => other.to_string().into(),
    };
    set(value, key, content);
}

fn id(value: &Value, key: &str) -> Option<String> {
    let id = value.get(key).and_then(Value::as_str);
    id.filter(|id| !id.is_empty()).map(str::to_owned)
}
