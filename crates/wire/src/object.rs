//! JSON that is written key by key and may contain raw texts: [`Object`], and the [`Settings`] of a
//! body. Signed blocks and arguments of tool calls must be sent back byte for byte.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::raw::quoted;

/// A JSON object while it is written.
#[derive(Debug)]
pub(crate) struct Object {
    json: String,
}

impl Object {
    pub(crate) fn new() -> Self {
        Self { json: "{".into() }
    }

    /// Creates an object that begins with its type.
    pub(crate) fn of(kind: &str) -> Self {
        Self::new().text("type", kind)
    }

    /// Adds a key with a text.
    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.json.push_str(&quoted(value));
        self
    }

    /// Adds a key with a text, if there is one.
    pub(crate) fn optional(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    /// Adds a key with a value that is displayed as JSON.
    pub(crate) fn value(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.key(key);
        // Writing into a string cannot fail.
        let _ = write!(self.json, "{value}");
        self
    }

    /// Adds a key with JSON text.
    pub(crate) fn raw(mut self, key: &str, json: &str) -> Self {
        self.key(key);
        self.json.push_str(json);
        self
    }

    /// Adds a key with an array of JSON texts, each of one or more elements.
    pub(crate) fn list<'j>(mut self, key: &str, items: impl IntoIterator<Item = &'j str>) -> Self {
        self.key(key);
        self.json.push('[');
        let begin = self.json.len();
        for item in items.into_iter().filter(|item| !item.is_empty()) {
            if self.json.len() > begin {
                self.json.push(',');
            }
            self.json.push_str(item);
        }
        self.json.push(']');
        self
    }

    /// Adds members that are JSON already, without braces.
    pub(crate) fn members(mut self, members: &str) -> Self {
        if !members.is_empty() {
            if self.json.len() > 1 {
                self.json.push(',');
            }
            self.json.push_str(members);
        }
        self
    }

    /// Returns the bytes up to the elements of a list under a key. The object stays open.
    pub(crate) fn open_list(mut self, key: &str) -> Vec<u8> {
        self.key(key);
        self.json.push('[');
        self.json.into_bytes()
    }

    pub(crate) fn end(mut self) -> String {
        self.json.push('}');
        self.json
    }

    fn key(&mut self, key: &str) {
        if self.json.len() > 1 {
            self.json.push(',');
        }
        self.json.push_str(&quoted(key));
        self.json.push(':');
    }
}

/// Appends a text as a JSON string.
pub(crate) fn push_text(out: &mut Vec<u8>, text: &str) {
    // Writing a text into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Returns the members of a JSON object without its braces.
pub(crate) fn members(keys: &Map<String, Value>) -> String {
    let members = keys.iter().map(|(key, value)| {
        let key = Value::from(key.as_str());
        format!("{key}:{value}")
    });
    members.collect::<Vec<_>>().join(",")
}

/// Returns an object with the members that have a value. `None` if none has.
pub(crate) fn some_members<const N: usize>(
    members: [(&str, Option<Value>); N],
) -> Option<Map<String, Value>> {
    let members = members.into_iter();
    let members: Map<String, Value> = members
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect();
    (!members.is_empty()).then_some(members)
}

/// Adds a value to a JSON value. Members of objects are merged, any other value is replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// The members of a body behind the messages. They may change from turn to turn, so an older request, up to the
/// end of its messages, is a byte prefix of a newer one.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    keys: Map<String, Value>,
}

impl Settings {
    /// Adds other keys, except for these. An object is merged with the one under the same key.
    pub(crate) fn merge(&mut self, other: Option<&Map<String, Value>>, except: &[&str]) {
        let other = other.into_iter().flatten();
        for (key, value) in other.filter(|(key, _)| !except.contains(&key.as_str())) {
            merge(self.keys.entry(key).or_insert(Value::Null), value);
        }
    }

    /// Sets a key, or removes it.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Option<Value>>) {
        match value.into() {
            Some(value) => self.keys.insert(key.to_owned(), value),
            None => self.keys.shift_remove(key),
        };
    }

    /// Sets further keys of a request, except for these. `null` removes a key.
    pub(crate) fn set_all(&mut self, other: Option<&Map<String, Value>>, except: &[&str]) {
        let other = other.into_iter().flatten();
        for (key, value) in other.filter(|(key, _)| !except.contains(&key.as_str())) {
            self.set(key, Some(value.clone()).filter(|value| !value.is_null()));
        }
    }

    /// Appends all members to a JSON object.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (key, value) in &self.keys {
            out.push(b',');
            push_text(out, key);
            out.push(b':');
            // A value can always be serialized, and memory accepts all bytes.
            let _ = serde_json::to_writer(&mut *out, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_written_as_said() {
        let inner = Object::of("text").text("text", "a\"\n").end();
        let items = [inner.as_str(), "1.50"];
        let json = Object::new().list("list", items).value("n", 3).end();
        assert_eq!(
            json,
            r#"{"list":[{"type":"text","text":"a\"\n"},1.50],"n":3}"#
        );
        assert_eq!(Object::new().end(), "{}");
        assert_eq!(Object::new().list("none", []).end(), r#"{"none":[]}"#);
    }
}
