//! Reads a Responses request, or a list of its items. Orphaned outputs are kept, and nothing is
//! repaired.

use plimsoll_context::{
    CallId, File, Image, Message, Part, Source, ToolCall, ToolResult, ToolSpec,
};

use super::document::FORMAT;
use super::items::{self, ORIGIN};
use super::reply::OF_MESSAGE;
use super::write::AUTO;
use crate::document::{Document, Entries, MessageSpan, Places, ReadEntries};
use crate::error::WireError;
use crate::openai_chat::parts::{from_data_url, from_url};
use crate::prompt_texts;
use crate::raw::{RawObject, parse};
use crate::read::{array, content, unknown_role, wrong};

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
    match raw {
        "null" => Ok(None),
        text if text.starts_with('"') => Ok(Some(Message::system(parse::<String>(text)?))),
        other => Err(wrong(other, "instructions", "string or null")),
    }
}

/// Reads the items of a list.
pub(super) fn messages(entries: Entries<'_>, place: Places<'_>) -> ReadEntries {
    let mut reader = ItemReader {
        messages: Vec::new(),
        items: 0,
        last: Last::Else,
    };
    for (index, raw) in entries.enumerate() {
        reader.item(&raw, &place(index))?;
    }
    Ok(reader.messages)
}

/// Reads the tools of a request.
pub(super) fn tools(keys: &RawObject<'_>, document: &mut Document) -> Result<(), WireError> {
    let list = keys.given("tools").unwrap_or("[]");
    for (index, raw) in array(list, "tools", "an array")?.into_iter().enumerate() {
        let place = format!("tools[{index}]");
        let tool = RawObject::read(raw, &place)?;
        if tool.text("type") != "function" {
            document.hosted_tools.push(items::opaque(raw));
            continue;
        }
        let schema = tool.get("parameters").map(parse).transpose()?;
        document.tools.push(ToolSpec {
            name: tool.need("name", &place)?,
            description: tool.text("description"),
            schema: schema.unwrap_or_default(),
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
        let item = RawObject::read(raw, place)?;
        let kind = match item.given("type") {
            None if item.get("role").is_some() => "message".to_owned(),
            _ => item.need("type", place)?,
        };
        let opaque = || Part::Opaque(items::opaque(raw));
        match kind.as_str() {
            "message" => self.message(&item, place)?,
            "reasoning" => {
                let thinking = items::thinking(&parse(raw)?, raw);
                self.model(vec![Part::Thinking(thinking)]);
            }
            "function_call" => {
                let known = ["type", "call_id", "name", "arguments", "status"];
                let arguments = item.need("arguments", place)?;
                self.model(vec![call(&item, place, arguments, &known)?]);
            }
            "custom_tool_call" => {
                // The type is kept: its tool takes free text.
                let known = ["call_id", "name", "input", "status"];
                let arguments = item.need("input", place)?;
                self.model(vec![call(&item, place, arguments, &known)?]);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let parts = parts(&item, "output", place)?;
                let call = CallId(item.need("call_id", place)?);
                self.push(Message::ToolResult(ToolResult {
                    call,
                    parts,
                    is_error: false,
                }));
            }
            kind if items::is_content(kind) => {
                let got = item.get("type").unwrap_or("null");
                let place = format!("{place}.type");
                return Err(wrong(got, &place, "the type of an item"));
            }
            kind if items::is_instruction(kind) => {
                let parts = vec![opaque()];
                self.push(Message::System { parts });
            }
            kind if items::is_clients(kind) => {
                let parts = vec![opaque()];
                self.push(Message::User { parts });
            }
            _ => self.model(vec![opaque()]),
        }
        Ok(())
    }

    fn message(&mut self, item: &RawObject<'_>, place: &str) -> Result<(), WireError> {
        let parts = parts(item, "content", place)?;
        match item.need("role", place)?.as_str() {
            "system" | "developer" => self.push(Message::System { parts }),
            "user" => self.push(prompt_texts::parse_user_message(parts)),
            "assistant" => {
                let extra = item.rest(ORIGIN, &OF_MESSAGE);
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
                let known = "assistant, system, developer or user";
                return Err(unknown_role(other, place, known));
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

/// Reads a tool call. `known` are the keys that the part contains already.
fn call(
    item: &RawObject<'_>,
    place: &str,
    arguments: String,
    known: &[&str],
) -> Result<Part, WireError> {
    Ok(Part::ToolCall(ToolCall {
        id: CallId(item.need("call_id", place)?),
        name: item.need("name", place)?,
        arguments,
        opaque: item.rest(ORIGIN, known),
    }))
}

/// Returns the parts of a text or a list of parts.
fn parts(item: &RawObject<'_>, key: &str, place: &str) -> Result<Vec<Part>, WireError> {
    let raw = item.get(key).unwrap_or("null");
    content(raw, &format!("{place}.{key}"), "string or array", part)
}

fn part(part: &RawObject<'_>, raw: &str, place: &str) -> Result<Vec<Part>, WireError> {
    let media = match part.need("type", place)?.as_str() {
        "input_text" | "output_text" | "text" => {
            return Ok(vec![Part::text(part.need("text", place)?)]);
        }
        "input_image" => image(part),
        "input_file" => file(part),
        kind if items::is_content(kind) => None,
        // It would be mistaken for an item.
        _ => {
            let got = part.get("type").unwrap_or("null");
            let place = format!("{place}.type");
            return Err(wrong(got, &place, "the type of a part of a message"));
        }
    };
    Ok(vec![
        media.unwrap_or_else(|| Part::Opaque(items::opaque(raw))),
    ])
}

/// Reads an image with an address or an id. Returns `None` for any other form.
fn image(part: &RawObject<'_>) -> Option<Part> {
    let source = match (part.some_text("image_url"), part.some_text("file_id")) {
        (Some(url), None) => from_url(url),
        (None, Some(url)) => Source::Url { url },
        _ => return None,
    };
    Some(Part::Image(Image {
        source,
        size: None,
        detail: part.some_text("detail").filter(|detail| detail != AUTO),
    }))
}

/// Reads a file with bytes, an address or an id. Returns `None` for any other form.
fn file(part: &RawObject<'_>) -> Option<Part> {
    let source = ["file_data", "file_url", "file_id"].map(|key| part.some_text(key));
    let source = match source {
        [Some(data), None, None] => from_data_url(&data)?,
        [None, Some(url), None] | [None, None, Some(url)] => Source::Url { url },
        _ => return None,
    };
    let name = part.some_text("filename");
    Some(Part::File(File { name, source }))
}
