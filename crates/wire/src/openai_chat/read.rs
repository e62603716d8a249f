//! Reads a request of Chat Completions. Each entry of its list is one message. Orphaned results are
//! kept, and nothing is repaired.

use plimsoll_context::{
    CallId, File, Image, Message, Opaque, Part, Source, Thinking, ToolCall, ToolResult, ToolSpec,
};
use serde_json::Value;

use super::details::{self, AUDIO};
use super::document::FORMAT;
use super::parts::{CUSTOM, ORIGIN, from_data_url, from_url};
use crate::document::{Document, MessageSpan, Places, ReadEntries};
use crate::error::WireError;
use crate::prompt_texts;
use crate::raw::{self, RawObject, parse};

/// Reads a bare array of messages, or an object with `messages` and any other keys. Message `i` is entry
/// `i` of the list.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a
/// wrong kind.
pub fn read(text: &str) -> Result<Document, WireError> {
    Document::read(text, &FORMAT)
}

/// Reads the messages of a list.
pub(super) fn messages(entries: &[&str], place: Places<'_>) -> ReadEntries {
    let mut legacy = Legacy::default();
    let mut messages = Vec::with_capacity(entries.len());
    for (index, raw) in entries.iter().enumerate() {
        let message = message(parse(raw)?, &place(index), index, &mut legacy)?;
        messages.push((message, MessageSpan::entry(index)));
    }
    Ok(messages)
}

/// Open calls of the older form, which has names in place of ids.
#[derive(Debug, Default)]
pub(super) struct Legacy {
    open: Vec<(String, CallId)>,
}

pub(super) fn message(
    mut value: Value,
    place: &str,
    index: usize,
    legacy: &mut Legacy,
) -> Result<Message, WireError> {
    if !value.is_object() {
        return Err(WireError::expected(place, "an object", Some(&value)));
    }
    let role = match value.get("role") {
        Some(Value::String(role)) => role.clone(),
        other => {
            let place = format!("{place}.role");
            return Err(WireError::expected(place, "string", other));
        }
    };
    let content = value.get_mut("content").map_or(Value::Null, Value::take);
    let mut parts = content_parts(content, &format!("{place}.content"))?;
    match role.as_str() {
        "system" | "developer" => Ok(Message::System { parts }),
        "user" => Ok(prompt_texts::parse_user_message(parts)),
        "assistant" => {
            if let Some(reasoning) = reasoning(&value) {
                parts.insert(0, reasoning);
            }
            if let Some(Value::String(refusal)) = value.get("refusal") {
                let block = serde_json::json!({"type": "refusal", "refusal": refusal});
                parts.push(opaque(&block));
            }
            if let Some(audio) = value.get(AUDIO).filter(|audio| audio.is_object()) {
                parts.push(details::part(AUDIO, audio.clone()));
            }
            calls(&mut value, place, &mut parts)?;
            if let Some(call) = legacy_call(&mut value, place, index)? {
                legacy.open.push((call.name.clone(), call.id.clone()));
                parts.push(Part::ToolCall(call));
            }
            Ok(Message::Assistant { parts })
        }
        "tool" => {
            let call = CallId(text_of(value.get_mut("tool_call_id"), || {
                format!("{place}.tool_call_id")
            })?);
            Ok(result(call, parts))
        }
        "function" => {
            let name = text_of(value.get_mut("name"), || format!("{place}.name"))?;
            let open = legacy.open.iter().rposition(|(open, _)| *open == name);
            let call = match open {
                Some(at) => legacy.open.remove(at).1,
                None => CallId(format!("function_result_{index}")),
            };
            Ok(result(call, parts))
        }
        other => Err(WireError::Expected {
            place: format!("{place}.role"),
            expected: "system, developer, user, assistant, tool or function".into(),
            got: format!("{other:?}"),
        }),
    }
}

fn result(call: CallId, parts: Vec<Part>) -> Message {
    Message::ToolResult(ToolResult {
        call,
        parts,
        is_error: false,
    })
}

fn reasoning(message: &Value) -> Option<Part> {
    let mut keys = ["reasoning_content", "reasoning"].iter();
    let text = keys.find_map(|key| match message.get(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
        _ => None,
    })?;
    Some(Part::Thinking(Thinking { text, opaque: None }))
}

/// Returns the parts of a content. A text is one part; `null` has none.
fn content_parts(content: Value, place: &str) -> Result<Vec<Part>, WireError> {
    match content {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![Part::text(text)]),
        Value::Array(list) => {
            let parts = list.into_iter().enumerate();
            let part = |(index, part)| content_part(part, || format!("{place}[{index}]"));
            parts.map(part).collect()
        }
        other => Err(WireError::expected(
            place,
            "string, array or null",
            Some(&other),
        )),
    }
}

fn content_part(mut part: Value, place: impl Fn() -> String) -> Result<Part, WireError> {
    // Some clients put bare texts into the list.
    if let Value::String(text) = part {
        return Ok(Part::text(text));
    }
    let kind = match part.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        other if part.is_object() => {
            let place = format!("{}.type", place());
            return Err(WireError::expected(place, "string", other));
        }
        _ => return Err(WireError::expected(place(), "an object", Some(&part))),
    };
    match kind.as_str() {
        "text" | "input_text" | "output_text" => {
            let text = text_of(part.get_mut("text"), || format!("{}.text", place()))?;
            Ok(Part::text(text))
        }
        "image_url" => {
            let image = part.get_mut("image_url").map_or(Value::Null, Value::take);
            image_part(image, || format!("{}.image_url", place()))
        }
        "file" if part.get("file").is_some_and(Value::is_object) => {
            Ok(file_part(&part).unwrap_or_else(|| opaque(&part)))
        }
        _ => Ok(opaque(&part)),
    }
}

fn image_part(mut image: Value, place: impl Fn() -> String) -> Result<Part, WireError> {
    let detail = match image.get("detail") {
        Some(Value::String(detail)) => Some(detail.clone()),
        _ => None,
    };
    let url = match &mut image {
        Value::String(url) => std::mem::take(url),
        Value::Object(_) => text_of(image.get_mut("url"), || format!("{}.url", place()))?,
        other => return Err(WireError::expected(place(), "an object", Some(other))),
    };
    Ok(Part::Image(Image {
        source: from_url(url),
        size: None,
        detail,
    }))
}

/// Reads a file with an id or with data. Returns `None` for any other form.
fn file_part(part: &Value) -> Option<Part> {
    let file = part.get("file")?;
    let text = |key| file.get(key).and_then(Value::as_str).map(str::to_owned);
    let source = match (text("file_data"), text("file_id")) {
        (Some(data), _) => from_data_url(&data)?,
        (None, Some(url)) => Source::Url { url },
        (None, None) => return None,
    };
    let name = text("filename");
    Some(Part::File(File { name, source }))
}

fn calls(message: &mut Value, place: &str, parts: &mut Vec<Part>) -> Result<(), WireError> {
    let list = match message.get_mut("tool_calls").map(Value::take) {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(list)) => list,
        Some(other) => {
            let place = format!("{place}.tool_calls");
            return Err(WireError::expected(place, "array or null", Some(&other)));
        }
    };
    for (index, mut call) in list.into_iter().enumerate() {
        let place = format!("{place}.tool_calls[{index}]");
        let id = text_of(call.get_mut("id"), || format!("{place}.id"))?;
        let is_custom = call.get("type").is_some_and(|kind| kind == CUSTOM);
        if let Some(custom) = call.get_mut(CUSTOM).filter(|c| is_custom && c.is_object()) {
            let place = format!("{place}.{CUSTOM}");
            let name = text_of(custom.get_mut("name"), || format!("{place}.name"))?;
            let input = text_of(custom.get_mut("input"), || format!("{place}.input"))?;
            parts.push(Part::ToolCall(ToolCall {
                id: CallId(id),
                name,
                arguments: input,
                opaque: call_extra(&call, &["id", CUSTOM, "index"]),
            }));
            continue;
        }
        let Some(function) = call.get_mut("function").filter(|f| f.is_object()) else {
            let place = format!("{place}.function");
            return Err(WireError::expected(
                place,
                "an object",
                call.get("function"),
            ));
        };
        let (name, arguments) = function_of(function, || format!("{place}.function"))?;
        parts.push(Part::ToolCall(ToolCall {
            id: CallId(id),
            name,
            arguments,
            opaque: call_extra(&call, &["id", "type", "function", "index"]),
        }));
    }
    Ok(())
}

/// Returns the additional keys of a call, which must be sent back with it.
fn call_extra(call: &Value, known: &[&str]) -> Option<Opaque> {
    let mut extra = call.as_object()?.clone();
    for known in known {
        extra.shift_remove(*known);
    }
    let data = Value::Object(extra);
    (data != serde_json::json!({})).then(|| raw::opaque(ORIGIN, data.to_string()))
}

fn legacy_call(
    message: &mut Value,
    place: &str,
    index: usize,
) -> Result<Option<ToolCall>, WireError> {
    let Some(function) = message.get_mut("function_call").filter(|f| f.is_object()) else {
        return Ok(None);
    };
    let (name, arguments) = function_of(function, || format!("{place}.function_call"))?;
    Ok(Some(ToolCall {
        id: CallId(format!("function_call_{index}")),
        name,
        arguments,
        opaque: None,
    }))
}

fn function_of(
    function: &mut Value,
    place: impl Fn() -> String,
) -> Result<(String, String), WireError> {
    let name = text_of(function.get_mut("name"), || format!("{}.name", place()))?;
    let arguments = match function.get_mut("arguments").map(Value::take) {
        Some(Value::String(text)) => text,
        // The API does not allow it, but some servers write it.
        Some(object @ Value::Object(_)) => object.to_string(),
        None | Some(Value::Null) => String::new(),
        Some(other) => {
            let place = format!("{}.arguments", place());
            return Err(WireError::expected(place, "string", Some(&other)));
        }
    };
    Ok((name, arguments))
}

fn text_of(value: Option<&mut Value>, place: impl Fn() -> String) -> Result<String, WireError> {
    match value {
        Some(Value::String(text)) => Ok(std::mem::take(text)),
        other => Err(WireError::expected(place(), "string", other.as_deref())),
    }
}

fn opaque(block: &Value) -> Part {
    Part::Opaque(raw::opaque(ORIGIN, block.to_string()))
}

/// Reads the tools of a request.
pub(super) fn tools(keys: &RawObject<'_>, document: &mut Document) -> Result<(), WireError> {
    let Some(raw) = keys.get("tools").or_else(|| keys.get("functions")) else {
        return Ok(());
    };
    let value: Value = parse(raw)?;
    let list = match value {
        Value::Null => return Ok(()),
        Value::Array(list) => list,
        other => {
            let expected = "array or null";
            return Err(WireError::expected("tools", expected, Some(&other)));
        }
    };
    for (index, mut tool) in list.into_iter().enumerate() {
        if is_hosted(&tool) {
            let tool = raw::opaque(ORIGIN, tool.to_string());
            document.hosted_tools.push(tool);
            continue;
        }
        let key = if tool.get(CUSTOM).is_some_and(Value::is_object) {
            CUSTOM
        } else {
            "function"
        };
        let function = match tool.get_mut(key) {
            Some(function) => function,
            None => &mut tool,
        };
        let place = || format!("tools[{index}].{key}.name");
        let name = text_of(function.get_mut("name"), place)?;
        let description = function.get("description").and_then(Value::as_str);
        document.tools.push(ToolSpec {
            name,
            description: description.unwrap_or_default().to_owned(),
            schema: function
                .get_mut("parameters")
                .map_or(Value::Null, Value::take),
        });
    }
    Ok(())
}

/// Returns `true` if the server runs a tool itself, such as a search. Its definition only has a type.
fn is_hosted(tool: &Value) -> bool {
    let kind = tool.get("type").and_then(Value::as_str).unwrap_or_default();
    let ours = ["function", CUSTOM, "name"];
    !["", "function", CUSTOM].contains(&kind) && ours.iter().all(|key| tool.get(key).is_none())
}
