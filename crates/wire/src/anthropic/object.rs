//! [`Object`]: JSON objects written key by key, raw texts among them, because a signed block or a
//! tool call's arguments go back byte for byte. Not a serializer of types.

use std::fmt::Write;

/// A JSON object while it is written.
#[derive(Debug)]
pub(super) struct Object {
    json: String,
}

impl Object {
    pub(super) fn new() -> Self {
        Self { json: "{".into() }
    }

    /// An object that begins with its type.
    pub(super) fn of(kind: &str) -> Self {
        Self::new().text("type", kind)
    }

    /// A key with a text.
    pub(super) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        push_quoted(&mut self.json, value);
        self
    }

    /// A key with anything that prints as JSON.
    pub(super) fn value(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.key(key);
        // Writing into a string cannot fail.
        let _ = write!(self.json, "{value}");
        self
    }

    /// A key with JSON text.
    pub(super) fn raw(mut self, key: &str, json: &str) -> Self {
        self.key(key);
        self.json.push_str(json);
        self
    }

    pub(super) fn end(mut self) -> String {
        self.json.push('}');
        self.json
    }

    fn key(&mut self, key: &str) {
        if self.json.len() > 1 {
            self.json.push(',');
        }
        push_quoted(&mut self.json, key);
        self.json.push(':');
    }
}

/// A JSON array of JSON texts.
pub(super) fn array<'j>(items: impl IntoIterator<Item = &'j str>) -> String {
    let mut json = String::from("[");
    for item in items {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(item);
    }
    json.push(']');
    json
}

fn push_quoted(json: &mut String, text: &str) {
    // A text always is JSON.
    if let Ok(quoted) = serde_json::to_string(text) {
        json.push_str(&quoted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_written_as_said() {
        let inner = Object::of("text").text("text", "a\"\n").end();
        let list = array([inner.as_str(), "1.50"]);
        let json = Object::new().raw("list", &list).value("n", 3).end();
        assert_eq!(
            json,
            r#"{"list":[{"type":"text","text":"a\"\n"},1.50],"n":3}"#
        );
        assert_eq!(Object::new().end(), "{}");
        assert_eq!(array([]), "[]");
    }
}
