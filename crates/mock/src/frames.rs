//! [`Frames`]: the bodies and events of a protocol's answers as templates, from the files in
//! `crates/mock/answers/`. [`encode`](crate::encode) fills them in for a turn of the script.
//!
//! A file has groups of templates, one template per line:
//!
//! ```text
//! @usage = {"output_tokens":"{output_tokens|1}"}
//!
//! [text]
//! whole {"type":"text","text":"{text}","citations?":"{citations}"}
//! once {"type":"message_start","id":"msg_mock{number}","usage":"@usage"}
//! halves {"type":"text_delta","text":"{one}"}
//! ```
//!
//! - `[name]` begins a group. The groups of the parts of an answer (`text`, `call`) have the events of that
//!   part in a stream, in their order.
//! - `whole` is the complete part, `once` one event. Any other first word is the name of a list: the event is
//!   repeated for each entry, which is `{one}`, with the index `{at}`.
//! - `"{name}"` is the value with this name, `"{a.b}"` a value within another, and `"{request.a}"` a value of
//!   the request. `"{name|default}"` has a default: JSON or a text. Within a longer text, the value is
//!   inserted as text.
//! - A key that ends with `?` is omitted if its value is null or has not been set.
//! - `@name = JSON` names a template that others contain as `"@name"`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{list, with};
use crate::rules::table::{filled, lookup};

/// The templates of a protocol, by group.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The template of the group `facts`.
    pub(crate) facts: ApiFacts,
    groups: BTreeMap<&'static str, Vec<(&'static str, Value)>>,
    /// Lines that cannot be read. A test checks that there are none.
    errors: Vec<&'static str>,
}

/// The constant facts about a protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiFacts {
    /// The name, as used by `--protocol`.
    pub(crate) name: String,
    /// The path of the base URL that the API's own clients are given. Some append the version themselves.
    pub(crate) base_path: String,
    /// The ends of the paths for replies and for token counts.
    pub(crate) replies: Vec<String>,
    pub(crate) counts: Option<String>,
    /// The name of the header with the request id.
    pub(crate) request_id: String,
    /// The stop reason of a model that stops at the end of the window.
    pub(crate) window_stop: Option<String>,
}

/// The values of templates, by name.
#[derive(Debug, Clone)]
pub(crate) struct Values<'r> {
    request: &'r Value,
    named: Value,
}

impl Frames {
    /// Parses a file of templates.
    pub(crate) fn parse(text: &'static str) -> Self {
        let mut frames = Self::default();
        let mut named: Vec<(String, &str)> = Vec::new();
        let mut group = "";
        let lines = text.lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let name = line.strip_prefix('@');
            if let Some((name, json)) = name.and_then(|line| line.split_once(" = ")) {
                named.push((format!("\"@{name}\""), json));
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                group = name.trim_end_matches(']');
                continue;
            }
            let (word, json) = line.split_once(' ').unwrap_or((line, ""));
            let json = named
                .iter()
                .fold(json.to_owned(), |json, (name, of)| json.replace(name, of));
            match serde_json::from_str(&json) {
                Ok(template) => frames
                    .groups
                    .entry(group)
                    .or_default()
                    .push((word, template)),
                Err(_) => frames.errors.push(line),
            }
        }
        let facts = frames.one("facts", &Values::new(&Value::Null, Value::Null));
        match ApiFacts::deserialize(facts) {
            Ok(facts) => frames.facts = facts,
            Err(_) => frames.errors.push("facts"),
        }
        frames
    }

    pub(crate) fn has(&self, group: &str) -> bool {
        self.groups.contains_key(group)
    }

    /// Returns the number of templates in a group.
    pub(crate) fn count(&self, group: &str) -> usize {
        self.group(group).len()
    }

    /// Returns the only template of a group, filled in. Null for an unknown group.
    pub(crate) fn one(&self, group: &str, values: &Values<'_>) -> Value {
        self.first(group, "once", values).unwrap_or_default()
    }

    /// Returns the complete part of an answer. `None` if the protocol has none of this kind.
    pub(crate) fn whole(&self, group: &str, values: &Values<'_>) -> Option<Value> {
        self.first(group, "whole", values)
    }

    /// Returns the events of a group, in their order.
    pub(crate) fn events(&self, group: &str, values: &Values<'_>) -> Vec<Value> {
        let mut events = Vec::new();
        for (word, template) in self.group(group) {
            match *word {
                "whole" => {}
                "once" => events.push(fill(template, values)),
                name => {
                    for (at, one) in list(&values.named, name).iter().enumerate() {
                        let values = values.with(json!({"at": at, "one": one}));
                        events.push(fill(template, &values));
                    }
                }
            }
        }
        events
    }

    fn first(&self, group: &str, word: &str, values: &Values<'_>) -> Option<Value> {
        let mut templates = self.group(group).iter();
        let (_, template) = templates.find(|(known, _)| *known == word)?;
        Some(fill(template, values))
    }

    fn group(&self, name: &str) -> &[(&'static str, Value)] {
        self.groups.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

impl<'r> Values<'r> {
    /// Creates values for an answer to a request.
    pub(crate) fn new(request: &'r Value, named: Value) -> Self {
        Self { request, named }
    }

    /// Returns these values and more, which replace those of the same name.
    pub(crate) fn with(&self, more: Value) -> Self {
        Self {
            request: self.request,
            named: with(self.named.clone(), more),
        }
    }

    /// Returns the value of a placeholder. Null if it has not been set.
    pub(crate) fn get(&self, placeholder: &str) -> Value {
        let (path, default) = match placeholder.split_once('|') {
            Some((path, default)) => (path, Some(default)),
            None => (placeholder, None),
        };
        let value = match path.strip_prefix("request.") {
            Some(path) => lookup(self.request, path),
            None => lookup(&self.named, path),
        };
        match (value, default) {
            (None | Some(Value::Null), Some(text)) => {
                serde_json::from_str(text).unwrap_or_else(|_| text.into())
            }
            (value, _) => value.cloned().unwrap_or_default(),
        }
    }
}

/// Fills in a template.
fn fill(template: &Value, values: &Values<'_>) -> Value {
    match template {
        Value::String(text) => match placeholder(text) {
            Some(name) => values.get(name),
            None => filled(text, |name| match values.get(name) {
                Value::String(text) => text,
                other => other.to_string(),
            })
            .into(),
        },
        Value::Array(list) => list.iter().map(|one| fill(one, values)).collect(),
        Value::Object(keys) => {
            let keys = keys.iter().filter_map(|(key, template)| {
                let value = fill(template, values);
                match key.strip_suffix('?') {
                    Some(_) if value.is_null() => None,
                    Some(key) => Some((key.to_owned(), value)),
                    None => Some((key.clone(), value)),
                }
            });
            keys.collect()
        }
        other => other.clone(),
    }
}

/// Returns the placeholder that is the whole text.
fn placeholder(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let name = inner.split('|').next()?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter);
    name.chars().all(is_name).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat, gemini, messages, responses};

    #[test]
    fn every_template_can_be_read() {
        for frames in [
            &chat::FRAMES,
            &gemini::FRAMES,
            &messages::FRAMES,
            &responses::FRAMES,
        ] {
            assert_eq!(frames.errors, [""; 0]);
        }
    }

    #[test]
    fn templates_are_filled_in() {
        let frames = Frames::parse(
            "[facts]\nonce {}\n@id = \"x{n}\"\n[a]\nwhole {\"id\":\"@id\",\"b?\":\"{b}\",\"c\":\"{b}\"}\n\
             once \"{request.k.l|{}}\"\nlist {\"{at}\":\"{one}\",\"at\":\"{at}\"}\nonce nonsense",
        );
        assert_eq!(frames.errors, ["once nonsense", "facts"]);
        let request = json!({"k": {"l": null}});
        let values = Values::new(&request, json!({"n": 7, "list": ["p", 2]}));
        let whole = frames.whole("a", &values).unwrap();
        assert_eq!(whole.to_string(), r#"{"id":"x7","c":null}"#);
        let events: Vec<String> = frames
            .events("a", &values)
            .iter()
            .map(Value::to_string)
            .collect();
        let expected = ["{}", r#"{"{at}":"p","at":0}"#, r#"{"{at}":2,"at":1}"#];
        assert_eq!(events, expected);
        assert_eq!(frames.one("b", &values), Value::Null);
        let whole = frames.whole("a", &values.with(json!({"b": [1]}))).unwrap();
        assert_eq!(whole.to_string(), r#"{"id":"x7","b":[1],"c":[1]}"#);
    }
}
