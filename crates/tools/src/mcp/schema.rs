//! A tool's input schema as its server gave it, within a bound. It is not checked or changed beyond
//! what every provider asks of it: that it is an object.

use plimsoll_context::Bytes;
use serde_json::{Map, Value, json};

/// One schema, at most: it is sent with every request. A larger one loses its words first, and
/// then everything.
pub const MCP_SCHEMA_MAX: Bytes = Bytes(32 * 1024);
/// What says nothing of what is valid.
const WORDS: [&str; 6] = [
    "description",
    "title",
    "examples",
    "default",
    "$comment",
    "markdownDescription",
];
/// Words whose value is a table of names that are not words themselves.
const NAMES: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// How much of a schema is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Whole,
    WithoutWords,
    Nothing,
}

/// The schema within its bound.
pub(super) fn bounded(schema: &Map<String, Value>) -> (Value, Left) {
    let mut schema = schema.clone();
    schema.remove("$schema");
    schema.insert("type".to_owned(), "object".into());
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    let mut schema = Value::Object(schema);
    if fits(&schema) {
        return (schema, Left::Whole);
    }
    strip(&mut schema);
    if fits(&schema) {
        return (schema, Left::WithoutWords);
    }
    (json!({ "type": "object", "properties": {} }), Left::Nothing)
}

fn fits(schema: &Value) -> bool {
    schema.to_string().len() as u64 <= MCP_SCHEMA_MAX.0
}

/// Takes the words out. The depth is bounded: whatever was read as JSON is at most 128 deep.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|key, _| !WORDS.contains(&key.as_str()));
            for (key, value) in object {
                match value {
                    // What stands in there are names that somebody chose.
                    Value::Object(names) if NAMES.contains(&key.as_str()) => {
                        names.values_mut().for_each(strip);
                    }
                    value => strip(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: Value) -> (Value, Left) {
        let Value::Object(schema) = schema else {
            unreachable!()
        };
        bounded(&schema)
    }

    #[test]
    fn a_schema_is_an_object_within_bounds() {
        let plain = json!({"type": "object", "properties": {"a": {"type": "string", "description": "A"}}, "required": ["a"]});
        assert_eq!(of(plain.clone()), (plain, Left::Whole));
        let empty = json!({"type": "object", "properties": {}});
        for bare in [
            json!({}),
            json!({"type": "string"}),
            json!({"properties": []}),
        ] {
            assert_eq!(of(bare).0, empty);
        }
        // A property may be called like a word.
        let words = "x".repeat(40_000);
        let wordy = json!({"type": "object", "properties": {"title": {"type": "string", "description": words}}});
        let short = json!({"type": "object", "properties": {"title": {"type": "string"}}});
        assert_eq!(of(wordy), (short, Left::WithoutWords));
        let huge = json!({"type": "object", "properties": {}, "enum": [words]});
        assert_eq!(of(huge), (empty, Left::Nothing));
    }
}
