//! [`ParsedRequest`]: a request as it was received. Messages that cannot be read are set aside with the
//! reason.

use std::collections::BTreeSet;

use plimsoll_context::Message;
use plimsoll_wire::__internals::{CHAT, parse, with_list};
use plimsoll_wire::{Document, MessageSpan, WireError};
use serde_json::Value;

use super::lenient::LenientParse;
use super::repair::Repair;
use super::{Form, Target};
use super::verdict::RequestVerdict;

/// A request that was read.
#[derive(Debug)]
pub(super) struct ParsedRequest<'a> {
    pub(super) document: Document<'a>,
    /// The index of the unit of each message. `None` for a system prompt beside the list.
    unit_of: Vec<Option<usize>>,
    /// The units that the list consists of.
    pub(super) units: Vec<Unit<'a>>,
    /// The repairs that were necessary to read it: messages that were left out, and converted values.
    pub(super) unreadable: Vec<Repair>,
    /// Whether messages were left out.
    pub(super) is_lacking: bool,
    /// The first message with a converted value.
    pub(super) changed: Option<usize>,
    /// The target for this request or history.
    pub(super) target: Target,
    /// Whether the validator of the target accepts its text.
    is_accepted: bool,
}

/// The entries of the list that are kept or written together.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    /// The place of the first entry in the request.
    pub(super) place: String,
    /// The texts of the entries.
    pub(super) raws: Vec<&'a str>,
    /// The messages that were read from them.
    pub(super) messages: Vec<usize>,
    /// Whether it is in a form without ids, which is only valid if all messages are.
    pub(super) legacy: bool,
}

impl<'a> ParsedRequest<'a> {
    /// Reads a bare list or a request.
    pub(super) fn read(lenient: &'a LenientParse<'a>, target: &Target) -> Result<Self, WireError> {
        let text = lenient.text.trim();
        let mut json: Value = parse(text)?;
        let form = target.form();
        let key = target.list();
        let (object, list) = with_list(text, key)?;
        let list = list.ok_or_else(|| WireError::expected(key, CHAT, None))?;
        let judged = RequestVerdict::new(&mut json, target);
        let is_text = list.starts_with('"') && object.is_some() && key == "input";
        if !list.starts_with('[') && !is_text {
            let value: Value = parse(list)?;
            let expected = "an array of messages";
            return Err(WireError::expected(key, expected, Some(&value)));
        }
        let mut parsed = Self {
            document: Document::new(object, list, form.facts().document)?,
            unit_of: Vec::new(),
            units: Vec::new(),
            unreadable: lenient.repairs.clone(),
            is_lacking: false,
            changed: None,
            target: judged.target.clone(),
            is_accepted: judged.is_accepted,
        };
        if is_text {
            let message = Message::user(parse::<String>(list)?);
            parsed.document.push(message, MessageSpan::BESIDE);
        } else {
            if form.facts().system_key.is_some() {
                parsed.document.read_system()?;
            }
            parsed.read_entries(judged.list(json), target)?;
        }
        let is_changed = |unit: &Unit<'_>| lenient.places.contains(&unit.place);
        let changed = parsed.units.iter().find(|unit| is_changed(unit));
        parsed.changed = changed.and_then(|unit| unit.messages.first().copied());
        Ok(parsed)
    }

    /// Returns the index of the unit that a message was read from.
    pub(super) fn unit_of(&self, message: usize) -> Option<usize> {
        self.unit_of.get(message).copied().flatten()
    }

    /// Returns the place of a message.
    pub(super) fn place(&self, message: usize) -> String {
        let unit = self.unit_of(message);
        let unit = unit.and_then(|unit| self.units.get(unit));
        unit.map_or_else(|| "system".to_owned(), |unit| unit.place.clone())
    }

    /// Returns `true` if the whole request could be read and the target's validator accepts it.
    pub(super) fn is_accepted(&self) -> bool {
        self.unreadable.is_empty() && self.is_accepted
    }

    /// Returns `true` if a server of Responses stores the request.
    pub(super) fn is_stored(&self) -> bool {
        self.document.is_object() && self.key("store") != Some("false")
    }

    pub(super) fn key(&self, name: &str) -> Option<&'a str> {
        self.document.key(name)
    }

    /// Reads the messages, which may have been parsed already. Those that cannot be read are left out.
    fn read_entries(
        &mut self,
        values: Option<Vec<Value>>,
        target: &Target,
    ) -> Result<(), WireError> {
        let key = target.list();
        let place = |index: usize| format!("{key}[{index}]");
        let values_of_entries = values.iter().flatten().enumerate();
        let legacy = values_of_entries.filter(|(_, message)| target.form().is_legacy(message));
        let legacy: BTreeSet<usize> = legacy.map(|(index, _)| index).collect();
        let mut unread: BTreeSet<usize> = BTreeSet::new();
        if self.document.read_entries(values, &place).is_err() {
            for (index, error) in self.document.leave_out_unreadable(&place) {
                let done = format!("it is no message ({error}); left it out");
                self.unreadable.push(Repair::new(place(index), done));
                unread.insert(index);
            }
            self.is_lacking = !unread.is_empty();
            self.document.read_entries(None, &place)?;
        }
        // The indices that the remaining entries had in the request.
        let mut numbers = (0..).filter(|index| !unread.contains(index));
        let mut before: Option<&MessageSpan> = None;
        for (message, span) in self.document.spans.iter().enumerate() {
            if span.is_beside() {
                self.unit_of.push(None);
                continue;
            }
            if before.is_none_or(|before| before.entries != span.entries) {
                let numbers = numbers.by_ref().take(span.entries.len());
                let numbers: Vec<usize> = numbers.collect();
                self.units.push(Unit {
                    place: place(numbers.first().copied().unwrap_or_default()),
                    raws: self.document.originals(message).to_vec(),
                    messages: Vec::new(),
                    legacy: numbers.iter().any(|index| legacy.contains(index)),
                });
            }
            before = Some(span);
            self.unit_of.push(self.units.len().checked_sub(1));
            if let Some(unit) = self.units.last_mut() {
                unit.messages.push(message);
            }
        }
        Ok(())
    }
}
