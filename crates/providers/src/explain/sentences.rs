//! The sentences about a server's requests: those of `data/sentences.toml`, which describes its format.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The sentences of each protocol, and under [`EVERY`] those of all protocols. A test reads the file.
static SENTENCES: LazyLock<BTreeMap<String, ProtocolSentences>> =
    LazyLock::new(|| toml::from_str(include_str!("../../data/sentences.toml")).unwrap_or_default());
const EVERY: &str = "every";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ProtocolSentences {
    requests: Vec<Sentence>,
    caching: Vec<Sentence>,
    cannot: Vec<Sentence>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentence {
    says: String,
    #[serde(default)]
    when: Map<String, Value>,
    #[serde(default)]
    not: Map<String, Value>,
}

/// The explanation of a protocol's requests to a model.
#[derive(Debug, Default)]
pub(super) struct Explanation {
    /// The peculiarities of the requests.
    pub(super) requests: Vec<String>,
    /// The use of the prompt cache.
    pub(super) caching: Vec<String>,
    /// The features that the requests cannot contain.
    pub(super) cannot: Vec<String>,
}

/// Explains the requests of a protocol with these properties.
pub(super) fn explain(protocol: &str, properties: &Value) -> Explanation {
    let mut out = Explanation::default();
    for all in [protocol, EVERY].map(|name| SENTENCES.get(name)) {
        let Some(all) = all else { continue };
        let said = |list: &'static [Sentence]| {
            list.iter()
                .filter_map(|sentence| sentence.about(properties))
        };
        out.requests.extend(said(&all.requests));
        out.caching.extend(said(&all.caching));
        out.cannot.extend(said(&all.cannot));
    }
    out
}

impl Sentence {
    /// Returns the sentence if it holds for these properties.
    fn about(&'static self, properties: &Value) -> Option<String> {
        let holds = |entry| has(properties, entry);
        if !self.when.iter().all(holds) || self.not.iter().any(holds) {
            return None;
        }
        let mut parts = self.says.split('{');
        let mut says = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (key, behind) = part.split_once('}')?;
            let value = properties.pointer(&format!("/{}", key.replace('.', "/")))?;
            says.push_str(&words(value)?);
            says.push_str(behind);
        }
        Some(says)
    }
}

/// Checks whether an object has the wanted value under a key. A list names alternatives, an object the
/// wanted values within the value.
fn has(object: &Value, (key, wanted): (&String, &Value)) -> bool {
    let value = object.get(key);
    value.is_some_and(|value| match wanted {
        Value::Array(any) => any.contains(value),
        Value::Object(all) => value.is_object() && all.iter().all(|entry| has(value, entry)),
        wanted => value == wanted,
    })
}

/// Returns the words for a value. `None` if there is nothing to say.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().filter_map(words).collect();
            (!values.is_empty()).then(|| values.join(", "))
        }
        value => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_sound() {
        let text = include_str!("../../data/sentences.toml");
        let all: BTreeMap<String, ProtocolSentences> = toml::from_str(text).unwrap();
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        let known = ["chat", "converse", EVERY, "gemini", "messages", "responses"];
        assert_eq!(names, known);
    }

    #[test]
    fn a_sentence_holds_for_the_properties_that_it_names() {
        let sentence: &Sentence = Box::leak(Box::new(
            toml::from_str(
                "says = \"{a.n} of {list}\"\nwhen = { kind = [\"x\", \"y\"], a = {} }\n\
                 not = { a.off = true }",
            )
            .unwrap(),
        ));
        let about = |json: &str| {
            let properties: Value = serde_json::from_str(json).unwrap();
            sentence.about(&properties)
        };
        let whole = r#"{"kind": "y", "a": {"n": 2}, "list": ["p", "q"]}"#;
        assert_eq!(about(whole).as_deref(), Some("2 of p, q"));
        for other in [
            r#"{"kind": "z", "a": {"n": 2}, "list": ["p"]}"#,
            r#"{"kind": "x", "a": {"n": 2, "off": true}, "list": ["p"]}"#,
            r#"{"kind": "x", "a": 2, "list": ["p"]}"#,
            r#"{"kind": "x", "a": {"n": 2}, "list": []}"#,
            r#"{"kind": "x", "a": {"n": null}, "list": ["p"]}"#,
        ] {
            assert_eq!(about(other), None, "{other}");
        }
    }
}
