//! [`Chat`]: a request body, or the history of a log, as units. It is written back with the bytes of every unit
//! that did not change.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

use plimsoll_wire::__internals::{RawObject, parse, with_list};
use plimsoll_wire::{Document, Protocol, WireError};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::unit::{Change, Place, Role, Unit};

/// A chat as units, in the order in which they are written.
#[derive(Debug, Clone)]
pub struct Chat<'a> {
    /// The protocol in which it is written.
    pub protocol: Protocol,
    /// The units. A system prompt beside the list is the first of them.
    pub units: Vec<Unit<'a>>,
    /// What it was read from.
    pub(crate) source: Source<'a>,
}

/// The input of a chat, besides its units.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source<'a> {
    /// The body.
    text: Option<&'a str>,
    /// The keys of the request. `None` for a bare list.
    keys: Option<RawObject<'a>>,
    /// The new values of keys beside the list, as JSON. `None` for a key that is not written.
    changed_keys: BTreeMap<&'static str, Option<String>>,
    /// The places of the entries of a log. `None` for a body.
    log: Option<Vec<String>>,
    /// The messages of a Messages body, by their entry, which is their turn.
    turns: BTreeMap<usize, Turn<'a>>,
    /// The next turn without units.
    next_turn: usize,
}

/// A message of a Messages body.
#[derive(Debug, Clone, Copy)]
struct Turn<'a> {
    raw: &'a str,
    /// The number of its units.
    count: usize,
}

impl<'a> Chat<'a> {
    /// Reads a request, or a bare list of its messages or items. Entries of any form become units.
    ///
    /// # Errors
    ///
    /// [`WireError::NotJson`] with the place, also for JSON that is nested deeper than 127 levels, or
    /// [`WireError::Expected`] if there is no list.
    pub fn read(text: &'a str, protocol: Protocol) -> Result<Self, WireError> {
        Self::of_value(text, parse(text)?, protocol)
    }

    /// Reads a request from its text and the value that [`parse`] returned for it, from which its protocol was detected.
    ///
    /// # Errors
    ///
    /// [`WireError::Expected`] if there is no list.
    pub fn of_value(
        text: &'a str,
        mut value: Value,
        protocol: Protocol,
    ) -> Result<Self, WireError> {
        let (keys, list) = with_list(text, protocol.list())?;
        let is_text = protocol == Protocol::Responses && keys.is_some();
        let mut take = |key: &str| value.get_mut(key).map(Value::take);
        let beside = protocol.beside().and_then(|key| Some((key, take(key)?)));
        let values = take(protocol.list()).unwrap_or_else(|| value.take());
        let source = Source {
            text: Some(text),
            keys,
            ..Source::default()
        };
        let mut chat = Chat {
            protocol,
            units: Vec::new(),
            source,
        };
        if let Some((key, value)) = beside.filter(|(_, value)| !value.is_null()) {
            let raw = chat.source.keys.as_ref().and_then(|keys| keys.get(key));
            chat.units.push(Unit::beside(raw, value));
        }
        match (list.map(str::trim), values) {
            // It is written as a message of the user if anything changes.
            (Some(_), text @ Value::String(_)) if is_text => {
                chat.source.next_turn = 1;
                chat.own_entry(0, None, json!({"role": "user", "content": text}));
            }
            (Some(raw), Value::Array(values)) => {
                chat.source.next_turn = values.len();
                let raws: Vec<&'a RawValue> = parse(raw)?;
                for (entry, (raw, value)) in raws.into_iter().zip(values).enumerate() {
                    match protocol {
                        Protocol::Messages => chat.message(entry, raw.get(), value)?,
                        Protocol::Chat | Protocol::Responses => {
                            chat.own_entry(entry, Some(raw.get()), value);
                        }
                    }
                }
            }
            _ => return Err(no_list(text, protocol)),
        }
        Ok(chat)
    }

    /// Creates a chat from the units of a log, in their order. Neighbors of one role are one message.
    ///
    /// `places` are those of the entries of the log, such as `line 12`, to which the places of the units refer.
    /// `instructions` is the system prompt beside the list, if the log has it.
    #[must_use]
    pub fn of_log(
        protocol: Protocol,
        places: Vec<String>,
        instructions: Option<Value>,
        mut units: Vec<Unit<'a>>,
    ) -> Self {
        let mut turn = 0;
        let mut last = None;
        for unit in &mut units {
            if last.is_some_and(|last| last != unit.role) {
                turn += 1;
            }
            last = Some(unit.role);
            unit.turn = turn;
        }
        if let (Some(value), Some(_)) = (instructions, protocol.beside()) {
            units.insert(0, Unit::beside(None, value));
        }
        let source = Source {
            keys: Some(RawObject::default()),
            next_turn: turn + 1,
            log: Some(places),
            ..Source::default()
        };
        Self {
            protocol,
            units,
            source,
        }
    }

    /// Returns the raw JSON text of a key beside the list, for example of `max_tokens`.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&str> {
        match self.source.changed_keys.get(name) {
            Some(changed) => changed.as_deref(),
            None => self.source.keys.as_ref()?.get(name),
        }
    }

    /// Returns the value of a key beside the list. `null` if there is none.
    pub(crate) fn key_value(&self, name: &str) -> Value {
        let raw = self.key(name).unwrap_or("null");
        serde_json::from_str(raw).unwrap_or_default()
    }

    /// Sets a key beside the list.
    pub(crate) fn set_key(&mut self, name: &'static str, value: &Value) {
        let changed = &mut self.source.changed_keys;
        changed.insert(name, Some(value.to_string()));
    }

    /// Removes a key beside the list.
    pub fn remove_key(&mut self, name: &'static str) {
        if self.key(name).is_some() {
            self.source.changed_keys.insert(name, None);
        }
    }

    /// Checks whether the chat is a log, which its agent continues with a message of the user.
    pub(crate) fn is_log(&self) -> bool {
        self.source.log.is_some()
    }

    /// Returns the number of a new message, for inserted units.
    pub fn new_turn(&mut self) -> usize {
        self.source.next_turn += 1;
        self.source.next_turn - 1
    }

    /// Inserts units, each before the unit with its index. The indexes ascend.
    pub(crate) fn insert_all(&mut self, added: impl IntoIterator<Item = (usize, Unit<'a>)>) {
        let mut added = added.into_iter().peekable();
        for (at, unit) in mem::take(&mut self.units).into_iter().enumerate() {
            while let Some((_, new)) = added.next_if(|(before, _)| *before <= at) {
                self.units.push(new);
            }
            self.units.push(unit);
        }
        self.units.extend(added.map(|(_, unit)| unit));
    }

    /// Returns the place of a unit as a reader of the input counts it: `messages[3]`, `input[7]`, `system`, or
    /// `line 12` of a log.
    ///
    /// An inserted unit has the place of the next unit that has one.
    #[must_use]
    pub fn place(&self, unit: usize) -> String {
        let rest = self.units.get(unit..).unwrap_or_default();
        if rest.first().is_some_and(Unit::is_beside) {
            return self.protocol.beside().unwrap_or("system").to_owned();
        }
        let place = rest.iter().find_map(|unit| unit.place);
        match (place, &self.source.log) {
            (None, _) => "the end".to_owned(),
            (Some(Place { entry, .. }), None) => format!("{}[{entry}]", self.protocol.list()),
            (Some(place), Some(places)) => places.get(place.entry).cloned().unwrap_or_default(),
        }
    }

    /// Checks whether every unit is as it was in the input.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        let places = self.units.iter().map(|unit| unit.place);
        self.units
            .iter()
            .all(|unit| unit.change() == Change::Unchanged)
            && places.is_sorted()
            && self.source.changed_keys.is_empty()
    }

    /// Writes the chat as JSON. If nothing has changed, it is the input byte for byte. Otherwise unchanged units,
    /// messages and other keys keep their bytes.
    #[must_use]
    pub fn write(&self) -> Cow<'a, str> {
        if let Some(input) = self.source.text
            && self.is_unchanged()
        {
            return Cow::Borrowed(input);
        }
        let mut list = "[".to_owned();
        for at in self.entries() {
            if list.len() > 1 {
                list.push(',');
            }
            list.push_str(&self.entry(&at));
        }
        list.push(']');
        Cow::Owned(match &self.source.keys {
            None => list,
            Some(keys) => {
                let mut changes = vec![(self.protocol.list(), Some(list))];
                let beside = self.beside().map(Cow::into_owned);
                if let Some(key) = self.protocol.beside()
                    && (beside.is_some() || keys.get(key).is_some_and(|raw| raw != "null"))
                {
                    changes.push((key, beside));
                }
                let changed = self.source.changed_keys.iter();
                changes.extend(changed.map(|(key, raw)| (*key, raw.clone())));
                keys.with(&changes)
            }
        })
    }

    /// Reads the messages and the tools. Returns them with the units of each entry of the list.
    ///
    /// # Errors
    ///
    /// [`WireError::Expected`] with the place of the first value of a wrong kind.
    pub(crate) fn document(&self) -> Result<(Document, Vec<Range<usize>>), WireError> {
        let entries = self.entries();
        let mut texts = entries.iter().map(|at| self.entry(at));
        let (keys, format) = (self.source.keys.as_ref(), self.protocol.format());
        let beside = self.beside();
        let document = Document::of_entries(keys, beside.as_deref(), &mut texts, format)?;
        Ok((document, entries))
    }

    /// Returns the JSON text of the system prompt beside the list.
    fn beside(&self) -> Option<Cow<'_, str>> {
        let first = self.units.first();
        let beside = first.filter(|unit| unit.is_beside() && unit.is_left());
        beside.map(Unit::json)
    }

    /// Returns the units of each entry of the list. Removed units between others belong to their entry.
    fn entries(&self) -> Vec<Range<usize>> {
        let mut entries: Vec<Range<usize>> = Vec::new();
        let mut open = None;
        for (at, unit) in self.units.iter().enumerate() {
            if !unit.is_left() || unit.is_beside() {
                continue;
            }
            let joins = self.protocol == Protocol::Messages && unit.role != Role::Own;
            let message = joins.then_some((unit.turn, unit.role));
            match entries.last_mut() {
                Some(last) if message.is_some() && message == open => last.end = at + 1,
                _ => entries.push(at..at + 1),
            }
            open = message;
        }
        entries
    }

    fn entry(&self, at: &Range<usize>) -> Cow<'_, str> {
        let units = self.units.get(at.clone()).unwrap_or_default();
        let units: Vec<&Unit<'a>> = units.iter().filter(|unit| unit.is_left()).collect();
        let Some(first) = units.first() else {
            return Cow::Borrowed("null");
        };
        if self.protocol != Protocol::Messages || first.role == Role::Own {
            return first.json();
        }
        let turn = self.source.turns.get(&first.turn);
        let is_whole = |turn: &&Turn<'_>| {
            let entry = first.turn;
            let places = (0..turn.count).map(|block| Some(Place { entry, block }));
            units.iter().map(|unit| unit.place).eq(places)
                && units.iter().all(|unit| unit.change() == Change::Unchanged)
        };
        if let Some(turn) = turn.filter(is_whole) {
            return Cow::Borrowed(turn.raw);
        }
        let content: Vec<Cow<'_, str>> = units.iter().map(|unit| unit.json()).collect();
        let role = first.role.name();
        let keys: Option<RawObject<'_>> = turn.and_then(|turn| parse(turn.raw).ok());
        Cow::Owned(keys.unwrap_or_default().with(&[
            ("role", Some(format!("\"{role}\""))),
            ("content", Some(format!("[{}]", content.join(",")))),
        ]))
    }

    /// Adds an entry that is one unit.
    fn own_entry(&mut self, entry: usize, raw: Option<&'a str>, value: Value) {
        let place = Place { entry, block: 0 };
        self.units.push(Unit::of_body(place, Role::Own, raw, value));
    }

    /// Adds the blocks of a message of Messages.
    fn message(&mut self, entry: usize, raw: &'a str, mut value: Value) -> Result<(), WireError> {
        let role = value.get("role").and_then(Value::as_str);
        let role = role.and_then(Role::named);
        let content = value.get_mut("content");
        let content = content.filter(|content| match content {
            Value::Array(blocks) => !blocks.is_empty(),
            content => content.is_string(),
        });
        let (Some(role), Some(content)) = (role, content) else {
            self.own_entry(entry, Some(raw), value);
            return Ok(());
        };
        let blocks: Vec<(Option<&'a str>, Value)> = match content.take() {
            Value::Array(blocks) => {
                let keys: RawObject<'a> = parse(raw)?;
                let raws: Vec<&'a RawValue> = parse(keys.get("content").unwrap_or("[]"))?;
                let raws = raws.into_iter().map(|raw| Some(raw.get()));
                raws.zip(blocks).collect()
            }
            text => vec![(None, json!({"type": "text", "text": text}))],
        };
        let count = blocks.len();
        self.source.turns.insert(entry, Turn { raw, count });
        for (block, (raw, value)) in blocks.into_iter().enumerate() {
            let place = Place { entry, block };
            self.units.push(Unit::of_body(place, role, raw, value));
        }
        Ok(())
    }
}

/// Returns the error for a text without a list of messages, as `wire` words it.
fn no_list(text: &str, protocol: Protocol) -> WireError {
    let error = Document::read(text, protocol.format()).err();
    error.unwrap_or_else(|| WireError::expected(protocol.list(), "an array", None))
}

#[cfg(test)]
mod tests;
