//! Reads a request of Chat Completions. Each entry of its list is one message. Orphaned results are
//! kept, and nothing is repaired.

use plimsoll_context::{
    CallId, File, Image, Message, Part, Source, Thinking, ToolCall, ToolResult, ToolSpec,
};
use serde_json::json;

use super::details::{self, AUDIO};
use super::document::FORMAT;
use super::parts::{CUSTOM, ORIGIN, from_data_url, from_url};
use crate::document::{Document, Entries, MessageSpan, Places, ReadEntries};
use crate::error::WireError;
use crate::prompt_texts;
use crate::raw::{self, RawObject, parse};
use crate::read::{array, content, unknown_role, wrong};

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
pub(super) fn messages(entries: Entries<'_>, place: Places<'_>) -> ReadEntries {
    let messages = entries.enumerate().map(|(index, raw)| {
        let message = message(&raw, &place(index))?;
        Ok((message, MessageSpan::entry(index)))
    });
    messages.collect()
}

fn message(raw: &str, place: &str) -> Result<Message, WireError> {
    let message = RawObject::read(raw, place)?;
    let role = message.need("role", place)?;
    let mut parts = match message.given("content") {
        Some(raw) => {
            let place = format!("{place}.content");
            content(raw, &place, "string, array or null", part)?
        }
        None => Vec::new(),
    };
    match role.as_str() {
        "system" | "developer" => Ok(Message::System { parts }),
        "user" => Ok(prompt_texts::parse_user_message(parts)),
        "assistant" => {
            let reasoning = ["reasoning_content", "reasoning"].map(|key| message.text(key));
            if let Some(text) = reasoning.into_iter().find(|text| !text.trim().is_empty()) {
                parts.insert(0, Part::Thinking(Thinking { text, opaque: None }));
            }
            if let Some(refusal) = message.some_text("refusal") {
                parts.push(opaque(
                    &json!({"type": "refusal", "refusal": refusal}).to_string(),
                ));
            }
            if let Some(audio) = message.get(AUDIO).filter(|audio| audio.starts_with('{')) {
                parts.push(details::part(AUDIO, parse(audio)?));
            }
            calls(&message, place, &mut parts)?;
            Ok(Message::Assistant { parts })
        }
        "tool" => Ok(Message::ToolResult(ToolResult {
            call: CallId(message.need("tool_call_id", place)?),
            parts,
            is_error: false,
        })),
        other => {
            let known = "system, developer, user, assistant or tool";
            Err(unknown_role(other, place, known))
        }
    }
}

fn part(part: &RawObject<'_>, raw: &str, place: &str) -> Result<Vec<Part>, WireError> {
    Ok(vec![match part.need("type", place)?.as_str() {
        "text" | "input_text" | "output_text" => Part::text(part.need("text", place)?),
        "image_url" => {
            let image = part.get("image_url").unwrap_or("null");
            let place = format!("{place}.image_url");
            let (url, detail) = if image.starts_with('"') {
                (parse(image)?, None)
            } else {
                let image = RawObject::read(image, &place)?;
                (image.need("url", &place)?, image.some_text("detail"))
            };
            Part::Image(Image {
                source: from_url(url),
                size: None,
                detail,
            })
        }
        "file" => {
            let file = part.object("file").and_then(|file| self::file(&file));
            file.unwrap_or_else(|| opaque(raw))
        }
        _ => opaque(raw),
    }])
}

/// Reads a file with an id or with data. Returns `None` for any other form.
fn file(file: &RawObject<'_>) -> Option<Part> {
    let source = match (file.some_text("file_data"), file.some_text("file_id")) {
        (Some(data), _) => from_data_url(&data)?,
        (None, Some(url)) => Source::Url { url },
        (None, None) => return None,
    };
    let name = file.some_text("filename");
    Some(Part::File(File { name, source }))
}

fn calls(message: &RawObject<'_>, place: &str, parts: &mut Vec<Part>) -> Result<(), WireError> {
    let Some(list) = message.given("tool_calls") else {
        return Ok(());
    };
    let list_place = format!("{place}.tool_calls");
    for (index, raw) in array(list, &list_place, "array or null")?
        .into_iter()
        .enumerate()
    {
        let place = format!("{list_place}[{index}]");
        let entry = RawObject::read(raw, &place)?;
        let id = CallId(entry.need("id", &place)?);
        let custom = entry
            .object(CUSTOM)
            .filter(|_| entry.text("type") == CUSTOM);
        parts.push(Part::ToolCall(if let Some(custom) = custom {
            let place = format!("{place}.{CUSTOM}");
            ToolCall {
                id,
                name: custom.need("name", &place)?,
                arguments: custom.need("input", &place)?,
                opaque: entry.rest(ORIGIN, &["id", CUSTOM, "index"]),
            }
        } else {
            let place = format!("{place}.function");
            let function = entry.get("function").unwrap_or("null");
            let call = call(id, &RawObject::read(function, &place)?, &place)?;
            let opaque = entry.rest(ORIGIN, &["id", "type", "function", "index"]);
            ToolCall { opaque, ..call }
        }));
    }
    Ok(())
}

/// Reads the name and the arguments of a call.
fn call(id: CallId, function: &RawObject<'_>, place: &str) -> Result<ToolCall, WireError> {
    let arguments = match function.given("arguments") {
        None => String::new(),
        // The API does not allow it, but some servers write it.
        Some(object) if object.starts_with('{') => object.to_owned(),
        Some(text) if text.starts_with('"') => parse(text)?,
        Some(other) => return Err(wrong(other, &format!("{place}.arguments"), "string")),
    };
    Ok(ToolCall {
        id,
        name: function.need("name", place)?,
        arguments,
        opaque: None,
    })
}

fn opaque(block: &str) -> Part {
    Part::Opaque(raw::opaque(ORIGIN, block))
}

/// Reads the tools of a request, or its functions, which preceded tools.
pub(super) fn tools(keys: &RawObject<'_>, document: &mut Document) -> Result<(), WireError> {
    let Some(list) = keys.given("tools").or_else(|| keys.given("functions")) else {
        return Ok(());
    };
    for (index, raw) in array(list, "tools", "array or null")?
        .into_iter()
        .enumerate()
    {
        let place = format!("tools[{index}]");
        let tool = RawObject::read(raw, &place)?;
        if is_hosted(&tool) {
            document.hosted_tools.push(raw::opaque(ORIGIN, raw));
            continue;
        }
        let custom = tool.object(CUSTOM);
        let key = if custom.is_some() { CUSTOM } else { "function" };
        let function = custom.or_else(|| tool.object("function"));
        let function = function.as_ref().unwrap_or(&tool);
        let schema = function.get("parameters").map(parse).transpose()?;
        document.tools.push(ToolSpec {
            name: function.need("name", &format!("{place}.{key}"))?,
            description: function.text("description"),
            schema: schema.unwrap_or_default(),
        });
    }
    Ok(())
}

/// Returns `true` if the server runs a tool itself, such as a search. Its definition only has a type.
fn is_hosted(tool: &RawObject<'_>) -> bool {
    let kind = tool.text("type");
    let ours = ["function", CUSTOM, "name"];
    !["", "function", CUSTOM].contains(&kind.as_str())
        && ours.iter().all(|key| tool.get(key).is_none())
}
