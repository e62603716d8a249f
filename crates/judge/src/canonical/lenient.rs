//! [`LenientParse`]: a request whose values of the wrong JSON type are converted to the type that the API
//! expects.
//!
//! Examples are a part without a type, a number in place of a text, and a call without an id. Only values
//! without content are left out. Values that the API accepts stay as they are.

pub(super) mod chat;
mod ids;
pub(super) mod messages;
mod part;
pub(super) mod responses;

use std::borrow::Cow;
use std::collections::BTreeSet;

use plimsoll_wire::__internals::{RawObject, quoted, with_list};
use serde_json::value::RawValue;

use super::repair::Repair;
use super::{Form, Target};
use crate::fault::Rule;

/// A request that can be read, as far as there is anything to read in it.
#[derive(Debug)]
pub(super) struct LenientParse<'a> {
    pub(super) text: Cow<'a, str>,
    /// The conversions.
    pub(super) repairs: Vec<Repair>,
    /// The places of the messages with converted values.
    pub(super) places: BTreeSet<String>,
}

pub(super) use ids::{IdOwner, IdPlace};

/// The repairs that were made while reading a request.
pub(crate) type Notes = Vec<Repair>;

/// A message or an item, and its place.
struct LenientEntry<'a> {
    place: String,
    raw: Cow<'a, str>,
}

impl<'a> LenientParse<'a> {
    /// Converts the values of a request, or of a bare list of its messages, that have the wrong type.
    pub(super) fn of(text: &'a str, target: &Target) -> Self {
        match changed(text.trim(), target) {
            Some((text, repairs, places)) => Self {
                text: Cow::Owned(text),
                repairs,
                places,
            },
            None => Self::untouched(text),
        }
    }

    /// Returns a request without conversions.
    pub(super) fn untouched(text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            repairs: Vec::new(),
            places: BTreeSet::new(),
        }
    }
}

fn changed(text: &str, target: &Target) -> Option<(String, Notes, BTreeSet<String>)> {
    let form = target.form();
    let key = form.list();
    let (object, list) = with_list(text, key).ok()?;
    let raws: Vec<&RawValue> = serde_json::from_str(list?).ok()?;
    let mut notes = Notes::new();
    let mut entries = Vec::with_capacity(raws.len());
    for (index, raw) in raws.into_iter().enumerate() {
        let place = format!("{key}[{index}]");
        let new = form.converted(raw.get(), &place, &mut notes);
        let raw = new.map_or(Cow::Borrowed(raw.get()), Cow::Owned);
        entries.push(LenientEntry { place, raw });
    }
    ids::give(&mut entries, form, &mut notes);
    let system = object.as_ref();
    let system = system.and_then(|object| form.converted_system(object, &mut notes));
    if notes.is_empty() {
        return None;
    }
    let raws: Vec<&str> = entries.iter().map(|entry| entry.raw.as_ref()).collect();
    let list = format!("[{}]", raws.join(","));
    let text = match &object {
        Some(object) => {
            let mut changes = vec![(key, Some(list))];
            changes.extend(system.map(|system| ("system", Some(system))));
            object.with(&changes)
        }
        None => list,
    };
    // `messages[3].content[0]` is in `messages[3]`.
    let places = notes.iter().map(|note| match note.place.split_once("].") {
        Some((entry, _)) => format!("{entry}]"),
        None => note.place.clone(),
    });
    let places = places.collect();
    Some((text, notes, places))
}

/// An object with converted values.
struct ObjectConversion<'c> {
    object: &'c RawObject<'c>,
    place: &'c str,
    notes: &'c mut Notes,
    changes: Vec<(&'static str, Option<String>)>,
}

impl<'c> ObjectConversion<'c> {
    fn new(object: &'c RawObject<'c>, place: &'c str, notes: &'c mut Notes) -> Self {
        Self {
            object,
            place,
            notes,
            changes: Vec::new(),
        }
    }

    /// Converts the value of a key. `convert` returns `None` if the value stays.
    fn value(
        &mut self,
        key: &'static str,
        convert: impl FnOnce(Option<&str>, &str, &mut Notes) -> Option<String>,
    ) {
        let place = format!("{}.{key}", self.place);
        let new = convert(self.object.get(key), &place, self.notes);
        self.changes.extend(new.map(|new| (key, Some(new))));
    }

    /// Returns the object, if a value was converted.
    fn end(self) -> Option<String> {
        (!self.changes.is_empty()).then(|| self.object.with(&self.changes))
    }
}

fn note(notes: &mut Notes, place: impl Into<String>, done: impl Into<String>) {
    notes.push(Repair {
        rule: Some(Rule::Shape),
        ..Repair::new(place, done)
    });
}

pub(super) fn object(raw: &str) -> Option<RawObject<'_>> {
    raw.starts_with('{')
        .then(|| serde_json::from_str(raw).ok())
        .flatten()
}

pub(super) fn list(raw: &str) -> Option<Vec<&str>> {
    let list: Vec<&RawValue> = raw
        .starts_with('[')
        .then(|| serde_json::from_str(raw).ok())
        .flatten()?;
    Some(list.into_iter().map(RawValue::get).collect())
}

/// Returns the text of a JSON string.
pub(super) fn text(raw: Option<&str>) -> Option<String> {
    let raw = raw.filter(|raw| raw.starts_with('"'))?;
    serde_json::from_str(raw).ok()
}

fn is_set(raw: Option<&str>) -> bool {
    raw.is_some_and(|raw| raw != "null")
}

/// Converts an id that is a number to a text.
fn id(raw: Option<&str>, place: &str, notes: &mut Notes) -> Option<String> {
    let raw = raw?;
    let digit = |one: char| one.is_ascii_digit() || one == '-';
    if !raw.starts_with(digit) {
        return None;
    }
    note(notes, place, "made a text of its number");
    Some(quoted(raw))
}

/// Gives a name to a call that has none, so that its result can be kept.
fn name(raw: Option<&str>, place: &str, notes: &mut Notes) -> Option<String> {
    match raw {
        Some(raw) if raw.starts_with('"') => None,
        _ => {
            note(notes, place, "called it `unnamed`: it had no name");
            Some(quoted("unnamed"))
        }
    }
}

/// Converts the arguments or the input of a call to a text.
fn arguments(raw: Option<&str>, place: &str, notes: &mut Notes) -> Option<String> {
    match raw {
        Some(raw) if raw.starts_with('"') => None,
        None | Some("null") => {
            note(notes, place, "put in `{}`: there were no arguments");
            Some(quoted("{}"))
        }
        Some(raw) => {
            note(notes, place, "wrote it as the text that it has to be");
            Some(quoted(raw))
        }
    }
}
