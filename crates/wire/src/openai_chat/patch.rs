//! Edits the messages of a chat in place. Only the changed keys of an edited message are replaced.

use plimsoll_context::{Message, Part};
use serde_json::Value;

use super::dialect::Dialect;
use super::parts::CUSTOM;
use super::read::{self, Legacy, message};
use crate::compose::render;
use crate::document::{DocumentFormat, Member};
use crate::error::{CHAT, WireError};
use crate::message_patch::is_thinking;
use crate::prompt_texts;
use crate::raw::{RawObject, parse};

/// The messages of Chat Completions.
pub static FORMAT: DocumentFormat = DocumentFormat {
    key: "messages",
    system: None,
    has_items: false,
    expected: [CHAT, "an array of messages, or an object with `messages`"],
    bare: "the chat",
    read_system: |_| Ok(None),
    read_entries: read::messages,
    read_tools: read::tools,
    edit_system: |raw, _| Ok(raw.to_owned()),
    edit,
    write: |messages, _| messages.iter().copied().map(written).collect(),
};

fn edit(entries: &[&str], members: &[Member<'_>]) -> Result<Vec<String>, WireError> {
    let edited = entries.iter().zip(members);
    let edited = edited.map(|(raw, member)| match member.edited {
        Some(edited) => patch_content(raw, edited),
        None => Ok((*raw).to_owned()),
    });
    edited.collect()
}

fn written(message: &Message) -> Result<Vec<String>, WireError> {
    Ok(rendered(message)?.iter().map(Value::to_string).collect())
}

/// Returns the original JSON text of a message with the changes of `edited`: `content`, the arguments
/// of tool calls, and no reasoning if `edited` has none.
///
/// All other keys keep their bytes and their order. An edit without changes returns the original.
///
/// # Errors
///
/// [`WireError::NotJson`] or [`WireError::Expected`] if the original is not a message.
pub fn patch_content(original: &str, edited: &Message) -> Result<String, WireError> {
    let object: RawObject<'_> = parse(original)?;
    let value: Value = parse(original)?;
    let before = message(value.clone(), "message", 0, &mut Legacy::default())?;
    let mut changes = Vec::new();
    if content_parts(&before) != content_parts(edited) {
        let content = rendered(edited)?
            .as_mut()
            .and_then(|message| message.get_mut("content").map(Value::take))
            .unwrap_or(Value::Null);
        changes.push(("content", Some(content.to_string())));
    }
    if thinking(&before) && !thinking(edited) {
        changes.push(("reasoning_content", None));
        changes.push(("reasoning", None));
    }
    if let Some(calls) = patched_calls(&value, &before, edited) {
        changes.push(("tool_calls", Some(calls.to_string())));
    }
    if changes.is_empty() {
        return Ok(original.to_owned());
    }
    Ok(object.with(&changes))
}

/// Returns the original's tool calls with the edited arguments. `None` if none was edited.
fn patched_calls(original: &Value, before: &Message, edited: &Message) -> Option<Value> {
    let same = before
        .calls()
        .zip(edited.calls())
        .all(|(one, other)| one.arguments == other.arguments);
    if same {
        return None;
    }
    let mut list = original.get("tool_calls")?.clone();
    for call in list.as_array_mut()? {
        let id = call.get("id").and_then(Value::as_str).map(str::to_owned);
        let edited = edited
            .calls()
            .find(|edited| Some(&edited.id.0) == id.as_ref());
        let key = if call.get(CUSTOM).is_some_and(Value::is_object) {
            CUSTOM
        } else {
            "function"
        };
        let taken = if key == CUSTOM { "input" } else { "arguments" };
        let function = call.get_mut(key).and_then(Value::as_object_mut);
        if let (Some(edited), Some(function)) = (edited, function) {
            function.insert(taken.into(), edited.arguments.as_str().into());
        }
    }
    Some(list)
}

/// Returns the parts that belong to `content`.
fn content_parts(message: &Message) -> Vec<Part> {
    let mut parts = prompt_texts::sent_parts(message).into_owned();
    parts.retain(|part| !matches!(part, Part::Thinking(_) | Part::ToolCall(_)));
    parts
}

fn thinking(message: &Message) -> bool {
    message.parts().iter().any(is_thinking)
}

/// Renders the message in the dialect with the most features. Returns `None` for a message without
/// content.
fn rendered(message: &Message) -> Result<Option<Value>, WireError> {
    let input = crate::RenderInput::default();
    let body = render(&input, [message], &Dialect::openai())?.body;
    let mut body: Value =
        serde_json::from_slice(&body).map_err(|error| WireError::not_json(&error))?;
    let first = body.get_mut("messages").and_then(|list| list.get_mut(0));
    Ok(first.map(Value::take))
}
