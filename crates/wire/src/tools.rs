//! Tools in the forms that servers accept: their definitions, and the names and arguments of calls.

use std::borrow::Cow;
use std::collections::BTreeSet;

use plimsoll_context::{Message, ToolSpec};
use serde_json::{Map, Value, json};

use crate::anthropic::MARK;
use crate::call_ids::is_word;
use crate::object::{Object, Settings};
use crate::request::{LeftOut, Note, RenderInput, ToolChoice};

/// The maximum length of a tool's name at the strictest server of each protocol.
pub(crate) const MAX_NAME: usize = 64;
/// The key under which arguments are sent that are not a JSON object.
const MALFORMED: &str = "malformed_arguments";

/// The tools of a request in the JSON of a protocol.
#[derive(Debug, Default)]
pub(crate) struct EncodedTools {
    /// The definitions, sorted by name, with commas between.
    pub(crate) list: String,
    pub(crate) notes: Vec<Note>,
}

impl EncodedTools {
    /// Encodes tools, each name once. Notes once that a tool is renamed, and once that one is left out
    /// because another has its name.
    pub(crate) fn new<'t>(
        tools: &'t [ToolSpec],
        name: impl Fn(&'t str) -> Cow<'t, str>,
        definition: impl Fn(&str, &ToolSpec) -> String,
    ) -> Self {
        let mut sorted: Vec<&ToolSpec> = tools.iter().collect();
        sorted.sort_by(|one, other| one.name.cmp(&other.name));
        let mut names = BTreeSet::new();
        let mut encoded = Self::default();
        for tool in sorted {
            let name = name(&tool.name);
            let note = if !names.insert(name.clone()) {
                Some(LeftOut::RepeatedTool)
            } else {
                if !encoded.list.is_empty() {
                    encoded.list.push(',');
                }
                encoded.list.push_str(&definition(&name, tool));
                (*name != tool.name).then_some(LeftOut::Name)
            };
            let note = note.map(Note::setting);
            let note = note.filter(|note| !encoded.notes.contains(note));
            encoded.notes.extend(note);
        }
        encoded
    }
}

/// Returns the tool that messages call first, by its name only, for APIs that require tools beside calls. One
/// is enough, and it stays the same while messages are added.
pub(crate) fn called(messages: &[&Message]) -> Vec<ToolSpec> {
    let mut calls = messages.iter().flat_map(|message| message.calls());
    let tool = calls.next().map(|call| ToolSpec {
        name: legal_name(&call.name).into_owned(),
        description: String::new(),
        schema: json!({"type": "object"}),
    });
    tool.into_iter().collect()
}

/// Returns JSON objects with a breakpoint in the last one, if there is to be one.
pub(crate) fn with_mark<'j>(json: &'j str, mark: Option<&str>) -> Cow<'j, str> {
    let Some(mark) = mark else {
        return json.into();
    };
    let open = json.strip_suffix('}').unwrap_or(json);
    format!("{open},\"{MARK}\":{mark}}}").into()
}

/// Sets the choice of tools as OpenAI's protocols have it.
pub(crate) fn choose(settings: &mut Settings, input: &RenderInput<'_>, parallel_calls: bool) {
    let is_none = input.tool_choice == ToolChoice::None;
    settings.set("tool_choice", is_none.then(|| "none".into()));
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

/// Returns a schema that is one of an object. Some APIs require properties, even if there are none.
pub(crate) fn object_schema(schema: &Value, needs_properties: bool) -> Cow<'_, Value> {
    let is_typed = schema.get("type").is_some_and(|kind| kind == "object");
    let lacks = needs_properties && !schema.get("properties").is_some_and(Value::is_object);
    if is_typed && !lacks {
        return Cow::Borrowed(schema);
    }
    let mut keys = schema.as_object().cloned().unwrap_or_default();
    keys.insert("type".into(), "object".into());
    if lacks {
        keys.insert("properties".into(), Map::new().into());
    }
    Cow::Owned(keys.into())
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
