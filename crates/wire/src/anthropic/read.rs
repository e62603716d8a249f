//! Reads a request of Anthropic Messages. Orphaned results are kept, and nothing is repaired.

use std::ops::Range;

use plimsoll_context::{CallId, Message, Part, ToolResult, ToolSpec};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ORIGIN;
use super::document::FORMAT;
use super::read_block::{self, text};
use crate::document::{Document, MessageSpan, Places, ReadEntries, WHOLE};
use crate::error::WireError;
use crate::prompt_texts;
use crate::raw::{self, RawObject, parse};

/// Reads a bare array of messages, or an object with `messages` and any other keys. Each result is a
/// separate message, and text beside results is a user message.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a
/// wrong kind.
pub fn read(text: &str) -> Result<Document, WireError> {
    Document::read(text, &FORMAT)
}

/// Reads the system prompt beside the messages.
pub(super) fn system(raw: &str) -> Result<Option<Message>, WireError> {
    let parts = content(raw, "system")?;
    Ok((!parts.is_empty()).then_some(Message::System { parts }))
}

/// Reads the messages of a list.
pub(super) fn messages(entries: &[&str], place: Places<'_>) -> ReadEntries {
    let mut messages = Vec::new();
    for (index, raw) in entries.iter().enumerate() {
        let place = place(index);
        let object: RawObject<'_> = object(raw, &place)?;
        let role = text(&object, "role", &place)?;
        let inside = format!("{place}.content");
        let raw = object.get("content").unwrap_or("null");
        match role.as_str() {
            "assistant" => {
                let parts = content(raw, &inside)?;
                messages.push((Message::Assistant { parts }, MessageSpan::entry(index)));
            }
            "system" => {
                let parts = content(raw, &inside)?;
                messages.push((Message::System { parts }, MessageSpan::entry(index)));
            }
            "user" => {
                let mut reader = UserReader::new(&mut messages, index);
                reader.read(raw, &inside)?;
            }
            other => {
                return Err(WireError::Expected {
                    place: format!("{place}.role"),
                    expected: "user or assistant".into(),
                    got: format!("{other:?}"),
                });
            }
        }
    }
    Ok(messages)
}

/// Reads a user message: each result as a separate message, summaries by their frame, other blocks
/// together.
struct UserReader<'r> {
    messages: &'r mut Vec<(Message, MessageSpan)>,
    /// The index of the entry.
    entry: usize,
    /// The parts of blocks that follow each other, and these blocks.
    parts: Vec<Part>,
    blocks: Range<usize>,
}

impl<'r> UserReader<'r> {
    fn new(messages: &'r mut Vec<(Message, MessageSpan)>, entry: usize) -> Self {
        Self {
            messages,
            entry,
            parts: Vec::new(),
            blocks: 0..0,
        }
    }

    fn read(&mut self, raw: &str, place: &str) -> Result<(), WireError> {
        let before = self.messages.len();
        for (at, block) in blocks(raw, place)?.into_iter().enumerate() {
            let place = format!("{place}[{at}]");
            let block = match block {
                ContentEntry::Text(text) => vec![Part::text(text)],
                ContentEntry::Raw(raw) => match result(raw, &place)? {
                    Some(result) => {
                        self.push(Message::ToolResult(result), at..at + 1);
                        continue;
                    }
                    None => read_block::parts(raw, &place)?,
                },
            };
            let own = match block.as_slice() {
                [Part::Text { text }] => prompt_texts::own_message(text),
                _ => None,
            };
            match own {
                Some(message) => self.push(message, at..at + 1),
                None => {
                    if self.parts.is_empty() {
                        self.blocks.start = at;
                    }
                    self.blocks.end = at + 1;
                    self.parts.extend(block);
                }
            }
        }
        if self.messages.len() == before && self.parts.is_empty() {
            let parts = Vec::new();
            self.push(Message::User { parts }, WHOLE);
        }
        self.end_parts();
        Ok(())
    }

    /// Adds a message behind the parts that were read so far.
    fn push(&mut self, message: Message, blocks: Range<usize>) {
        self.end_parts();
        let entry = MessageSpan::entry(self.entry);
        self.messages
            .push((message, MessageSpan { blocks, ..entry }));
    }

    fn end_parts(&mut self) {
        if !self.parts.is_empty() {
            let parts = std::mem::take(&mut self.parts);
            let blocks = std::mem::take(&mut self.blocks);
            self.push(Message::User { parts }, blocks);
        }
    }
}

/// Reads the tools of a request.
pub(super) fn tools(keys: &RawObject<'_>, document: &mut Document) -> Result<(), WireError> {
    let tools = keys.get("tools").filter(|tools| *tools != "null");
    let tools = tools.map_or_else(|| Ok(Vec::new()), |tools| array(tools, "tools"))?;
    for (index, raw) in tools.into_iter().enumerate() {
        tool(document, raw, &format!("tools[{index}]"))?;
    }
    if !document.deferred_tools.is_empty() {
        for name in document.messages.iter().flat_map(loaded_tools) {
            document.deferred_tools.remove(&name);
        }
    }
    Ok(())
}

fn tool(document: &mut Document, raw: &str, place: &str) -> Result<(), WireError> {
    let object: RawObject<'_> = object(raw, place)?;
    if object.get("defer_loading") == Some("true") {
        let name = text(&object, "name", place).unwrap_or_default();
        document.deferred_tools.insert(name);
    }
    let Some(schema) = object.get("input_schema") else {
        let tool = raw::opaque(ORIGIN, raw.trim());
        document.hosted_tools.push(tool);
        return Ok(());
    };
    let description = match object.get("description") {
        Some(_) => text(&object, "description", place)?,
        None => String::new(),
    };
    document.tools.push(ToolSpec {
        name: text(&object, "name", place)?,
        description,
        schema: parse(schema)?,
    });
    Ok(())
}

/// Returns the names of the tools that a message loads.
fn loaded_tools(message: &Message) -> Vec<String> {
    let mut names = Vec::new();
    for part in message.parts() {
        if let Part::Opaque(opaque) = part {
            let block = serde_json::from_str(&opaque.data).unwrap_or_default();
            references(&block, &mut names);
        }
    }
    names
}

/// Collects the names in `tool_reference` blocks, which may be inside the result of a search.
fn references(block: &Value, names: &mut Vec<String>) {
    if block.get("type").and_then(Value::as_str) == Some("tool_reference") {
        let name = block.get("tool_name").and_then(Value::as_str);
        names.extend(name.map(str::to_owned));
    }
    let inside = block.get("content").map(|content| match content {
        Value::Array(blocks) => blocks.iter().collect(),
        Value::Object(_) => vec![content],
        _ => Vec::new(),
    });
    let listed = block.get("tool_references").and_then(Value::as_array);
    let listed = listed.into_iter().flatten();
    for block in inside.into_iter().flatten().chain(listed) {
        references(block, names);
    }
}

/// One entry of a content.
enum ContentEntry<'a> {
    /// A content that is a plain text, or a text in a list without a block around it.
    Text(String),
    Raw(&'a str),
}

/// Returns the blocks of a content. A text is one block; `null` and an empty text are none.
fn blocks<'a>(raw: &'a str, place: &str) -> Result<Vec<ContentEntry<'a>>, WireError> {
    let raw = raw.trim();
    if raw == "null" {
        return Ok(Vec::new());
    }
    if raw.starts_with('"') {
        let text: String = parse(raw)?;
        let text = (!text.is_empty()).then_some(ContentEntry::Text(text));
        return Ok(text.into_iter().collect());
    }
    let list = array(raw, place)?;
    let block = |raw: &'a str| {
        if raw.starts_with('"') {
            parse(raw).map(ContentEntry::Text)
        } else {
            Ok(ContentEntry::Raw(raw))
        }
    };
    list.into_iter().map(block).collect()
}

fn content(raw: &str, place: &str) -> Result<Vec<Part>, WireError> {
    let mut parts = Vec::new();
    for (at, block) in blocks(raw, place)?.into_iter().enumerate() {
        match block {
            ContentEntry::Text(text) => parts.push(Part::text(text)),
            ContentEntry::Raw(raw) => {
                parts.extend(read_block::parts(raw, &format!("{place}[{at}]"))?)
            }
        }
    }
    Ok(parts)
}

/// Reads a tool result. Returns `None` for any other block.
fn result(raw: &str, place: &str) -> Result<Option<ToolResult>, WireError> {
    let object: RawObject<'_> = object(raw, place)?;
    if object.get("type") != Some("\"tool_result\"") {
        return Ok(None);
    }
    let inside = format!("{place}.content");
    Ok(Some(ToolResult {
        call: CallId(text(&object, "tool_use_id", place)?),
        parts: content(object.get("content").unwrap_or("null"), &inside)?,
        is_error: object.get("is_error") == Some("true"),
    }))
}

fn object<'a>(raw: &'a str, place: &str) -> Result<RawObject<'a>, WireError> {
    if raw.starts_with('{') {
        return parse(raw);
    }
    let value: Value = parse(raw)?;
    Err(WireError::expected(place, "an object", Some(&value)))
}

fn array<'a>(raw: &'a str, place: &str) -> Result<Vec<&'a str>, WireError> {
    if !raw.starts_with('[') {
        let value: Value = parse(raw)?;
        return Err(WireError::expected(place, "an array", Some(&value)));
    }
    let list: Vec<&RawValue> = parse(raw)?;
    Ok(list.into_iter().map(RawValue::get).collect())
}
