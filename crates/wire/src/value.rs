//! Reads and changes JSON values of any shape. A value of another type counts as absent.

use serde_json::Value;

/// Returns the JSON type of a value, for error texts.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the text under a key, if it is not empty.
pub(crate) fn some_text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    let text = value.get(key).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

/// Returns the text under a key. Empty if there is none.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    some_text(value, key).unwrap_or_default()
}

/// Returns the list under a key. Empty if there is none.
pub fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// Sets a key of an object. Does nothing for any other value.
pub fn set(value: &mut Value, key: &str, to: impl Into<Value>) {
    if let Value::Object(object) = value {
        object.insert(key.to_owned(), to.into());
    }
}

/// Removes keys of an object.
pub fn unset(value: &mut Value, keys: &[&str]) {
    if let Value::Object(object) = value {
        for key in keys {
            object.shift_remove(*key);
        }
    }
}

/// Returns `true` for an address on the web, and not the id of a stored file.
pub(crate) fn is_web_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}
