//! Converts a tool's input schema to a form that every provider accepts, within a size limit.
//!
//! One rejected schema would make every request of a session invalid. The result is an object with named
//! properties: without references, which gateways, Bedrock and Gemini reject; without a choice at the
//! outermost level, which Anthropic, OpenAI and Bedrock reject; without properties whose names
//! Anthropic rejects. The meaning is kept as far as possible; the server validates the arguments itself.

use plimsoll_context::Bytes;
use serde_json::{Map, Value, json};

/// Maximum size of a schema, which is sent with every request. A larger one is sent without
/// descriptions, or else without content.
pub const MCP_SCHEMA_MAX: Bytes = Bytes(32 * 1024);
/// Maximum nesting of replaced references, and whether descriptions stay. The next pair is tried if the
/// schema becomes too large.
const SIZES: [(usize, bool); 3] = [(8, true), (1, true), (1, false)];
/// Maximum number of schemas after replacement. References can double them at every step.
const MAX_SCHEMAS: usize = 5_000;
/// Maximum nesting of schemas; deeper ones are omitted. A request is parsed again as JSON, which may
/// have at most 128 levels, and each schema takes up to three of them.
const MAX_NESTING: usize = 32;
/// Maximum length of a property name that every provider accepts.
const MAX_KEY: usize = 64;
/// Keywords with choices, which are not allowed at the outermost level.
const CHOICES: [&str; 11] = [
    "allOf", "anyOf", "oneOf", "then", "else", "if", "not", "enum", "const", "items", "$ref",
];
/// Keywords with data instead of a schema as their value.
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "example"];
/// Keywords with a map from names to schemas as their value.
const NAMES: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
/// Keywords that do not affect validation.
const WORDS: [&str; 5] = [
    "description",
    "title",
    "examples",
    "default",
    "markdownDescription",
];

/// A converted schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConvertedSchema {
    pub(crate) schema: Value,
    /// What is missing in it, each as the end of a sentence.
    pub(crate) notes: Vec<String>,
}

/// Converts a schema.
pub(crate) fn convert(schema: &Map<String, Value>) -> ConvertedSchema {
    let root = Value::Object(schema.clone());
    for (max_references, has_words) in SIZES {
        let mut inliner = Inliner {
            root: &root,
            trail: Vec::new(),
            max_references,
            has_words,
            nesting: 0,
            remaining: MAX_SCHEMAS,
        };
        let Value::Object(mut object) = inliner.schema(&root) else {
            break;
        };
        merge_choices(&mut object, MAX_NESTING);
        object.insert("type".to_owned(), "object".into());
        if !object.get("properties").is_some_and(Value::is_object) {
            object.insert("properties".to_owned(), json!({}));
        }
        let mut notes = leave_out(&mut object);
        let schema = Value::Object(object);
        if schema.to_string().len() as u64 <= MCP_SCHEMA_MAX.0 {
            if !has_words {
                notes.push(format!("{} and is sent without descriptions", too_large()));
            }
            return ConvertedSchema { schema, notes };
        }
    }
    ConvertedSchema {
        schema: json!({ "type": "object", "properties": {} }),
        notes: vec![format!("{} and is not sent", too_large())],
    }
}

fn too_large() -> String {
    format!("takes more than {MCP_SCHEMA_MAX} bytes")
}

/// A copy of a schema in which references are replaced by their targets. Lists without `items` and
/// keywords of older drafts, which providers reject, are repaired at the same time.
struct Inliner<'a> {
    root: &'a Value,
    /// The references that are being followed.
    trail: Vec<&'a str>,
    max_references: usize,
    /// Whether descriptions stay.
    has_words: bool,
    nesting: usize,
    /// The number of schemas that may still be added.
    remaining: usize,
}

impl<'a> Inliner<'a> {
    fn schema(&mut self, schema: &'a Value) -> Value {
        let object = match schema {
            Value::Object(object) if self.nesting < MAX_NESTING && self.remaining > 0 => object,
            Value::Bool(all) => return Value::Bool(*all),
            _ => return json!({}),
        };
        self.remaining -= 1;
        self.nesting += 1;
        let mut out = match object.get("$ref").map(|reference| self.follow(reference)) {
            Some(Value::Object(target)) => target,
            _ => Map::new(),
        };
        for (key, value) in object {
            if let Some(value) = self.keyword(key, value) {
                out.insert(key.clone(), value);
            }
        }
        let is_list = match out.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            kind => kind.is_some_and(|kind| kind == "array"),
        };
        if is_list && !out.contains_key("items") {
            out.insert("items".to_owned(), json!({}));
        }
        self.nesting -= 1;
        Value::Object(out)
    }

    /// Returns the value of a keyword, if the keyword is kept.
    fn keyword(&mut self, key: &str, value: &'a Value) -> Option<Value> {
        if NAMES.contains(&key) {
            let named = value.as_object()?.iter();
            let named = named.map(|(name, schema)| (name.clone(), self.schema(schema)));
            return Some(Value::Object(named.collect()));
        }
        match (key, value) {
            // They are meaningless without references.
            (key, _) if key.starts_with('$') => None,
            (key, _) if !self.has_words && WORDS.contains(&key) => None,
            ("definitions", _) | ("id", Value::String(_)) => None,
            (key, value) if DATA.contains(&key) => Some(value.clone()),
            // The forms of drafts 3 and 4.
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => None,
            ("items", Value::Array(places)) => {
                let places = places.iter().map(|place| self.schema(place));
                Some(json!({ "anyOf": places.collect::<Vec<_>>() }))
            }
            ("required", value) => {
                let names = value.as_array()?.iter().filter(|name| name.is_string());
                Some(Value::Array(names.cloned().collect()))
            }
            (_, Value::Object(_)) => Some(self.schema(value)),
            (_, Value::Array(all)) => {
                let all = all.iter().map(|one| match one {
                    Value::Object(_) => self.schema(one),
                    other => other.clone(),
                });
                Some(Value::Array(all.collect()))
            }
            (_, value) => Some(value.clone()),
        }
    }

    /// Returns the target of a reference. Only its type remains if it is nested too deeply or refers to
    /// itself.
    fn follow(&mut self, reference: &'a Value) -> Value {
        let reference = reference.as_str().unwrap_or_default();
        let place = reference.strip_prefix('#');
        let Some(target) = place.and_then(|place| self.root.pointer(place)) else {
            return json!({});
        };
        if self.trail.len() >= self.max_references || self.trail.contains(&reference) {
            let kind = target.get("type").filter(|kind| kind.is_string());
            return kind.map_or(json!({}), |kind| json!({ "type": kind }));
        }
        self.trail.push(reference);
        let schema = self.schema(target);
        self.trail.pop();
        schema
    }
}

/// Merges the choices of a schema into its properties. A property of an alternative is not required.
fn merge_choices(schema: &mut Map<String, Value>, depth: usize) {
    for word in CHOICES {
        let branches = match (word, schema.remove(word)) {
            ("allOf" | "anyOf" | "oneOf", Some(Value::Array(branches))) => branches,
            ("then" | "else", Some(branch)) => vec![branch],
            _ => continue,
        };
        for branch in branches {
            let Value::Object(mut branch) = branch else {
                continue;
            };
            if let Some(depth) = depth.checked_sub(1) {
                merge_choices(&mut branch, depth);
            }
            if let Some(Value::Object(more)) = branch.remove("properties") {
                let properties = schema.entry("properties").or_insert_with(|| json!({}));
                if let Value::Object(properties) = properties {
                    for (name, value) in more {
                        properties.entry(name).or_insert(value);
                    }
                }
            }
            if let ("allOf", Some(Value::Array(more))) = (word, branch.remove("required"))
                && let Value::Array(names) = schema.entry("required").or_insert_with(|| json!([]))
            {
                names.extend(more);
            }
        }
    }
}

/// Leaves out the properties whose names a provider would reject. Returns a note for each.
fn leave_out(schema: &mut Map<String, Value>) -> Vec<String> {
    let mut left_out = Vec::new();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| {
            let is_kept = (1..=MAX_KEY).contains(&name.len()) && name.chars().all(is_valid_char);
            if !is_kept {
                left_out.push(name.clone());
            }
            is_kept
        });
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !left_out.iter().any(|left_out| name == left_out));
    }
    let notes = left_out.into_iter();
    let note = |name| {
        format!("names an argument `{name}`, which providers reject, and is sent without it")
    };
    notes.map(note).collect()
}

fn is_valid_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(schema: Value) -> ConvertedSchema {
        let Value::Object(schema) = schema else {
            unreachable!()
        };
        convert(&schema)
    }

    fn shown(schema: Value) -> Value {
        of(schema).schema
    }

    #[test]
    fn a_schema_is_an_object_within_a_size() {
        let plain = json!({"type": "object", "properties": {"a": {"type": "string", "description": "A"}}, "required": ["a"]});
        assert_eq!(shown(plain.clone()), plain);
        let empty = json!({"type": "object", "properties": {}});
        for bare in [
            json!({}),
            json!({"type": "string"}),
            json!({"properties": []}),
        ] {
            assert_eq!(shown(bare), empty);
        }
        // A property may have the name of a keyword, and data may contain keywords.
        let words = "x".repeat(40_000);
        let wordy = json!({"type": "object", "properties": {"title": {"type": "string", "description": words, "enum": [{"title": 1}]}}});
        let short = json!({"type": "object", "properties": {"title": {"type": "string", "enum": [{"title": 1}]}}});
        let wordy = of(wordy);
        assert_eq!(wordy.schema, short);
        assert!(wordy.notes[0].ends_with("is sent without descriptions"));
        let huge = of(json!({"type": "object", "properties": {"a": {"enum": [words]}}}));
        assert_eq!(huge.schema, empty);
        assert!(huge.notes[0].ends_with("is not sent"));
    }

    #[test]
    fn references_are_replaced_by_their_targets() {
        let schema = json!({
            "type": "object", "$schema": "x", "$id": "y",
            "properties": {
                "who": { "$ref": "#/$defs/Person", "description": "Who" },
                "again": { "$ref": "#/properties/who" },
                "lost": { "$ref": "#/$defs/Nobody", "description": "Lost" },
                "far": { "$ref": "https://example.com/far.json" },
                "odd": { "$ref": 7 },
                "id": { "type": "string" },
            },
            "$defs": { "Person": { "type": "object", "properties": { "name": { "$ref": "#/$defs/Name" } } }, "Name": { "type": "string", "minLength": 1 } },
        });
        let person = |about: &str| json!({ "type": "object", "description": about, "properties": { "name": { "type": "string", "minLength": 1 } } });
        let expected = json!({
            "type": "object",
            "properties": {
                "who": person("Who"), "again": person("Who"), "lost": { "description": "Lost" }, "far": {}, "odd": {},
                "id": { "type": "string" },
            },
        });
        assert_eq!(shown(schema), expected);
    }

    #[test]
    fn recursive_and_exploding_references_end() {
        let tree = json!({
            "properties": { "tree": { "$ref": "#/$defs/Node" }, "self": { "$ref": "#" } },
            "$defs": { "Node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } } },
        });
        let node = json!({ "type": "object", "properties": { "next": { "type": "object" } } });
        let expected = json!({ "type": "object", "properties": {
            "tree": node, "self": { "properties": { "tree": node, "self": {} } },
        } });
        assert_eq!(shown(tree), expected);
        // Ten schemas, each of which refers to ten of the next.
        let kind = |next: usize| {
            let reference = json!({ "$ref": format!("#/$defs/k{next}") });
            let properties = (0..10).map(|at| (format!("p{at}"), reference.clone()));
            json!({ "type": "object", "properties": properties.collect::<Map<_, _>>() })
        };
        let kinds: Map<String, Value> =
            (0..10).map(|at| (format!("k{at}"), kind(at + 1))).collect();
        let schema = json!({ "properties": { "first": { "$ref": "#/$defs/k0" } }, "$defs": kinds });
        let converted = of(schema);
        assert_eq!(converted.notes, Vec::<String>::new());
        let first = &converted.schema["properties"]["first"];
        assert_eq!(first["properties"]["p9"]["type"], "object");
    }

    #[test]
    fn keywords_that_providers_reject_are_repaired_and_data_is_not() {
        for (property, expected) in [
            (
                json!({ "type": "array" }),
                json!({ "type": "array", "items": {} }),
            ),
            (
                json!({ "anyOf": [{ "type": ["array", "null"] }, { "type": "string" }] }),
                json!({ "anyOf": [{ "type": ["array", "null"], "items": {} }, { "type": "string" }] }),
            ),
            (
                json!({ "type": "array", "items": [{ "type": "string" }, { "type": "number" }] }),
                json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "number" }] } }),
            ),
            (
                json!({ "required": true, "exclusiveMinimum": true, "minimum": 1 }),
                json!({ "minimum": 1 }),
            ),
            (
                json!({ "enum": [{ "$ref": "#" }], "default": { "type": "array" } }),
                json!({ "enum": [{ "$ref": "#" }], "default": { "type": "array" } }),
            ),
        ] {
            let schema = json!({ "type": "object", "properties": { "a": property } });
            let expected = json!({ "type": "object", "properties": { "a": expected } });
            assert_eq!(shown(schema), expected);
        }
    }

    #[test]
    fn choices_at_the_outermost_level_become_one_list_of_properties() {
        let (a, b) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        for (schema, expected) in [
            // As in servers of a code index and of an image model.
            (
                json!({ "type": "object", "properties": { "p": a, "x": a, "y": a }, "required": ["p"], "anyOf": [{ "required": ["x"] }, { "required": ["y"] }] }),
                json!({ "type": "object", "properties": { "p": a, "x": a, "y": a }, "required": ["p"] }),
            ),
            // As in Notion's server: only forms.
            (
                json!({ "type": "object", "anyOf": [
                    { "type": "object", "properties": { "id": a, "text": a }, "required": ["id", "text"] },
                    { "type": "object", "properties": { "id": a, "url": a }, "required": ["id", "url"] },
                ] }),
                json!({ "type": "object", "properties": { "id": a, "text": a, "url": a } }),
            ),
            (
                json!({ "allOf": [{ "properties": { "a": a }, "required": ["a"] }, { "properties": { "b": b }, "required": ["b"] }] }),
                json!({ "type": "object", "properties": { "a": a, "b": b }, "required": ["a", "b"] }),
            ),
            (
                json!({ "properties": { "a": a }, "if": { "properties": { "a": { "const": "x" } } }, "then": { "properties": { "b": b }, "required": ["b"] }, "else": { "required": ["a"] }, "not": {}, "enum": [1] }),
                json!({ "type": "object", "properties": { "a": a, "b": b } }),
            ),
            (
                json!({ "properties": [], "oneOf": "x" }),
                json!({ "type": "object", "properties": {} }),
            ),
            // Choices within a property are allowed.
            (
                json!({ "properties": { "a": { "anyOf": [a, b] } } }),
                json!({ "type": "object", "properties": { "a": { "anyOf": [a, b] } } }),
            ),
        ] {
            assert_eq!(shown(schema), expected);
        }
    }

    #[test]
    fn properties_are_left_out_if_a_provider_would_reject_their_names() {
        let long = "x".repeat(70);
        let converted = of(json!({
            "properties": { "a.b": {}, "Start<": {}, "Start_": {}, "日本": {}, "": {}, &long: {} },
            "required": ["Start<", "a.b"],
        }));
        let expected = json!({ "type": "object", "properties": { "a.b": {}, "Start_": {} }, "required": ["a.b"] });
        assert_eq!(converted.schema, expected);
        assert_eq!(converted.notes.len(), 4);
        assert_eq!(
            converted.notes[0],
            "names an argument `Start<`, which providers reject, and is sent without it"
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
        fn any_schema_becomes_one_that_providers_accept(schema in anything()) {
            let Value::Object(given) = json!({ "properties": schema, "$defs": { "a": schema }, "anyOf": [schema] }) else {
                unreachable!()
            };
            let shown = convert(&given);
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
            let again = convert(&serde_json::from_str(&text).unwrap());
            prop_assert_eq!(again.schema.to_string(), text);
        }
    }
}
