//! JSON that is kept byte for byte: objects as their keys and the raw texts of their values, so that one
//! key can be changed, and blocks of a provider, which are sent back only to the protocol that they came
//! from. To read values, use `serde_json::Value`.

use std::collections::HashMap;
use std::fmt;

use plimsoll_context::Opaque;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::WireError;

/// A JSON object in raw pieces.
#[derive(Debug, Clone, Default)]
pub struct RawObject<'a> {
    pub(crate) entries: Vec<(String, &'a str)>,
}

impl<'a> RawObject<'a> {
    /// Returns the entries of the object at the beginning of a text, which may be cut off at any place. A value that is
    /// cut off is empty.
    pub fn of_start(text: &'a [u8]) -> Self {
        let mut object = Self::default();
        // An error ends the entries.
        let _ = serde_json::Deserializer::from_slice(text)
            .deserialize_map(Entries(&mut object.entries));
        object
    }

    /// Returns the raw text of a key's value. If the key occurs twice, the last one counts.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        let mut found = self.entries.iter().rev().filter(|(name, _)| name == key);
        found.next().map(|(_, raw)| *raw)
    }

    /// Like [`RawObject::get`], except for `null`.
    pub fn given(&self, key: &str) -> Option<&'a str> {
        self.get(key).filter(|raw| *raw != "null")
    }

    /// Returns the text under a key. Empty if there is none.
    pub fn text(&self, key: &str) -> String {
        let text = self.get(key).map(serde_json::from_str);
        text.and_then(Result::ok).unwrap_or_default()
    }

    /// Returns the whole number under a key.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    /// Returns the object as JSON text, with other values for some keys. `None` removes a key. A new
    /// key comes last. Of a key that occurs twice, only the last value is written, which is the one that counts.
    pub fn with(&self, changes: &[(&str, Option<String>)]) -> String {
        let change = |key: &str| changes.iter().find(|(changed, _)| *changed == key);
        let numbered = self.entries.iter().enumerate();
        let last: HashMap<&str, usize> = numbered
            .clone()
            .map(|(at, (key, _))| (key.as_str(), at))
            .collect();
        let own = numbered.filter(|(at, (key, _))| last.get(key.as_str()) == Some(at));
        let kept = own.filter_map(|(_, (key, raw))| match change(key) {
            None => Some((key.as_str(), *raw)),
            Some((_, raw)) => Some((key.as_str(), raw.as_deref()?)),
        });
        let new = changes.iter().filter(|(key, _)| self.get(key).is_none());
        let new = new.filter_map(|(key, raw)| Some((*key, raw.as_deref()?)));
        let entries: Vec<(&str, &str)> = kept.chain(new).collect();
        let bytes: usize = entries
            .iter()
            .map(|(key, raw)| key.len() + raw.len() + 4)
            .sum();
        let mut out = String::with_capacity(bytes + 2);
        out.push('{');
        for (key, raw) in entries {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&quoted(key));
            out.push(':');
            out.push_str(raw);
        }
        out.push('}');
        out
    }
}

/// Returns the object of a request and its list with this key. A text that is no object is the list
/// itself.
///
/// # Errors
///
/// [`WireError::NotJson`] if the object is not valid.
pub fn with_list<'a>(
    text: &'a str,
    key: &str,
) -> Result<(Option<RawObject<'a>>, Option<&'a str>), WireError> {
    if !text.trim_start().starts_with('{') {
        return Ok((None, Some(text.trim())));
    }
    let object: RawObject<'a> = parse(text)?;
    let list = object.get(key);
    Ok((Some(object), list))
}

/// Parses a JSON text.
///
/// # Errors
///
/// [`WireError::NotJson`], with the place.
pub fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, WireError> {
    serde_json::from_str(text).map_err(|error| WireError::not_json(&error))
}

/// Returns a text as a JSON string.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut object = Self::default();
        from.deserialize_map(Entries(&mut object.entries))?;
        Ok(object)
    }
}

/// Collects the entries of an object.
struct Entries<'e, 'a>(&'e mut Vec<(String, &'a str)>);

impl<'de: 'a, 'a> Visitor<'de> for Entries<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.0.push((key, ""));
            let raw = map.next_value::<&'de RawValue>()?;
            if let Some((_, value)) = self.0.last_mut() {
                *value = raw.get();
            }
        }
        Ok(())
    }
}

/// Creates a block of a protocol.
pub(crate) fn opaque(origin: &str, data: impl Into<String>) -> Opaque {
    Opaque {
        origin: origin.to_owned(),
        data: data.into(),
    }
}

/// Returns the content of a block of this protocol. `None` for other blocks.
pub(crate) fn own<'a, T: Deserialize<'a>>(opaque: &'a Opaque, origin: &str) -> Option<T> {
    let is_own = opaque.origin == origin;
    is_own
        .then(|| serde_json::from_str(&opaque.data).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_changed_keeps_its_bytes() {
        let text = r#"{"b": 1.50, "content":"x","é\n":[1, 2]}"#;
        let object: RawObject<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(object.get("b"), Some("1.50"));
        assert_eq!(
            object.with(&[
                ("content", Some("\"y\"".into())),
                ("b", None),
                ("new", Some("1".into()))
            ]),
            r#"{"content":"y","é\n":[1, 2],"new":1}"#
        );
        let twice: RawObject<'_> = serde_json::from_str(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!(twice.with(&[]), r#"{"b":2,"a":3}"#);
    }
}
