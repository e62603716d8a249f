//! Names and arguments of tool calls in the forms that servers accept.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::call_ids::is_word;
use crate::object::Object;

/// Returns `true` if every API accepts a tool's name, apart from those that take fewer than `max`
/// characters.
pub fn is_legal_name(name: &str, max: usize) -> bool {
    is_word(name) && name.len() <= max
}

/// Returns a tool's name cut to `max` characters, with `_` in place of characters that no API accepts.
pub(crate) fn legal_name(name: &str, max: usize) -> Cow<'_, str> {
    if is_legal_name(name, max) {
        return Cow::Borrowed(name);
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_what_is_accepted_of_them() {
        for (given, sent) in [
            ("read_file", "read_file"),
            ("fs.read", "fs_read"),
            ("läs", "l_s"),
            ("", "_"),
        ] {
            assert_eq!(legal_name(given, 64), sent);
        }
        assert_eq!(legal_name(&"x".repeat(70), 64).len(), 64);
    }
}
