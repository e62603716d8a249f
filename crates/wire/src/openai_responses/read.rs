//! Reads a Responses request, or a list of its items. Orphaned outputs are kept, and nothing is
//! repaired.

use plimsoll_context::{
    CallId, File, Image, Message, Opaque, Part, Source, ToolCall, ToolResult, ToolSpec,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::document::FORMAT;
use super::items;
use super::write::AUTO;
use crate::document::{Document, MessageSpan, Places, ReadEntries};
use crate::error::WireError;
use crate::openai_chat::parts::{from_data_url, from_url};
use crate::prompt_texts;
use crate::raw::{RawObject, parse};

/// Reads a bare array of items, or an object with `input` and any other keys. One message may consist of
/// several items: a turn of the model is one message. Instructions beside the input come first.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a
/// wrong kind.
pub fn read(text: &str) -> Result<Document, WireError> {
    Document::read(text, &FORMAT)
}

/// Reads instructions beside the input.
pub(super) fn instructions(raw: &str) -> Result<Option<Message>, WireError> {
    match parse(raw)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(Message::system(text))),
        other => {
            let expected = "string or null";
            Err(WireError::expected("instructions", expected, Some(&other)))
        }
    }
}

/// Reads the items of a list.
pub(super) fn messages(entries: &[&str], place: Places<'_>) -> ReadEntries {
    let mut reader = ItemReader {
        messages: Vec::new(),
        items: 0,
        last: Last::Else,
    };
    for (index, raw) in entries.iter().enumerate() {
        reader.item(raw, &place(index))?;
    }
    Ok(reader.messages)
}

/// Reads the tools of a request.
pub(super) fn tools(keys: &RawObject<'_>, document: &mut Document) -> Result<(), WireError> {
    let list: Option<Vec<&RawValue>> = match keys.get("tools") {
        Some(raw) => parse(raw)?,
        None => None,
    };
    for (index, raw) in list.into_iter().flatten().enumerate() {
        let tool: Value = parse(raw.get())?;
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            document.hosted_tools.push(items::opaque(raw.get()));
            continue;
        }
        let place = format!("tools[{index}]");
        let description = tool.get("description").and_then(Value::as_str);
        document.tools.push(ToolSpec {
            name: string(&tool, "name", &place)?,
            description: description.unwrap_or_default().to_owned(),
            schema: tool.get("parameters").cloned().unwrap_or_default(),
        });
    }
    Ok(())
}

/// The kind of the item before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A message of the model.
    Said,
    /// Another item of the model.
    Model,
    /// An item that is not the model's.
    Else,
}

struct ItemReader {
    messages: Vec<(Message, MessageSpan)>,
    /// The number of items that were read.
    items: usize,
    last: Last,
}

impl ItemReader {
    fn item(&mut self, raw: &str, place: &str) -> Result<(), WireError> {
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
                self.model(vec![Part::Thinking(thinking)]);
            }
            kind @ ("function_call" | "custom_tool_call") => {
                // The type of a custom call is kept: its tool takes free text.
                let (taken, usual) = match kind {
                    "function_call" => ("arguments", "type"),
                    _ => ("input", ""),
                };
                let arguments = string(&item, taken, place)?;
                let known = [usual, "call_id", "name", taken, "status"];
                let call = call(&item, place, arguments, &known)?;
                self.model(vec![Part::ToolCall(call)]);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let object: RawObject<'_> = parse(raw)?;
                let parts = content(&object, "output", &format!("{place}.output"))?;
                let call = CallId(string(&item, "call_id", place)?);
                let result = ToolResult {
                    call,
                    parts,
                    is_error: false,
                };
                self.push(Message::ToolResult(result));
            }
            kind if items::is_content(kind) => {
                let place = format!("{place}.type");
                let got = item.get("type");
                return Err(WireError::expected(place, "the type of an item", got));
            }
            kind if items::is_instruction(kind) => {
                let parts = vec![Part::Opaque(items::opaque(raw))];
                self.push(Message::System { parts });
            }
            kind if items::is_clients(kind) => {
                self.push(user(vec![Part::Opaque(items::opaque(raw))]));
            }
            _ => self.model(vec![Part::Opaque(items::opaque(raw))]),
        }
        Ok(())
    }

    fn message(&mut self, item: &Value, raw: &str, place: &str) -> Result<(), WireError> {
        let object: RawObject<'_> = parse(raw)?;
        let parts = content(&object, "content", &format!("{place}.content"))?;
        match string(item, "role", place)?.as_str() {
            "system" | "developer" => self.push(Message::System { parts }),
            "user" => self.push(prompt_texts::parse_user_message(parts)),
            "assistant" => {
                let known = ["type", "role", "content", "id", "status"];
                let extra = extra_keys(item, &known);
                // Two messages in a row are two turns, unless the second names its relation to the
                // first.
                if self.last == Last::Said && extra.is_none() {
                    self.last = Last::Else;
                }
                let mut turn_parts: Vec<Part> = extra.map(Part::Opaque).into_iter().collect();
                turn_parts.extend(parts);
                self.model(turn_parts);
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

    /// Adds an item of the model to the turn of the item before it.
    fn model(&mut self, more: Vec<Part>) {
        let open = self.last != Last::Else;
        self.last = Last::Model;
        if open && let Some((Message::Assistant { parts }, source)) = self.messages.last_mut() {
            parts.extend(more);
            self.items += 1;
            source.entries.end = self.items;
            return;
        }
        self.add(Message::Assistant { parts: more });
    }

    fn push(&mut self, message: Message) {
        self.last = Last::Else;
        self.add(message);
    }

    fn add(&mut self, message: Message) {
        self.messages
            .push((message, MessageSpan::entry(self.items)));
        self.items += 1;
    }
}

fn user(parts: Vec<Part>) -> Message {
    Message::User { parts }
}

/// Reads a tool call. `known` are the keys that the part contains already.
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
        opaque: extra_keys(item, known),
    })
}

/// Returns the additional keys of an item, which must be sent back with it.
pub(super) fn extra_keys(item: &Value, known: &[&str]) -> Option<Opaque> {
    let mut extra = item.as_object()?.clone();
    extra.retain(|key, value| !known.contains(&key.as_str()) && !value.is_null());
    (!extra.is_empty()).then(|| items::opaque(&Value::Object(extra).to_string()))
}

/// Returns the parts of a text or a list of parts.
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
        // It would be mistaken for an item.
        _ => {
            let place = format!("{place}.type");
            let expected = "the type of a part of a message";
            Err(WireError::expected(place, expected, part.get("type")))
        }
    }
}

/// Reads an image with an address or an id. Returns `None` for any other form.
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

/// Reads a file with bytes, an address or an id. Returns `None` for any other form.
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
