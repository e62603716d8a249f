//! Reads a request of Anthropic Messages. Orphaned results are kept, and nothing is repaired.

use std::ops::Range;

use plimsoll_context::{CallId, Message, Part, ToolResult, ToolSpec};
use serde_json::Value;

use super::ORIGIN;
use super::document::FORMAT;
use super::read_block;
use crate::document::{Document, Entries, MessageSpan, Places, ReadEntries, WHOLE};
use crate::error::WireError;
use crate::prompt_texts;
use crate::raw::{self, RawObject, parse};
use crate::read::{array, content, unknown_role};

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
    let parts = parts(raw, "system")?;
    Ok((!parts.is_empty()).then_some(Message::System { parts }))
}

/// Reads the messages of a list.
pub(super) fn messages(entries: Entries<'_>, place: Places<'_>) -> ReadEntries {
    let mut messages = Vec::new();
    for (index, raw) in entries.enumerate() {
        let place = place(index);
        let object = RawObject::read(&raw, &place)?;
        let role = object.need("role", &place)?;
        let inside = format!("{place}.content");
        let raw = object.get("content").unwrap_or("null");
        match role.as_str() {
            "assistant" | "system" => {
                let parts = parts(raw, &inside)?;
                let message = match role.as_str() {
                    "system" => Message::System { parts },
                    _ => Message::Assistant { parts },
                };
                messages.push((message, MessageSpan::entry(index)));
            }
            "user" => UserReader::new(&mut messages, index).read(raw, &inside)?,
            other => return Err(unknown_role(other, &place, "user or assistant")),
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
        if !raw.trim().starts_with('[') {
            let block = parts(raw, place)?;
            self.block(block, 0);
        } else {
            for (at, raw) in array(raw.trim(), place, "an array")?
                .into_iter()
                .enumerate()
            {
                let place = format!("{place}[{at}]");
                if raw.starts_with('"') {
                    self.block(vec![Part::text(parse::<String>(raw)?)], at);
                    continue;
                }
                let object = RawObject::read(raw, &place)?;
                if object.text("type") == "tool_result" {
                    let result = result(&object, &place)?;
                    self.push(Message::ToolResult(result), at..at + 1);
                } else {
                    self.block(read_block::parts(&object, raw, &place)?, at);
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

    /// Adds the parts of a block.
    fn block(&mut self, block: Vec<Part>, at: usize) {
        if let [Part::Text { text }] = block.as_slice()
            && let Some(message) = prompt_texts::own_message(text)
        {
            return self.push(message, at..at + 1);
        }
        if self.parts.is_empty() {
            self.blocks.start = at;
        }
        self.blocks.end = at + 1;
        self.parts.extend(block);
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
    let tools = keys.given("tools").unwrap_or("[]");
    for (index, raw) in array(tools, "tools", "an array")?.into_iter().enumerate() {
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
    let object = RawObject::read(raw, place)?;
    if object.get("defer_loading") == Some("true") {
        document.deferred_tools.insert(object.text("name"));
    }
    let Some(schema) = object.get("input_schema") else {
        let tool = raw::opaque(ORIGIN, raw.trim());
        document.hosted_tools.push(tool);
        return Ok(());
    };
    let description = match object.get("description") {
        Some(_) => object.need("description", place)?,
        None => String::new(),
    };
    document.tools.push(ToolSpec {
        name: object.need("name", place)?,
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

/// Reads a content. `null` and an empty text are no blocks.
fn parts(raw: &str, place: &str) -> Result<Vec<Part>, WireError> {
    match raw.trim() {
        "null" | "\"\"" => Ok(Vec::new()),
        raw => content(raw, place, "an array", read_block::parts),
    }
}

/// Reads a tool result.
fn result(object: &RawObject<'_>, place: &str) -> Result<ToolResult, WireError> {
    let inside = format!("{place}.content");
    Ok(ToolResult {
        call: CallId(object.need("tool_use_id", place)?),
        parts: parts(object.get("content").unwrap_or("null"), &inside)?,
        is_error: object.get("is_error") == Some("true"),
    })
}
