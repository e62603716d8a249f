//! [`read`]: a Responses request, or a list of its items, as messages, with the original texts
//! beside them. Repairs nothing: orphans are read as orphans.

use plimsoll_context::{
    CallId, File, Image, Message, Opaque, Part, Source, ToolCall, ToolResult, ToolSpec,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::items;
use super::write::AUTO;
use crate::error::WireError;
use crate::frames;
use crate::openai_chat::Extra;
use crate::raw::{RawObject, parse};
use crate::sources::{from_data_url, from_url};

/// A history that was read. One message may come of several items: a turn of the model's is one
/// message.
#[derive(Debug, Clone, Default)]
pub struct Chat<'a> {
    /// The system prompt that stands beside the input.
    pub instructions: Option<String>,
    /// The messages.
    pub messages: Vec<Message>,
    /// The tools that stand beside the input.
    pub tools: Vec<ToolSpec>,
    /// The provider's own tools, as they are.
    pub hosted_tools: Vec<Opaque>,
    originals: Vec<Vec<&'a str>>,
    /// The object that the items stood in; `None` for a bare array.
    pub(super) object: Option<RawObject<'a>>,
}

/// Reads a bare array of items, or an object with `input` and any other keys.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a
/// wrong kind.
pub fn read(text: &str) -> Result<Chat<'_>, WireError> {
    let mut chat = Chat::default();
    let (list, place) = match text.trim_start().as_bytes().first() {
        Some(b'{') => {
            chat.object = Some(parse(text)?);
            let list = chat.key("input");
            let expected = "a string or an array of items";
            let list = list.ok_or_else(|| WireError::expected("input", expected, None))?;
            (list, "input")
        }
        _ => (text, ""),
    };
    if let Some(raw) = chat.key("instructions") {
        chat.instructions = match parse(raw)? {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => {
                let expected = "string or null";
                return Err(WireError::expected("instructions", expected, Some(&other)));
            }
        };
    }
    if let Some(raw) = chat.key("tools") {
        chat.tools(raw)?;
    }
    match list.trim_start().as_bytes().first() {
        Some(b'[') => {}
        Some(b'"') if !place.is_empty() => {
            let said: String = parse(list)?;
            chat.messages.push(user(vec![Part::text(said)]));
            chat.originals.push(vec![list]);
            return Ok(chat);
        }
        _ => {
            let value: Value = parse(list)?;
            let place = if place.is_empty() { "the list" } else { place };
            let expected = "an array of items, or an object with `input`";
            return Err(WireError::expected(place, expected, Some(&value)));
        }
    }
    let raws: Vec<&RawValue> = parse(list)?;
    let mut reader = Reader {
        chat,
        last: Last::Else,
    };
    for (index, raw) in raws.into_iter().enumerate() {
        reader.item(raw.get(), &format!("{place}[{index}]"))?;
    }
    Ok(reader.chat)
}

impl<'a> Chat<'a> {
    /// The original JSON texts of the items of a message.
    #[must_use]
    pub fn originals(&self, index: usize) -> &[&'a str] {
        self.originals
            .get(index)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// The raw JSON text of a key beside `input`, such as `max_output_tokens`.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'a str> {
        self.object.as_ref()?.get(name)
    }

    fn tools(&mut self, raw: &'a str) -> Result<(), WireError> {
        let list: Option<Vec<&RawValue>> = parse(raw)?;
        for (index, raw) in list.into_iter().flatten().enumerate() {
            let tool: Value = parse(raw.get())?;
            if tool.get("type").and_then(Value::as_str) != Some("function") {
                self.hosted_tools.push(items::opaque(raw.get()));
                continue;
            }
            let place = format!("tools[{index}]");
            let description = tool.get("description").and_then(Value::as_str);
            self.tools.push(ToolSpec {
                name: string(&tool, "name", &place)?,
                description: description.unwrap_or_default().to_owned(),
                schema: tool.get("parameters").cloned().unwrap_or_default(),
            });
        }
        Ok(())
    }
}

/// What the item before this one was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A message of the model's.
    Said,
    /// Another item of the model's.
    Model,
    /// Anybody else's.
    Else,
}

struct Reader<'a> {
    chat: Chat<'a>,
    last: Last,
}

impl<'a> Reader<'a> {
    fn item(&mut self, raw: &'a str, place: &str) -> Result<(), WireError> {
        let item: Value = parse(raw)?;
        if !item.is_object() {
            return Err(WireError::expected(place, "an object", Some(&item)));
        }
        match items::kind(&item) {
            "" => {
                let place = format!("{place}.type");
                return Err(WireError::expected(place, "string", item.get("type")));
            }
            "message" => self.message(&item, raw, place)?,
            "reasoning" => {
                let thinking = items::thinking(&item, raw);
                self.model(raw, vec![Part::Thinking(thinking)]);
            }
            "function_call" => {
                let arguments = string(&item, "arguments", place)?;
                let known = ["type", "call_id", "name", "arguments", "status"];
                let call = call(&item, place, arguments, &known)?;
                self.model(raw, vec![Part::ToolCall(call)]);
            }
            "custom_tool_call" => {
                let input = string(&item, "input", place)?;
                let known = ["call_id", "name", "input", "status"];
                let call = call(&item, place, input, &known)?;
                self.model(raw, vec![Part::ToolCall(call)]);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let object: RawObject<'a> = parse(raw)?;
                let parts = content(&object, "output", &format!("{place}.output"))?;
                let call = CallId(string(&item, "call_id", place)?);
                let result = ToolResult {
                    call,
                    parts,
                    is_error: false,
                };
                self.push(raw, Message::ToolResult(result));
            }
            kind if items::is_content(kind) => {
                let place = format!("{place}.type");
                let got = item.get("type");
                return Err(WireError::expected(place, "the type of an item", got));
            }
            kind if items::is_instruction(kind) => {
                let parts = vec![Part::Opaque(items::opaque(raw))];
                self.push(raw, Message::System { parts });
            }
            kind if items::is_clients(kind) => {
                self.push(raw, user(vec![Part::Opaque(items::opaque(raw))]));
            }
            _ => self.model(raw, vec![Part::Opaque(items::opaque(raw))]),
        }
        Ok(())
    }

    fn message(&mut self, item: &Value, raw: &'a str, place: &str) -> Result<(), WireError> {
        let object: RawObject<'a> = parse(raw)?;
        let parts = content(&object, "content", &format!("{place}.content"))?;
        match string(item, "role", place)?.as_str() {
            "system" | "developer" => self.push(raw, Message::System { parts }),
            "user" => self.push(raw, frames::heard(parts)),
            "assistant" => {
                let known = ["type", "role", "content", "id", "status"];
                let beside = beside(item, &known);
                // Two messages in a row are two turns, unless the second says what it is to the
                // first.
                if self.last == Last::Said && beside.is_none() {
                    self.last = Last::Else;
                }
                let mut said: Vec<Part> = beside.map(Part::Opaque).into_iter().collect();
                said.extend(parts);
                self.model(raw, said);
                self.last = Last::Said;
            }
            other => {
                return Err(WireError::Expected {
                    place: format!("{place}.role"),
                    expected: "assistant, system, developer or user".into(),
                    got: format!("{other:?}"),
                });
            }
        }
        Ok(())
    }

    /// An item of the model's: it belongs to the same turn as the one before it.
    fn model(&mut self, raw: &'a str, more: Vec<Part>) {
        let open = self.last != Last::Else;
        self.last = Last::Model;
        if open
            && let Some(Message::Assistant { parts }) = self.chat.messages.last_mut()
            && let Some(originals) = self.chat.originals.last_mut()
        {
            parts.extend(more);
            originals.push(raw);
            return;
        }
        self.chat.messages.push(Message::Assistant { parts: more });
        self.chat.originals.push(vec![raw]);
    }

    fn push(&mut self, raw: &'a str, message: Message) {
        self.last = Last::Else;
        self.chat.messages.push(message);
        self.chat.originals.push(vec![raw]);
    }
}

fn user(parts: Vec<Part>) -> Message {
    Message::User { parts }
}

/// A tool call; `known` are the keys that its part holds already.
pub(super) fn call(
    item: &Value,
    place: &str,
    arguments: String,
    known: &[&str],
) -> Result<ToolCall, WireError> {
    Ok(ToolCall {
        id: CallId(string(item, "call_id", place)?),
        name: string(item, "name", place)?,
        arguments,
        opaque: beside(item, known),
    })
}

/// The keys of an item besides the known ones, which have to go back with it.
pub(super) fn beside(item: &Value, known: &[&str]) -> Option<Opaque> {
    let mut beside: Extra = item.as_object()?.clone();
    beside.retain(|key, value| !known.contains(&key.as_str()) && !value.is_null());
    (!beside.is_empty()).then(|| items::opaque(&Value::Object(beside).to_string()))
}

/// The parts of a text or a list of parts.
fn content(object: &RawObject<'_>, key: &str, place: &str) -> Result<Vec<Part>, WireError> {
    let raw = object.get(key).unwrap_or("null");
    let value: Value = parse(raw)?;
    match value {
        Value::String(text) => Ok(vec![Part::text(text)]),
        Value::Array(_) => {
            let raws: Vec<&RawValue> = parse(raw)?;
            let parts = raws.into_iter().enumerate();
            let parts = parts.map(|(index, raw)| part(raw.get(), &format!("{place}[{index}]")));
            parts.collect()
        }
        other => Err(WireError::expected(place, "string or array", Some(&other))),
    }
}

fn part(raw: &str, place: &str) -> Result<Part, WireError> {
    let part: Value = parse(raw)?;
    // Some clients put bare texts into the list.
    if let Value::String(text) = part {
        return Ok(Part::text(text));
    }
    if !part.is_object() {
        return Err(WireError::expected(place, "an object", Some(&part)));
    }
    match string(&part, "type", place)?.as_str() {
        "input_text" | "output_text" | "text" => Ok(Part::text(string(&part, "text", place)?)),
        "input_image" => Ok(image(&part).unwrap_or_else(|| Part::Opaque(items::opaque(raw)))),
        "input_file" => Ok(file(&part).unwrap_or_else(|| Part::Opaque(items::opaque(raw)))),
        kind if items::is_content(kind) => Ok(Part::Opaque(items::opaque(raw))),
        // It would be taken for an item.
        _ => {
            let place = format!("{place}.type");
            let expected = "the type of a part of a message";
            Err(WireError::expected(place, expected, part.get("type")))
        }
    }
}

/// An image with an address or an id; `None` for any other form.
fn image(part: &Value) -> Option<Part> {
    let text = |key| part.get(key).and_then(Value::as_str).map(str::to_owned);
    let source = match (text("image_url"), text("file_id")) {
        (Some(url), None) => from_url(url),
        (None, Some(url)) => Source::Url { url },
        _ => return None,
    };
    Some(Part::Image(Image {
        source,
        size: None,
        detail: text("detail").filter(|detail| detail != AUTO),
    }))
}

/// A file with bytes, an address or an id; `None` for any other form.
fn file(part: &Value) -> Option<Part> {
    let text = |key| part.get(key).and_then(Value::as_str).map(str::to_owned);
    let source = match (text("file_data"), text("file_url"), text("file_id")) {
        (Some(data), None, None) => from_data_url(&data)?,
        (None, Some(url), None) | (None, None, Some(url)) => Source::Url { url },
        _ => return None,
    };
    let name = text("filename");
    Some(Part::File(File { name, source }))
}

fn string(object: &Value, key: &str, place: &str) -> Result<String, WireError> {
    match object.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => Err(WireError::expected(
            format!("{place}.{key}"),
            "string",
            other,
        )),
    }
}
