//! The messages that a plan leaves as changes of units. Only the units of changed messages are written anew, by `wire`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_context::{Gap, Item, Message, Transcript};
use plimsoll_wire::__internals::parse;
use plimsoll_wire::{Protocol, WireError};
use serde_json::{Map, Value, json};

use super::{Body, outputs};
use crate::chat::Chat;
use crate::repair;
use crate::unit::{Role, Unit};

/// The roles and the contents of the units of an entry.
type Entry = Vec<(Role, Value)>;

impl<'a> Body<'a> {
    /// Returns the chat with the messages of `after`, to which a plan changed those of `before`.
    pub(super) fn changed(
        &self,
        before: &Transcript,
        after: &Transcript,
    ) -> Result<Chat<'a>, WireError> {
        let is_same = |item: &Item| {
            let was = before.get(item.seq);
            was.is_some_and(|was| Arc::ptr_eq(&was.message, &item.message))
        };
        // A marker or a summary has the number of the first message that it replaces.
        let origin = |item: &Item| {
            let is_new = Gap::of(&item.message).is_some()
                || matches!(*item.message, Message::Summary { .. });
            let index = usize::try_from(item.seq.0).ok();
            index.filter(|_| is_same(item) || !is_new)
        };
        let kept: BTreeSet<usize> = after.items().iter().filter_map(origin).collect();
        let messages = (0..self.messages.len()).filter(|message| !kept.contains(message));
        let gone: BTreeSet<usize> = messages.flat_map(|one| self.units_of(one)).collect();
        // The place of a removed unit stays in the list.
        let copied = |at: Range<usize>| {
            let units = self.chat.units.get(at.clone()).unwrap_or_default();
            at.zip(units).map(|(at, unit)| match gone.contains(&at) {
                true => unit.without_content(),
                false => unit.clone(),
            })
        };
        let mut chat = Chat {
            protocol: self.chat.protocol,
            units: Vec::with_capacity(self.chat.units.len()),
            source: self.chat.source.clone(),
        };
        let mut end = 0;
        for item in after.items() {
            let Some(index) = origin(item) else {
                for entry in self.values(&item.message)? {
                    let turn = chat.new_turn();
                    chat.units.extend(inserted(entry, turn));
                }
                continue;
            };
            let own: Vec<usize> = self.units_of(index).collect();
            let first = own.first().copied().unwrap_or(end);
            chat.units.extend(copied(end..first));
            end = own.last().map_or(end, |last| last + 1);
            let begin = chat.units.len();
            chat.units.extend(copied(first..end));
            if !is_same(item) {
                let units = chat.units.get_mut(begin..).unwrap_or_default();
                let new = self.edit(units, index, &item.message)?;
                chat.units.extend(new);
            }
        }
        chat.units.extend(copied(end..self.chat.units.len()));
        Ok(chat)
    }

    /// Gives the units of a message another content, and returns those to be added behind them.
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
        Ok(inserted(new, turn).collect())
    }

    /// Returns the entries of a message, each as the roles and the contents of its units.
    fn values(&self, message: &Message) -> Result<Vec<Entry>, WireError> {
        let written = (self.chat.protocol.format().write)(&[message])?;
        let entries = written.iter().flatten().map(|entry| {
            let entry: Value = parse(entry)?;
            Ok(match self.chat.protocol {
                Protocol::Messages => {
                    let (role, blocks) = repair::blocks(entry);
                    blocks.into_iter().map(|block| (role, block)).collect()
                }
                Protocol::Chat | Protocol::Responses => vec![(Role::Own, entry)],
            })
        });
        entries.collect()
    }
}

fn inserted<'a>(entry: Entry, turn: usize) -> impl Iterator<Item = Unit<'a>> {
    let units = entry.into_iter();
    units.map(move |(role, value)| Unit::inserted(role, turn, value))
}

/// Replaces the keys of a unit that differ between two contents. Its other keys stay.
fn change(value: &mut Value, old: &Value, new: &Value) {
    let (Value::Object(value), Value::Object(old), Value::Object(new)) = (value, old, new) else {
        return;
    };
    value.retain(|key, _| new.contains_key(key) || !old.contains_key(key));
    for (key, new) in new.iter().filter(|(key, new)| old.get(*key) != Some(*new)) {
        let list = value.get_mut(key).and_then(Value::as_array_mut);
        // `wire` writes a content of one text without a list around it.
        match list.filter(|_| new.is_string()).map(Vec::as_mut_slice) {
            Some([Value::Object(part)]) if part.contains_key("text") => set_text(part, new),
            _ if key == "text" => set_text(value, new),
            _ => drop(value.insert(key.clone(), new.clone())),
        }
    }
}

/// Replaces the text of a part, and removes what belongs to the old one.
fn set_text(part: &mut Map<String, Value>, text: &Value) {
    part.shift_remove("citations");
    part.shift_remove("logprobs");
    if let Some(annotations) = part.get_mut("annotations") {
        *annotations = json!([]);
    }
    part.insert("text".to_owned(), text.clone());
}
