//! Names and arguments of tool calls in the forms that servers accept.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::object::Object;

/// Returns a tool's name cut to `max` characters, with `_` in place of characters that no API accepts.
pub(crate) fn legal_name(name: &str, max: usize) -> Cow<'_, str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= max && name.chars().all(legal) {
        return Cow::Borrowed(name);
    }
    let letters = name.chars().take(max);
    let name: String = letters.map(|c| if legal(c) { c } else { '_' }).collect();
    Cow::Owned(if name.is_empty() { "_".into() } else { name })
}

/// Returns arguments unchanged if they are a JSON object, otherwise an object that contains them.
pub(crate) fn object_text(arguments: &str) -> Cow<'_, str> {
    if is_json_object(arguments) {
        return Cow::Borrowed(arguments);
    }
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    Cow::Owned(object_of(MALFORMED, arguments))
}

/// Returns `true` for the text of a JSON object.
pub fn is_json_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Returns arguments without surrounding white space if they are a JSON object, otherwise an object
/// that contains them.
///
/// They are fully parsed, because the API would refuse the whole body for an invalid number or escape.
pub(crate) fn object(arguments: &str) -> Cow<'_, str> {
    let text = arguments.trim();
    if text.starts_with('{') && serde_json::from_str::<Map<String, Value>>(text).is_ok() {
        return Cow::Borrowed(text);
    }
    if text.is_empty() {
        return Cow::Borrowed("{}");
    }
    Cow::Owned(object_of(MALFORMED, arguments))
}

/// The key under which arguments are sent that are not a JSON object.
const MALFORMED: &str = "malformed_arguments";

/// Returns an object that contains a text.
pub(crate) fn object_of(key: &str, text: &str) -> String {
    Object::new().text(key, text).end()
}
