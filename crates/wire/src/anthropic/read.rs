//! [`read`]: a request in the shape of Anthropic Messages as a transcript: each result a message of
//! its own, what is said beside results a user message. Repairs nothing: a request with orphans is
//! read with its orphans.

use std::collections::BTreeSet;
use std::ops::Range;

use plimsoll_context::{CallId, Message, Opaque, Part, ToolResult, ToolSpec};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ORIGIN;
use super::read_block::{self, text};
use crate::error::WireError;
use crate::frames;
use crate::raw::{RawObject, parse};

/// A request that was read.
#[derive(Debug, Clone)]
pub struct Chat<'a> {
    /// The messages; the system prompt is the first, where there is one.
    pub messages: Vec<Message>,
    /// For each, which message of the request it stands in; `None` for the system prompt.
    pub from: Vec<Option<usize>>,
    /// The tools that the caller runs.
    pub tools: Vec<ToolSpec>,
    /// The tools that the provider runs, as they are.
    pub hosted_tools: Vec<Opaque>,
    /// The names of the tools that the model does not see yet: those that are loaded only once a
    /// tool reference names them.
    pub deferred: BTreeSet<String>,
    /// For each message, the blocks of its content that it was read from.
    pub(super) spans: Vec<Range<usize>>,
    originals: Vec<&'a str>,
    pub(super) object: Option<RawObject<'a>>,
}

/// All blocks of a content.
const WHOLE: Range<usize> = 0..usize::MAX;

/// Reads a bare array of messages, or an object with `messages` and any other keys.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a
/// wrong kind.
pub fn read(text: &str) -> Result<Chat<'_>, WireError> {
    let text = text.trim();
    let object: Option<RawObject<'_>> = match text.starts_with('{') {
        true => Some(parse(text)?),
        false => None,
    };
    let list = match &object {
        Some(object) => object
            .get("messages")
            .ok_or_else(|| WireError::expected("messages", "an array of messages", None))?,
        None => text,
    };
    let mut chat = Chat {
        messages: Vec::new(),
        from: Vec::new(),
        tools: Vec::new(),
        hosted_tools: Vec::new(),
        deferred: BTreeSet::new(),
        spans: Vec::new(),
        originals: array(list, "messages")?,
        object,
    };
    if let Some(system) = chat.key("system") {
        let parts = content(system, "system")?;
        if !parts.is_empty() {
            chat.push(Message::System { parts }, None, WHOLE);
        }
    }
    for (index, raw) in chat.originals.clone().into_iter().enumerate() {
        chat.message(raw, index)?;
    }
    if let Some(tools) = chat.key("tools").filter(|tools| *tools != "null") {
        for (index, raw) in array(tools, "tools")?.into_iter().enumerate() {
            chat.tool(raw, &format!("tools[{index}]"))?;
        }
    }
    if !chat.deferred.is_empty() {
        for name in chat.messages.iter().flat_map(loaded_tools) {
            chat.deferred.remove(&name);
        }
    }
    Ok(chat)
}

impl<'a> Chat<'a> {
    /// The original JSON text of a message of the request.
    #[must_use]
    pub fn original(&self, index: usize) -> Option<&'a str> {
        self.originals.get(index).copied()
    }

    /// The raw JSON text of a key beside `messages`, such as `max_tokens`.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'a str> {
        self.object.as_ref()?.get(name)
    }

    fn push(&mut self, message: Message, from: Option<usize>, span: Range<usize>) {
        self.messages.push(message);
        self.from.push(from);
        self.spans.push(span);
    }

    fn message(&mut self, raw: &'a str, index: usize) -> Result<(), WireError> {
        let place = format!("messages[{index}]");
        let object: RawObject<'a> = object(raw, &place)?;
        let role = text(&object, "role", &place)?;
        let inside = format!("{place}.content");
        let raw = object.get("content").unwrap_or("null");
        match role.as_str() {
            "assistant" => {
                let parts = content(raw, &inside)?;
                self.push(Message::Assistant { parts }, Some(index), WHOLE);
            }
            "system" => {
                let parts = content(raw, &inside)?;
                self.push(Message::System { parts }, Some(index), WHOLE);
            }
            "user" => self.user(raw, &inside, index)?,
            other => {
                return Err(WireError::Expected {
                    place: format!("{place}.role"),
                    expected: "user or assistant".into(),
                    got: format!("{other:?}"),
                });
            }
        }
        Ok(())
    }

    /// A user message: results each by itself, summaries by their frame, all else together.
    fn user(&mut self, raw: &'a str, place: &str, index: usize) -> Result<(), WireError> {
        let before = self.messages.len();
        let mut said = UserParts::default();
        for (at, block) in blocks(raw, place)?.into_iter().enumerate() {
            let place = format!("{place}[{at}]");
            let block = match block {
                ContentEntry::Text(text) => vec![Part::text(text)],
                ContentEntry::Raw(raw) => match result(raw, &place)? {
                    Some(result) => {
                        self.say(&mut said, index);
                        self.push(Message::ToolResult(result), Some(index), at..at + 1);
                        continue;
                    }
                    None => read_block::parts(raw, &place)?,
                },
            };
            let own = match block.as_slice() {
                [Part::Text { text }] => frames::own_message(text),
                _ => None,
            };
            match own {
                Some(message) => {
                    self.say(&mut said, index);
                    self.push(message, Some(index), at..at + 1);
                }
                None => said.take(block, at),
            }
        }
        if self.messages.len() == before && said.parts.is_empty() {
            let parts = Vec::new();
            self.push(Message::User { parts }, Some(index), WHOLE);
        }
        self.say(&mut said, index);
        Ok(())
    }

    fn say(&mut self, said: &mut UserParts, index: usize) {
        if !said.parts.is_empty() {
            let UserParts { parts, span } = std::mem::take(said);
            self.push(Message::User { parts }, Some(index), span);
        }
    }

    fn tool(&mut self, raw: &'a str, place: &str) -> Result<(), WireError> {
        let object: RawObject<'a> = object(raw, place)?;
        if object.get("defer_loading") == Some("true") {
            let name = text(&object, "name", place).unwrap_or_default();
            self.deferred.insert(name);
        }
        let Some(schema) = object.get("input_schema") else {
            self.hosted_tools.push(Opaque {
                origin: ORIGIN.into(),
                data: raw.trim().to_owned(),
            });
            return Ok(());
        };
        let description = match object.get("description") {
            Some(_) => text(&object, "description", place)?,
            None => String::new(),
        };
        self.tools.push(ToolSpec {
            name: text(&object, "name", place)?,
            description,
            schema: parse(schema)?,
        });
        Ok(())
    }
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

/// Collects the names in `tool_reference` blocks, which may stand within the result of a search.
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

/// What is said in blocks that follow each other.
#[derive(Default)]
struct UserParts {
    parts: Vec<Part>,
    span: Range<usize>,
}

impl UserParts {
    fn take(&mut self, block: Vec<Part>, at: usize) {
        if self.parts.is_empty() {
            self.span.start = at;
        }
        self.span.end = at + 1;
        self.parts.extend(block);
    }
}

/// One entry of a content.
enum ContentEntry<'a> {
    /// A content that is one text, or a text without a block around it.
    Text(String),
    Raw(&'a str),
}

/// The blocks of a content: a text is one, null and nothing are none.
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
    let block = |raw: &'a str| match raw.starts_with('"') {
        true => parse(raw).map(ContentEntry::Text),
        false => Ok(ContentEntry::Raw(raw)),
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

/// A tool result; `None` for any other block.
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
