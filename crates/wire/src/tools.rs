//! The definitions of tools in the form that servers accept.

use std::borrow::Cow;
use std::collections::BTreeSet;

use plimsoll_context::ToolSpec;
use serde_json::{Map, Value};

use crate::object::{Object, Settings};
use crate::request::{LeftOut, Note, RenderInput, ToolChoice};

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
        let what = match (first, **name != tool.name) {
            (false, _) => Some(LeftOut::RepeatedTool),
            (true, true) => Some(LeftOut::Name),
            (true, false) => None,
        };
        let note = what.map(Note::setting);
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
