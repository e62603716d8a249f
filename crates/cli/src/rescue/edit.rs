//! Applies edits of a chat's messages to its units.
//!
//! A message consists of the units at its place in the written chat, so nothing is found by its text.

use std::ops::Range;

use plimsoll::context::{Seq, Transcript};
use plimsoll::foreign::{Body, Slot};
use plimsoll::logs::{Chat, Place, Protocol, Role, Unit};
use plimsoll::policy::{Edit, Plan};
use plimsoll::{Message, Part};
use serde_json::{Value, json};

use crate::chat_file::unread;
use crate::error::CliError;

/// A message of the new chat.
#[derive(Debug)]
pub(super) enum NewMessage {
    /// The message at this index, as it is.
    Kept(usize),
    /// The message at this index, with another content.
    Changed(usize, Message),
    /// A message that was not there.
    Added(Message),
}

/// Returns the messages of a view after a plan. `stripped` are messages without thinking.
pub(super) fn of_plan(
    before: &Transcript,
    after: &Transcript,
    plan: Option<&Plan>,
    stripped: &[usize],
) -> Vec<NewMessage> {
    let edits = plan.map(|plan| plan.edits.as_slice()).unwrap_or_default();
    let new = edits.iter().filter_map(|edit| match edit {
        Edit::Summarize { covers, .. } => covers.first().map(|range| range.first),
        Edit::Drop { first, .. } => Some(*first),
        Edit::Shrink { .. } => None,
    });
    let new: Vec<Seq> = new.collect();
    let items = after.items().iter().map(|item| {
        let message = item.message.as_ref();
        let Some(index) = usize::try_from(item.seq.0)
            .ok()
            .filter(|_| !new.contains(&item.seq))
        else {
            return NewMessage::Added(message.clone());
        };
        let was = before.get(item.seq).map(|was| was.message.as_ref());
        match message {
            Message::Assistant { parts } if stripped.contains(&index) => NewMessage::Changed(
                index,
                Message::Assistant {
                    parts: without_thinking(parts),
                },
            ),
            _ if was == Some(message) => NewMessage::Kept(index),
            _ => NewMessage::Changed(index, message.clone()),
        }
    });
    items.collect()
}

/// Returns the parts that are no thinking.
pub(super) fn without_thinking(parts: &[Part]) -> Vec<Part> {
    let parts = parts
        .iter()
        .filter(|part| !matches!(part, Part::Thinking(_)));
    parts.cloned().collect()
}

/// Returns the indexes of the units of a message. `entries` are the units of the entries of the written chat.
pub(super) fn units_of(
    chat: &Chat<'_>,
    entries: &[Range<usize>],
    body: &Body<'_>,
    message: usize,
) -> Vec<usize> {
    let Some(span) = body.document.spans.get(message) else {
        return Vec::new();
    };
    let entries = entries
        .get(span.entries.clone())
        .unwrap_or_default()
        .iter()
        .cloned()
        .flatten();
    let units = entries.filter(|at| chat.units.get(*at).is_some_and(Unit::is_left));
    units
        .skip(span.blocks.start)
        .take(span.blocks.len())
        .collect()
}

/// Gives a chat these messages. `body` was read from the chat as it was written, with these `entries`.
pub(super) fn apply(
    chat: &mut Chat<'static>,
    entries: &[Range<usize>],
    body: &Body<'_>,
    messages: &[NewMessage],
) -> Result<(), CliError> {
    let count = body.document.spans.len();
    let units: Vec<Vec<usize>> = (0..count)
        .map(|at| units_of(chat, entries, body, at))
        .collect();
    let old = std::mem::take(&mut chat.units);
    let mut old: Vec<Option<Unit<'static>>> = old.into_iter().map(Some).collect();
    let mut new: Vec<Unit<'static>> = Vec::with_capacity(old.len());
    let is_beside = |unit: &Unit<'_>| unit.place == Some(Place::Beside);
    if old
        .first()
        .is_some_and(|first| first.as_ref().is_some_and(is_beside))
    {
        new.extend(old.first_mut().and_then(Option::take));
    }
    for message in messages {
        let (index, slot) = match message {
            NewMessage::Kept(index) => (Some(*index), None),
            NewMessage::Changed(index, message) => {
                (Some(*index), Some(Slot::Edited(*index, message)))
            }
            NewMessage::Added(message) => (None, Some(Slot::New(message))),
        };
        let own = index
            .and_then(|index| units.get(index))
            .map(Vec::as_slice)
            .unwrap_or_default();
        let own = own.iter().filter_map(|at| old.get_mut(*at)?.take());
        let Some(slot) = slot else {
            new.extend(own);
            continue;
        };
        // Instructions beside the list are never changed.
        let own: Vec<Unit<'static>> = own.collect();
        if own.is_empty() && index.is_some() {
            continue;
        }
        let values = values(chat.protocol, body, slot)?;
        let turn = own.first().map(|unit| unit.turn);
        let is_whole = own.len() == values.len();
        let mut own = own.into_iter();
        for (role, value) in values {
            // A message may lose parts, of which the others keep their kinds.
            let kind = |value: &Value| value.get("type").cloned();
            let unit = if is_whole {
                own.next()
            } else {
                own.by_ref().find(|unit| kind(unit.value()) == kind(&value))
            };
            new.push(match unit {
                Some(unit) if *unit.value() == value => unit,
                Some(mut unit) => {
                    *unit.edit() = value;
                    unit
                }
                None => {
                    let beside = new
                        .last()
                        .filter(|last| is_result(last) && is_result_value(&value));
                    let turn = turn.or(beside.map(|last| last.turn));
                    let turn = turn.unwrap_or_else(|| chat.new_turn());
                    Unit::inserted(role, turn, value)
                }
            });
        }
    }
    chat.units = new;
    Ok(())
}

fn is_result(unit: &Unit<'_>) -> bool {
    unit.role == Role::User && is_result_value(unit.value())
}

fn is_result_value(value: &Value) -> bool {
    value.get("type").is_some_and(|kind| kind == "tool_result")
}

/// Returns the units of a message as its protocol writes them.
fn values(
    protocol: Protocol,
    body: &Body<'_>,
    slot: Slot<'_>,
) -> Result<Vec<(Role, Value)>, CliError> {
    let text = body.document.write([slot]).map_err(unread)?;
    let mut written: Value = serde_json::from_str(&text).map_err(CliError::failed)?;
    let Some(Value::Array(entries)) = written.get_mut(protocol.list()).map(Value::take) else {
        return Ok(Vec::new());
    };
    if protocol != Protocol::Messages {
        return Ok(entries
            .into_iter()
            .map(|entry| (Role::Own, entry))
            .collect());
    }
    let mut values = Vec::new();
    for mut entry in entries {
        let role = match entry.get("role").and_then(Value::as_str) {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            _ => Role::User,
        };
        match entry.get_mut("content").map(Value::take) {
            Some(Value::Array(blocks)) => {
                values.extend(blocks.into_iter().map(|block| (role, block)))
            }
            Some(Value::String(text)) => {
                values.push((role, json!({ "type": "text", "text": text })))
            }
            _ => {}
        }
    }
    Ok(values)
}
