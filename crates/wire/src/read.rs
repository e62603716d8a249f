//! Reads the JSON of requests: values with their place in errors, and contents as lists of blocks. Each
//! protocol reads its own entries and blocks (`openai_chat/read.rs`, for example). Nothing is repaired.

use plimsoll_context::{Opaque, Part};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::WireError;
use crate::raw::{self, RawObject, parse};

/// Returns the error for a JSON text of the wrong type.
pub(crate) fn wrong(raw: &str, place: &str, expected: &str) -> WireError {
    match parse::<Value>(raw) {
        Ok(value) => WireError::expected(place, expected, Some(&value)),
        Err(error) => error,
    }
}

/// Returns the error for a message of an unknown role.
pub(crate) fn unknown_role(role: &str, place: &str, expected: &str) -> WireError {
    WireError::Expected {
        place: format!("{place}.role"),
        expected: expected.to_owned(),
        got: format!("{role:?}"),
    }
}

/// Returns the entries of an array.
pub(crate) fn array<'a>(
    raw: &'a str,
    place: &str,
    expected: &str,
) -> Result<Vec<&'a str>, WireError> {
    if !raw.starts_with('[') {
        return Err(wrong(raw, place, expected));
    }
    let list: Vec<&RawValue> = parse(raw)?;
    Ok(list.into_iter().map(RawValue::get).collect())
}

/// Reads a content: a text, or a list of blocks and, as some clients write it, bare texts.
pub(crate) fn content(
    raw: &str,
    place: &str,
    expected: &str,
    block: impl Fn(&RawObject<'_>, &str, &str) -> Result<Vec<Part>, WireError>,
) -> Result<Vec<Part>, WireError> {
    if raw.starts_with('"') {
        return Ok(vec![Part::text(parse::<String>(raw)?)]);
    }
    let mut parts = Vec::new();
    for (at, raw) in array(raw, place, expected)?.into_iter().enumerate() {
        if raw.starts_with('"') {
            parts.push(Part::text(parse::<String>(raw)?));
            continue;
        }
        let place = format!("{place}[{at}]");
        parts.extend(block(&RawObject::read(raw, &place)?, raw, &place)?);
    }
    Ok(parts)
}

impl<'a> RawObject<'a> {
    /// Reads an object at this place.
    pub(crate) fn read(raw: &'a str, place: &str) -> Result<Self, WireError> {
        if raw.starts_with('{') {
            parse(raw)
        } else {
            Err(wrong(raw, place, "an object"))
        }
    }

    /// Returns the text that an object at this place must have.
    pub(crate) fn need(&self, key: &str, place: &str) -> Result<String, WireError> {
        let place = || format!("{place}.{key}");
        match self.get(key) {
            Some(raw) if raw.starts_with('"') => parse(raw),
            Some(raw) => Err(wrong(raw, &place(), "string")),
            None => Err(WireError::expected(place(), "string", None)),
        }
    }

    /// Returns the text under a key. `None` for any other value.
    pub(crate) fn some_text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// Returns the object under a key. `None` for any other value.
    pub(crate) fn object(&self, key: &str) -> Option<RawObject<'a>> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// Returns a block with the further keys of an entry, which must be sent back with it.
    pub(crate) fn rest(&self, origin: &str, known: &[&str]) -> Option<Opaque> {
        let is_known = |(key, raw): &&(String, &str)| known.contains(&&**key) || *raw == "null";
        let changes = self.entries.iter().filter(is_known);
        let data = self.with(&changes.map(|(key, _)| (&**key, None)).collect::<Vec<_>>());
        (data != "{}").then(|| raw::opaque(origin, data))
    }
}
