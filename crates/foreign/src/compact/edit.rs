//! The messages of a plan as changes of units. Only the units of changed messages are written anew, by `wire`.

use std::collections::BTreeSet;

use plimsoll_context::Message;
use plimsoll_wire::__internals::parse;
use plimsoll_wire::WireError;
use serde_json::{Value, json};

use super::{Body, outputs};
use crate::chat::Chat;
use crate::protocol::Protocol;
use crate::unit::{Role, Unit};

/// One message of a chat that is written.
pub(super) enum Slot<'m> {
    /// The original message at this index, byte for byte.
    Original(usize),
    /// The original message at this index with the content of this one.
    Edited(usize, &'m Message),
    /// A new message.
    New(&'m Message),
}

impl Slot<'_> {
    /// Returns the index of the original message, unless it is new.
    pub(super) fn index(&self) -> Option<usize> {
        match self {
            Self::Original(index) | Self::Edited(index, _) => Some(*index),
            Self::New(_) => None,
        }
    }
}

/// The roles and the contents of the units of an entry.
type Entry = Vec<(Role, Value)>;

impl<'a> Body<'a> {
    /// Returns the chat with these messages, whose indexes ascend. Messages without a slot are removed.
    pub(super) fn with(&self, slots: &[Slot<'_>]) -> Result<Chat<'a>, WireError> {
        let kept: BTreeSet<usize> = slots.iter().filter_map(Slot::index).collect();
        let messages = (0..self.messages.len()).filter(|message| !kept.contains(message));
        let gone: BTreeSet<usize> = messages.flat_map(|one| self.units_of(one)).collect();
        let units = self.chat.units.iter().enumerate();
        let units = units.map(|(at, unit)| match gone.contains(&at) {
            // The place of a removed unit stays in the list.
            true => unit.without_content(),
            false => unit.clone(),
        });
        let mut chat = Chat {
            protocol: self.chat.protocol,
            units: units.collect(),
            source: self.chat.source.clone(),
        };
        let mut added: Vec<(usize, Unit<'a>)> = Vec::new();
        let mut end = 0;
        for slot in slots {
            let own: Vec<usize> = slot
                .index()
                .map_or(Vec::new(), |one| self.units_of(one).collect());
            end = own.last().map_or(end, |last| last + 1);
            let new = match slot {
                Slot::Original(_) => Vec::new(),
                Slot::Edited(index, message) => {
                    let first = own.first().copied().unwrap_or(end);
                    let units = chat.units.get_mut(first..end).unwrap_or_default();
                    self.edit(units, *index, message)?
                }
                Slot::New(message) => {
                    let mut new = Vec::new();
                    for entry in self.values(message)? {
                        let turn = chat.new_turn();
                        let entry = entry.into_iter();
                        new.extend(entry.map(|(role, value)| Unit::inserted(role, turn, value)));
                    }
                    new
                }
            };
            added.extend(new.into_iter().map(|unit| (end, unit)));
        }
        chat.insert_all(added);
        Ok(chat)
    }

    /// Gives the units of a message another content, and returns those to be added behind them. The changes between the
    /// two messages, as `wire` writes them, are made in the units, so that everything else in them stays.
    fn edit(
        &self,
        units: &mut [Unit<'a>],
        index: usize,
        message: &Message,
    ) -> Result<Vec<Unit<'a>>, WireError> {
        let turn = units.first().map_or(0, |unit| unit.turn);
        let left = units.iter_mut().filter(|unit| unit.is_left());
        if self.outputs.contains_key(&index) {
            left.for_each(|unit| outputs::shorten(unit.edit()));
            return Ok(Vec::new());
        }
        let old = self.messages.get(index).map(|old| self.values(old));
        let old = old.transpose()?.unwrap_or_default().concat();
        let new = self.values(message)?.concat();
        let left: Vec<&mut Unit<'a>> = left.collect();
        if left.len() == old.len() && left.len() == new.len() {
            for (unit, ((_, old), (_, new))) in left.into_iter().zip(old.iter().zip(&new)) {
                if old != new {
                    change(unit.edit(), old, new);
                }
            }
            return Ok(Vec::new());
        }
        left.into_iter().for_each(Unit::remove);
        let new = new.into_iter();
        Ok(new
            .map(|(role, value)| Unit::inserted(role, turn, value))
            .collect())
    }

    /// Returns the entries of a message, each as the roles and the contents of its units.
    fn values(&self, message: &Message) -> Result<Vec<Entry>, WireError> {
        let written = (self.chat.protocol.format().write)(&[message])?;
        let entries = written.iter().flatten().map(|entry| {
            let entry: Value = parse(entry)?;
            Ok(match self.chat.protocol {
                Protocol::Messages => blocks(entry),
                Protocol::Chat | Protocol::Responses => vec![(Role::Own, entry)],
            })
        });
        entries.collect()
    }
}

/// Returns the blocks of a message of Messages.
fn blocks(mut message: Value) -> Entry {
    let role = message.get("role").and_then(Value::as_str);
    let role = role.and_then(Role::named).unwrap_or(Role::User);
    let blocks = match message.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    blocks.into_iter().map(|block| (role, block)).collect()
}

/// Makes the changes between two values in a third one, and keeps everything else in it.
fn change(value: &mut Value, old: &Value, new: &Value) {
    match (value, old, new) {
        (Value::Object(value), Value::Object(old), Value::Object(new)) => {
            if old.get("text") != new.get("text") {
                // They belong to the old text.
                value.shift_remove("citations");
                value.shift_remove("logprobs");
                if let Some(annotations) = value.get_mut("annotations") {
                    *annotations = json!([]);
                }
            }
            value.retain(|key, _| new.contains_key(key) || !old.contains_key(key));
            for (key, new) in new.iter().filter(|(key, new)| old.get(*key) != Some(*new)) {
                match (value.get_mut(key), old.get(key)) {
                    // Arguments are as the new message has them.
                    (Some(value), Some(old)) if key != "input" => change(value, old, new),
                    _ => {
                        value.insert(key.clone(), new.clone());
                    }
                }
            }
        }
        (Value::Array(value), Value::Array(old), Value::Array(new))
            if value.len() == old.len() && old.len() == new.len() =>
        {
            for (value, (old, new)) in value.iter_mut().zip(old.iter().zip(new)) {
                if old != new {
                    change(value, old, new);
                }
            }
        }
        // A content of one text that `wire` writes without a list around it.
        (Value::Array(value), Value::String(_), Value::String(new))
            if value.len() == 1 && value.iter().all(|part| part.get("text").is_some()) =>
        {
            for part in value {
                let [old, new] = [json!({}), json!({"text": new})];
                change(part, &old, &new);
            }
        }
        (value, ..) => *value = new.clone(),
    }
}
