//! Tools in the forms that servers accept: their definitions, and the names and arguments of calls.

use std::borrow::Cow;
use std::collections::BTreeSet;

use plimsoll_context::ToolSpec;
use serde_json::{Map, Value};

use crate::call_ids::is_word;
use crate::object::{Object, Settings};
use crate::request::{LeftOut, Note, RenderInput, ToolChoice};

/// The maximum length of a tool's name at the strictest server of each protocol.
pub(crate) const MAX_NAME: usize = 64;
/// The key under which arguments are sent that are not a JSON object.
const MALFORMED: &str = "malformed_arguments";

/// Returns the tools with their names on the wire, sorted by name and each name once. Notes once that a
/// tool is renamed, and once that one is left out because another has its name.
pub(crate) fn named<'t>(
    tools: &'t [ToolSpec],
    name: impl Fn(&'t str) -> Cow<'t, str>,
    notes: &mut Vec<Note>,
) -> Vec<(Cow<'t, str>, &'t ToolSpec)> {
    let named = tools.iter().map(|tool| (name(&tool.name), tool));
    let mut named: Vec<_> = named.collect();
    named.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    let mut names = BTreeSet::new();
    let mut left_out: Vec<Note> = Vec::new();
    named.retain(|(name, tool)| {
        let first = names.insert(name.clone());
        let reason = match (first, **name != tool.name) {
            (false, _) => Some(LeftOut::RepeatedTool),
            (true, true) => Some(LeftOut::Name),
            (true, false) => None,
        };
        let note = reason.map(Note::setting);
        left_out.extend(note.filter(|note| !left_out.contains(note)));
        first
    });
    notes.append(&mut left_out);
    named
}

/// Sets the choice of tools as OpenAI's protocols have it. `named` returns the choice of one tool.
pub(crate) fn choose(
    settings: &mut Settings,
    input: &RenderInput<'_>,
    parallel_calls: bool,
    named: impl Fn(&str) -> Value,
) {
    let choice = match &input.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Tool(name) => Some(named(name)),
    };
    settings.set("tool_choice", choice);
    if !parallel_calls {
        settings.set("parallel_tool_calls", Value::Bool(false));
    }
}

/// Begins the JSON of a tool with its name, and its description if it has one.
pub(crate) fn described(name: &str, description: &str) -> Object {
    let tool = Object::new().text("name", name);
    if description.trim().is_empty() {
        tool
    } else {
        tool.text("description", description)
    }
}

/// Returns a schema that is a JSON object with a type.
pub(crate) fn typed(schema: &Value) -> Cow<'_, Value> {
    let mut keys: Map<String, Value> = match schema {
        Value::Object(keys) if keys.contains_key("type") => return Cow::Borrowed(schema),
        Value::Object(keys) => keys.clone(),
        _ => Map::new(),
    };
    keys.insert("type".into(), "object".into());
    Cow::Owned(Value::Object(keys))
}

/// Returns `true` if every API accepts a tool's name.
pub fn is_legal_name(name: &str) -> bool {
    is_word(name) && name.len() <= MAX_NAME
}

/// Returns a tool's name cut to 64 characters, with `_` in place of characters that not
/// every API accepts.
pub fn legal_name(name: &str) -> Cow<'_, str> {
    if is_legal_name(name) {
        return Cow::Borrowed(name);
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let letters = name.chars().take(MAX_NAME);
    let name: String = letters.map(|c| if legal(c) { c } else { '_' }).collect();
    Cow::Owned(if name.is_empty() { "_".into() } else { name })
}

/// Returns arguments unchanged if they are a JSON object, otherwise an object that contains them.
pub fn object_text(arguments: &str) -> Cow<'_, str> {
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

/// Returns an object that contains a text.
pub(crate) fn object_of(key: &str, text: &str) -> String {
    Object::new().text(key, text).end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_what_is_accepted_of_them() {
        for (name, sent) in [
            ("read_file", "read_file"),
            ("fs.read", "fs_read"),
            ("läs", "l_s"),
            ("", "_"),
        ] {
            assert_eq!(legal_name(name), sent);
        }
        assert_eq!(legal_name(&"x".repeat(70)).len(), MAX_NAME);
    }
}
