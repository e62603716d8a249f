//! [`Given`]: a request as it came: its messages, and which text of it each of them was read from.
//! What cannot be read is set aside with its reason. Mends nothing.

use std::collections::BTreeSet;

use plimsoll_context::Message;
use plimsoll_wire::__internals::CHAT;
use plimsoll_wire::__internals::{RawObject, parse};
use plimsoll_wire::WireError;
use serde_json::Value;
use serde_json::value::RawValue;

use super::judged::Judged;
use super::repair::Repair;
use super::spelled::Spelled;
use super::target::Target;

/// A request that was read.
#[derive(Debug)]
pub(super) struct Given<'a> {
    /// Its messages.
    pub(super) messages: Vec<Message>,
    /// For each, the unit that it stands in; `None` for a system prompt beside the list.
    pub(super) unit_of: Vec<Option<usize>>,
    /// What the list is made of.
    pub(super) units: Vec<Unit<'a>>,
    /// The keys of the request; `None` for a bare list.
    pub(super) object: Option<RawObject<'a>>,
    /// What is no message, and what was spelled as none is.
    pub(super) unreadable: Vec<Repair>,
    /// How many messages could not be read.
    lacking: usize,
    /// The first message that was spelled otherwise.
    pub(super) changed: Option<usize>,
    /// The target for this request or history.
    pub(super) target: Target,
    /// Whether the validator of the target accepts its text.
    is_accepted: bool,
}

/// What one message of the wire is: a text of the list, or, where a turn is several items, some.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    /// Its place in the request.
    pub(super) place: String,
    /// Its texts.
    pub(super) raws: Vec<&'a str>,
    /// Whether it is in a form that only stands with others of its kind.
    pub(super) legacy: bool,
}

impl<'a> Given<'a> {
    /// Reads a bare list or a request.
    pub(super) fn read(spelled: &'a Spelled<'a>, target: &Target) -> Result<Self, WireError> {
        let text = spelled.text.trim();
        let mut json: Value = parse(text)?;
        let object: Option<RawObject<'a>> = match text.starts_with('{') {
            true => Some(parse(text)?),
            false => None,
        };
        let key = target.list();
        let list = match &object {
            Some(object) => object
                .get(key)
                .ok_or_else(|| WireError::expected(key, CHAT, None))?,
            None => text,
        };
        let judged = Judged::new(&mut json, target);
        let mut given = Self {
            messages: Vec::new(),
            unit_of: Vec::new(),
            units: Vec::new(),
            object,
            unreadable: spelled.repairs.clone(),
            lacking: 0,
            changed: None,
            target: judged.target.clone(),
            is_accepted: judged.is_accepted,
        };
        // One text that the user says.
        if list.starts_with('"') && given.object.is_some() && key == "input" {
            given.messages.push(Message::user(parse::<String>(list)?));
            given.unit_of.push(None);
            return Ok(given);
        }
        if !list.starts_with('[') {
            let value: Value = parse(list)?;
            let expected = "an array of messages";
            return Err(WireError::expected(key, expected, Some(&value)));
        }
        let raws: Vec<&'a RawValue> = parse(list)?;
        given.units(list, raws, judged.list(json), target)?;
        let units = given.units.iter();
        let mut units = units.map(|unit| spelled.places.contains(&unit.place));
        let first = units.position(|changed| changed);
        let mut messages = given.unit_of.iter();
        given.changed = first.and_then(|first| messages.position(|unit| *unit == Some(first)));
        Ok(given)
    }

    /// Whether a message of it could not be read.
    pub(super) fn is_lacking(&self) -> bool {
        self.lacking > 0
    }

    /// Whether all of it could be read, and the validator of the target accepts it.
    pub(super) fn is_accepted(&self) -> bool {
        self.unreadable.is_empty() && self.is_accepted
    }

    /// Whether a server of Responses keeps what is said to it.
    pub(super) fn is_stored(&self) -> bool {
        self.object.is_some() && self.key("store") != Some("false")
    }

    pub(super) fn key(&self, name: &str) -> Option<&'a str> {
        self.object.as_ref()?.get(name)
    }

    /// Reads the messages from the texts of the list, which may have been parsed already. Each that
    /// cannot be read is left out and noted.
    fn units(
        &mut self,
        list: &str,
        raws: Vec<&'a RawValue>,
        values: Option<Vec<Value>>,
        target: &Target,
    ) -> Result<(), WireError> {
        let form = target.form();
        let key = form.list();
        let place = |index: usize| format!("{key}[{index}]");
        let raws: Vec<&'a str> = raws.into_iter().map(RawValue::get).collect();
        let mut raws: Vec<(usize, &'a str)> = raws.into_iter().enumerate().collect();
        let parsed = values.iter().flatten().enumerate();
        let legacy = parsed.filter(|(_, message)| form.is_legacy(message));
        let legacy: BTreeSet<usize> = legacy.map(|(index, _)| index).collect();
        let system = form.system_key().and_then(|key| self.key(key));
        let (messages, counts) = match form.read(list, values, system) {
            Ok(read) => read,
            Err(_) => {
                raws.retain(|(index, raw)| {
                    let Err(error) = form.read(&format!("[{raw}]"), None, None) else {
                        return true;
                    };
                    let error = placed(error, &place(*index));
                    let done = format!("it is no message ({error}); left it out");
                    self.unreadable.push(Repair::new(place(*index), done));
                    self.lacking += 1;
                    false
                });
                let all: Vec<&str> = raws.iter().map(|(_, raw)| *raw).collect();
                let list = format!("[{}]", all.join(","));
                form.read(&list, None, system)?
            }
        };
        self.messages = messages;
        let mut raws = raws.into_iter();
        for count in counts {
            match count {
                None => self.unit_of.push(None),
                // One more message of the unit before it.
                Some(0) => self.unit_of.push(self.units.len().checked_sub(1)),
                Some(count) => {
                    let taken: Vec<(usize, &'a str)> = raws.by_ref().take(count).collect();
                    let Some((first, _)) = taken.first() else {
                        break;
                    };
                    self.unit_of.push(Some(self.units.len()));
                    self.units.push(Unit {
                        place: place(*first),
                        legacy: taken.iter().any(|(index, _)| legacy.contains(index)),
                        raws: taken.into_iter().map(|(_, raw)| raw).collect(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// An error of a list of one message, where that message stands.
fn placed(error: WireError, at: &str) -> WireError {
    match error {
        WireError::Expected {
            place,
            expected,
            got,
        } => {
            let inside = place.split_once(']').map_or("", |(_, inside)| inside);
            WireError::Expected {
                place: format!("{at}{inside}"),
                expected,
                got,
            }
        }
        other => other,
    }
}
