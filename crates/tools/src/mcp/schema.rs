//! Converts a tool's input schema to a form that every provider accepts, within a size limit.
//!
//! One rejected schema would make every request of a session invalid. The meaning is kept as far as
//! possible; the server validates the arguments itself.

use plimsoll_context::Bytes;
use serde_json::{Map, Value, json};

use super::fit;
use super::refs::{DEPTHS, NAMES, inlined};

/// Maximum size of a schema, which is sent with every request. A larger one is sent without
/// descriptions, or else without content.
pub const MCP_SCHEMA_MAX: Bytes = Bytes(32 * 1024);
/// Keywords that do not affect validation.
const WORDS: [&str; 6] = [
    "description",
    "title",
    "examples",
    "default",
    "$comment",
    "markdownDescription",
];
/// Keywords with data instead of a schema as their value.
const DATA: [&str; 2] = ["enum", "const"];

/// A converted schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConvertedSchema {
    pub(super) schema: Value,
    pub(super) left: SchemaRemainder,
    /// Pairs of the new and the server's name of renamed properties.
    pub(super) renamed: Vec<(String, String)>,
    /// The allowed forms of the arguments in words, if the schema cannot express them.
    pub(super) forms: Option<String>,
}

/// How much of a schema is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaRemainder {
    Whole,
    WithoutWords,
    Nothing,
}

/// Converts a schema.
pub(super) fn shown(schema: &Map<String, Value>) -> ConvertedSchema {
    let mut smallest = None;
    for depth in DEPTHS {
        let shown = formed(schema, depth);
        if fits(&shown.schema) {
            return shown;
        }
        smallest = Some(shown);
    }
    let mut shown = smallest.unwrap_or_else(|| formed(schema, 0));
    strip(&mut shown.schema);
    shown.left = SchemaRemainder::WithoutWords;
    if !fits(&shown.schema) {
        shown.schema = json!({ "type": "object", "properties": {} });
        shown.left = SchemaRemainder::Nothing;
        shown.renamed = Vec::new();
    }
    shown
}

fn formed(schema: &Map<String, Value>, depth: usize) -> ConvertedSchema {
    let (mut schema, forms) = fit::flat(inlined(schema, depth));
    let renamed = fit::renamed(&mut schema);
    ConvertedSchema {
        schema: Value::Object(schema),
        left: SchemaRemainder::Whole,
        forms: fit::describe_forms(&forms, &renamed),
        renamed,
    }
}

fn fits(schema: &Value) -> bool {
    schema.to_string().len() as u64 <= MCP_SCHEMA_MAX.0
}

/// Removes descriptions. The depth is limited: parsed JSON has at most 128 levels, and few references
/// are followed.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|key, _| !WORDS.contains(&key.as_str()));
            for (key, value) in object {
                match value {
                    // The keys are names and not keywords.
                    Value::Object(names) if NAMES.contains(&key.as_str()) => {
                        names.values_mut().for_each(strip);
                    }
                    _ if DATA.contains(&key.as_str()) => {}
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
    use proptest::prelude::*;

    use super::*;

    fn of(schema: Value) -> (Value, SchemaRemainder) {
        let Value::Object(schema) = schema else {
            unreachable!()
        };
        let shown = shown(&schema);
        (shown.schema, shown.left)
    }

    #[test]
    fn a_schema_is_an_object_within_bounds() {
        let plain = json!({"type": "object", "properties": {"a": {"type": "string", "description": "A"}}, "required": ["a"]});
        assert_eq!(of(plain.clone()), (plain, SchemaRemainder::Whole));
        let empty = json!({"type": "object", "properties": {}});
        for bare in [
            json!({}),
            json!({"type": "string"}),
            json!({"properties": []}),
        ] {
            assert_eq!(of(bare).0, empty);
        }
        // A property may have the name of a keyword, and data may contain keywords.
        let words = "x".repeat(40_000);
        let wordy = json!({"type": "object", "properties": {"title": {"type": "string", "description": words, "enum": [{"title": 1}]}}});
        let short = json!({"type": "object", "properties": {"title": {"type": "string", "enum": [{"title": 1}]}}});
        assert_eq!(of(wordy), (short, SchemaRemainder::WithoutWords));
        let huge = json!({"type": "object", "properties": {"a": {"enum": [words]}}});
        assert_eq!(of(huge), (empty, SchemaRemainder::Nothing));
    }

    #[test]
    fn what_references_make_too_large_is_shown_less_deep() {
        // Ten schemas, each of which refers to ten of the next.
        let kind = |next: usize| {
            let of = |at| {
                (
                    format!("p{at}"),
                    json!({ "$ref": format!("#/$defs/k{next}") }),
                )
            };
            let properties: Map<String, Value> = (0..10).map(of).collect();
            json!({ "type": "object", "properties": properties })
        };
        let kinds: Map<String, Value> =
            (0..10).map(|at| (format!("k{at}"), kind(at + 1))).collect();
        let schema = json!({ "properties": { "first": { "$ref": "#/$defs/k0" } }, "$defs": kinds });
        let (schema, left) = of(schema);
        assert_eq!(left, SchemaRemainder::Whole);
        assert!(!schema.to_string().contains("$ref"));
        assert_eq!(
            schema["properties"]["first"]["properties"]["p9"]["type"],
            "object"
        );
    }

    /// Arbitrary JSON, with schema keywords at valid and invalid places.
    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            prop::sample::select(vec![
                "object",
                "array",
                "string",
                "#",
                "#/$defs/a",
                "#/properties/a",
                "#/a~1b",
                "",
                "a<",
            ])
            .prop_map(Value::from),
        ];
        let key = prop::sample::select(vec![
            "type",
            "properties",
            "required",
            "items",
            "$ref",
            "$defs",
            "definitions",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "if",
            "then",
            "else",
            "enum",
            "const",
            "default",
            "id",
            "additionalProperties",
            "description",
            "a",
            "a<",
            "a>",
            "",
        ]);
        leaf.prop_recursive(6, 60, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((key.clone(), inner), 0..6).prop_map(|pairs| {
                    let pairs = pairs
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value));
                    Value::Object(pairs.collect())
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_server_calls_a_schema_is_one_that_is_taken(schema in anything()) {
            let Value::Object(given) = json!({ "properties": schema, "$defs": { "a": schema }, "anyOf": [schema] }) else {
                unreachable!()
            };
            let shown = shown(&given);
            let text = shown.schema.to_string();
            prop_assert!(text.len() as u64 <= MCP_SCHEMA_MAX.0);
            let object = shown.schema.as_object().unwrap();
            prop_assert_eq!(&object["type"], "object");
            for word in ["anyOf", "oneOf", "allOf", "not", "enum", "$ref", "$defs"] {
                prop_assert!(!object.contains_key(word), "{}", text);
            }
            let properties = object["properties"].as_object().unwrap();
            for name in properties.keys() {
                let good = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                prop_assert!(!name.is_empty() && name.chars().all(good), "{}", text);
            }
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), shown.schema);
            // A converted schema is not changed again.
            let again = super::shown(&serde_json::from_str(&text).unwrap());
            prop_assert_eq!(again.schema.to_string(), text);
        }
    }
}
