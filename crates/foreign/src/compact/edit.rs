//! [`Body::write`]: gives a chat other messages. Only the units of changed messages are written anew, by `wire`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_context::{Message, Part};
use plimsoll_wire::__internals::parse;
use plimsoll_wire::WireError;
use serde_json::{Value, json};

use super::{Body, outputs};
use crate::chat::Chat;
use crate::protocol::Protocol;
use crate::repair::{Reasoning, Repair, repair, thinking};
use crate::unit::{Role, Unit};

/// One message of a chat that is written.
#[derive(Debug, Clone, Copy)]
pub enum Slot<'m> {
    /// The original message at this index, byte for byte.
    Original(usize),
    /// The original message at this index with the content of this one. Instructions beside the list keep
    /// theirs.
    Edited(usize, &'m Message),
    /// A new message.
    New(&'m Message),
}

/// A body that was written.
#[derive(Debug, Clone)]
pub struct WrittenBody<'a> {
    /// The chat.
    pub chat: Chat<'a>,
    /// The request.
    pub text: String,
    /// Messages that lost their thinking, because it is bound to messages that have changed (AM10).
    /// This affects all thinking in each tool loop behind the first change.
    pub unthinking: Vec<usize>,
    /// The further repairs that were necessary, usually none.
    pub repairs: Vec<Repair>,
}

impl<'a> Body<'a> {
    /// Writes the chat with other messages.
    ///
    /// Unedited messages and all other keys keep their bytes. A new message is written in the form of
    /// the protocol; a summary is framed and sent in the user's role. A system prompt beside the list
    /// is removed if it has no slot. A slot is ignored if its index is beyond the messages, or was written
    /// before.
    ///
    /// If a change leaves messages that the API would refuse, they are repaired and reported. The caller
    /// should keep whole exchanges. A call without its result is closed, and a result without its call
    /// is dropped.
    ///
    /// # Errors
    ///
    /// None in practice. It could only fail on a message that `wire` cannot write.
    pub fn write<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
    ) -> Result<WrittenBody<'a>, WireError> {
        self.write_without(slots, &BTreeSet::new())
    }

    /// Like [`Body::write`], but the messages in `unthinking` lose their thinking as well.
    pub(super) fn write_without<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
        unthinking: &BTreeSet<usize>,
    ) -> Result<WrittenBody<'a>, WireError> {
        let mut kept = BTreeSet::new();
        let mut slots: Vec<Slot<'m>> = slots.into_iter().collect();
        slots.retain(|slot| {
            let index = slot.index();
            index.is_none_or(|index| index < self.messages.len() && kept.insert(index))
        });
        let first = self.first_change(&slots);
        let bound = first.map_or_else(Vec::new, |first| self.bound_to(first));
        let mut unthinking: BTreeSet<usize> = unthinking.iter().copied().chain(bound).collect();
        unthinking.retain(|index| kept.contains(index));
        let mut chat = self.with(&slots, &unthinking)?;
        let repairs = repair(&mut chat, &self.target, Reasoning::Keep);
        Ok(WrittenBody {
            text: chat.write().text.into_owned(),
            chat,
            unthinking: unthinking.into_iter().collect(),
            repairs,
        })
    }

    /// Returns the index of the first message that changes, if one does.
    fn first_change(&self, slots: &[Slot<'_>]) -> Option<usize> {
        let same =
            |(at, slot): &(usize, &Slot<'_>)| matches!(slot, Slot::Original(index) if index == at);
        let same = slots.iter().enumerate().take_while(same).count();
        (same < self.messages.len().max(slots.len())).then_some(same)
    }

    /// Returns the chat with these messages. Those in `unthinking` lose their thinking.
    fn with(
        &self,
        slots: &[Slot<'_>],
        unthinking: &BTreeSet<usize>,
    ) -> Result<Chat<'a>, WireError> {
        let mut new = self
            .values(slots.iter().filter_map(Slot::new_message))?
            .into_iter();
        let mut units = self.remaining(slots, unthinking);
        let mut chat = self.chat.with_units(Vec::new());
        let mut written: Vec<Unit<'a>> = Vec::new();
        let mut done = 0;
        for slot in slots {
            let Some(index) = slot.index() else {
                for entry in new.next().into_iter().flatten() {
                    let turn = chat.new_turn();
                    let entry = entry.into_iter();
                    written.extend(entry.map(|(role, value)| Unit::inserted(role, turn, value)));
                }
                continue;
            };
            let own: Vec<usize> = self.units_of(index).collect();
            let (Some(first), Some(end)) = (own.first(), own.last().map(|last| last + 1)) else {
                continue;
            };
            let mut take = |range: Range<usize>| {
                let units = units.get_mut(range).unwrap_or_default();
                let taken = units.iter_mut().filter_map(Option::take);
                taken.collect::<Vec<Unit<'a>>>()
            };
            // Units before the message that are not kept: they stay in the list as removed ones.
            written.extend(take(done..(*first).max(done)));
            let own = take(*first..end);
            done = done.max(end);
            match slot.edited() {
                Some(message) => written.extend(self.edited(own, index, message)?),
                None => written.extend(own),
            }
        }
        written.extend(units.into_iter().flatten());
        chat.units = written;
        Ok(chat)
    }

    /// Returns the units. Those of messages that have no slot, and lost thinking, are removed.
    fn remaining(&self, slots: &[Slot<'_>], unthinking: &BTreeSet<usize>) -> Vec<Option<Unit<'a>>> {
        let mut gone = BTreeSet::new();
        let kept: BTreeSet<usize> = slots.iter().filter_map(Slot::index).collect();
        for message in 0..self.messages.len() {
            if !kept.contains(&message) {
                gone.extend(self.units_of(message));
            }
        }
        let is_thinking = |at: &usize| self.chat.units.get(*at).is_some_and(thinking::is_thinking);
        for message in unthinking {
            gone.extend(self.units_of(*message).filter(is_thinking));
        }
        let units = self.chat.units.iter().enumerate();
        let units = units.map(|(at, unit)| match gone.contains(&at) {
            true => unit.without_content(),
            false => unit.clone(),
        });
        units.map(Some).collect()
    }

    /// Returns the units of a message with another content. The changes between the two messages, as `wire` writes
    /// them, are made in the units, so that everything else in them stays.
    fn edited(
        &self,
        mut units: Vec<Unit<'a>>,
        index: usize,
        message: &Message,
    ) -> Result<Vec<Unit<'a>>, WireError> {
        if self.outputs.contains_key(&index) {
            for unit in &mut units {
                let mut value = unit.value().clone();
                outputs::shorten(&mut value);
                if value != *unit.value() {
                    *unit.edit() = value;
                }
            }
            return Ok(units);
        }
        let old = match self.messages.get(index).map(Arc::as_ref) {
            None | Some(Message::System { .. }) => return Ok(units),
            Some(Message::Assistant { parts }) if !message.parts().iter().any(is_thought) => {
                let thoughts = units.iter_mut().filter(|unit| thinking::is_reasoning(unit));
                thoughts.for_each(Unit::remove);
                let parts = parts.iter().filter(|part| !is_thought(part));
                let parts = parts.cloned().collect();
                Message::Assistant { parts }
            }
            Some(old) => old.clone(),
        };
        let flat = |written: Vec<Vec<Entry>>| written.into_iter().flatten().flatten().collect();
        let (old, new): (Entry, Entry) =
            (flat(self.values([&old])?), flat(self.values([message])?));
        let left = units.iter().filter(|unit| unit.is_left()).count();
        if old.len() != left || new.len() != left {
            return Ok(anew(units, new));
        }
        let left = units.iter_mut().filter(|unit| unit.is_left());
        for (unit, ((_, old), (_, new))) in left.zip(old.iter().zip(&new)) {
            if old != new {
                change(unit.edit(), old, new);
            }
        }
        Ok(units)
    }

    /// Returns the entries of each message, each as the roles and the contents of its units.
    fn values<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m Message>,
    ) -> Result<Vec<Vec<Entry>>, WireError> {
        let messages: Vec<&Message> = messages.into_iter().collect();
        let written = (self.chat.protocol.format().write)(&messages)?.into_iter();
        let parsed = written.map(|entries| {
            let entries = entries.iter().map(|entry| {
                let entry: Value = parse(entry)?;
                Ok(match self.chat.protocol {
                    Protocol::Messages => blocks(entry),
                    Protocol::Chat | Protocol::Responses => vec![(Role::Own, entry)],
                })
            });
            entries.collect()
        });
        parsed.collect()
    }
}

fn is_thought(part: &Part) -> bool {
    matches!(part, Part::Thinking(_))
}

/// The roles and the contents of the units of an entry.
type Entry = Vec<(Role, Value)>;

/// Returns the blocks of a message of Messages.
fn blocks(mut message: Value) -> Entry {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => Role::User,
    };
    let blocks = match message.get_mut("content").map(Value::take) {
        Some(Value::Array(blocks)) => blocks,
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    blocks.into_iter().map(|block| (role, block)).collect()
}

/// Returns the units of a message with another number of contents. Each takes the next unit of its kind.
fn anew<'a>(units: Vec<Unit<'a>>, contents: Entry) -> Vec<Unit<'a>> {
    let turn = units.first().map_or(0, |unit| unit.turn);
    let kind = |value: &Value| value.get("type").cloned();
    let mut old = units.into_iter();
    let mut new = Vec::new();
    for (role, value) in contents {
        let mut same = None;
        for mut unit in old.by_ref() {
            if unit.is_left() && kind(unit.value()) == kind(&value) {
                same = Some(unit);
                break;
            }
            unit.remove();
            new.push(unit);
        }
        new.push(match same {
            Some(unit) if *unit.value() == value => unit,
            Some(mut unit) => {
                *unit.edit() = value;
                unit
            }
            None => Unit::inserted(role, turn, value),
        });
    }
    old.for_each(|mut unit| {
        unit.remove();
        new.push(unit);
    });
    new
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
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                value.shift_remove(key);
            }
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
        // A content that is a text stays one.
        (Value::String(value), Value::Array(_), Value::Array(new))
            if let [part] = new.as_slice()
                && let Some(text) = part.get("text").and_then(Value::as_str) =>
        {
            text.clone_into(value);
        }
        (value, ..) => *value = new.clone(),
    }
}

impl<'m> Slot<'m> {
    /// Returns the index of the original message, unless it is new.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Original(index) | Self::Edited(index, _) => Some(*index),
            Self::New(_) => None,
        }
    }

    fn edited(&self) -> Option<&'m Message> {
        match self {
            Self::Edited(_, message) => Some(message),
            Self::Original(_) | Self::New(_) => None,
        }
    }

    fn new_message(&self) -> Option<&'m Message> {
        match self {
            Self::New(message) => Some(message),
            Self::Original(_) | Self::Edited(..) => None,
        }
    }
}
