//! Writing a chat back: messages that nobody touched as the very bytes that were read, edited
//! ones with only what was edited replaced. Not rendering; `render.rs` writes new requests.

use plimsoll_context::{Message, Part};
use serde_json::Value;

use super::dialect::Dialect;
use super::parts::CUSTOM;
use super::read::{Chat, Legacy, message};
use super::render::render;
use crate::aligned::is_thinking;
use crate::error::WireError;
use crate::frames;
use crate::raw::{RawObject, parse};

/// One message of a chat that is written back.
#[derive(Debug, Clone, Copy)]
pub enum Slot<'m> {
    /// The original message at this index, byte for byte.
    Original(usize),
    /// The original message at this index with what this one says in its place.
    Edited(usize, &'m Message),
    /// A message that the chat did not have.
    New(&'m Message),
}

impl Chat<'_> {
    /// Writes the chat with other messages, in the shape in which it was read, all other keys
    /// kept as they were. A slot whose index is beyond the chat is left out.
    ///
    /// # Errors
    ///
    /// Those of [`patch_content`].
    pub fn write<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
    ) -> Result<String, WireError> {
        let mut list = String::from("[");
        for slot in slots {
            let text = match slot {
                Slot::Original(index) => self.original(index).map(str::to_owned),
                Slot::Edited(index, edited) => match self.original(index) {
                    Some(original) => Some(patch_content(original, edited)?),
                    None => None,
                },
                Slot::New(message) => rendered(message)?.map(|value| value.to_string()),
            };
            if let Some(text) = text {
                if list.len() > 1 {
                    list.push(',');
                }
                list.push_str(&text);
            }
        }
        list.push(']');
        Ok(match &self.object {
            None => list,
            Some(object) => object.with(&[("messages", Some(list))]),
        })
    }
}

/// The original JSON text of a message with what `edited` says in its place: `content`, the
/// arguments of tool calls, and reasoning if `edited` has none. All other keys keep their bytes
/// and their order. An edit that changes nothing gives back the original.
///
/// # Errors
///
/// [`WireError::NotJson`] or [`WireError::Expected`] if the original is not a message.
pub fn patch_content(original: &str, edited: &Message) -> Result<String, WireError> {
    let object: RawObject<'_> = parse(original)?;
    let value: Value = parse(original)?;
    let before = message(value.clone(), "message", 0, &mut Legacy::default())?;
    let mut changes = Vec::new();
    if said(&before) != said(edited) {
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

/// The original's tool calls with the edited arguments; `None` if none was edited.
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
        let key = match call.get(CUSTOM).is_some_and(Value::is_object) {
            true => CUSTOM,
            false => "function",
        };
        let taken = if key == CUSTOM { "input" } else { "arguments" };
        let function = call.get_mut(key).and_then(Value::as_object_mut);
        if let (Some(edited), Some(function)) = (edited, function) {
            function.insert(taken.into(), edited.arguments.as_str().into());
        }
    }
    Some(list)
}

/// What stands in `content`.
fn said(message: &Message) -> Vec<Part> {
    let mut parts = frames::spoken(message).into_owned();
    parts.retain(|part| !matches!(part, Part::Thinking(_) | Part::ToolCall(_)));
    parts
}

fn thinking(message: &Message) -> bool {
    message.parts().iter().any(is_thinking)
}

/// The message as the widest dialect writes it; `None` for one that says nothing.
fn rendered(message: &Message) -> Result<Option<Value>, WireError> {
    let input = crate::RenderInput::default();
    let body = render(&input, [message], &Dialect::openai())?.body;
    let mut body: Value =
        serde_json::from_slice(&body).map_err(|error| WireError::not_json(&error))?;
    let first = body.get_mut("messages").and_then(|list| list.get_mut(0));
    Ok(first.map(Value::take))
}
