//! Removes references from a schema by replacing them with their targets.
//!
//! Gateways and local servers do not follow references or reject them (`$defs` that are sent elsewhere,
//! Bedrock's AgentCore, Gemini). Other parts that providers reject are repaired at the same time: lists
//! without `items`, and keywords of older drafts. Values are not validated.

use serde_json::{Map, Value, json};

/// Maximum nesting of replaced references. The smaller numbers are used if the schema becomes too
/// large.
pub(super) const DEPTHS: [usize; 4] = [8, 3, 1, 0];
/// Maximum number of schemas after replacement. References can double them at every step.
const MAX_SCHEMAS: usize = 5_000;
/// Maximum nesting of schemas; deeper ones are omitted. A request is parsed again as JSON, which may
/// have at most 128 levels, and each schema takes up to three of them.
const MAX_NESTING: usize = 32;
/// Keywords that are meaningless without references.
const GONE: [&str; 12] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$defs",
    "definitions",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$id",
    "$schema",
    "$vocabulary",
    "$comment",
];
/// Keywords with data instead of a schema as their value.
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "example"];
/// Keywords with a map from names to schemas as their value.
pub(super) const NAMES: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// A traversal of a schema.
struct Walk<'a> {
    root: &'a Value,
    /// The references that are being followed.
    trail: Vec<&'a str>,
    depth: usize,
    nesting: usize,
    /// The number of schemas that may still be added.
    left: usize,
}

/// Returns the schema without references, replaced up to this nesting. Only the type remains of a
/// reference that is nested deeper, is broken, or refers to itself.
pub(super) fn inlined(schema: &Map<String, Value>, depth: usize) -> Map<String, Value> {
    let root = Value::Object(schema.clone());
    let mut walk = Walk {
        root: &root,
        trail: Vec::new(),
        depth,
        nesting: 0,
        left: MAX_SCHEMAS,
    };
    match walk.schema(&root) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value) -> Value {
        let Value::Object(object) = schema else {
            return match schema {
                Value::Bool(all) => Value::Bool(*all),
                _ => json!({}),
            };
        };
        let Some(left) = self.left.checked_sub(1) else {
            return json!({});
        };
        if self.nesting >= MAX_NESTING {
            return json!({});
        }
        self.left = left;
        self.nesting += 1;
        let mut out = match object.get("$ref") {
            Some(reference) => self.follow(reference.as_str().unwrap_or("")),
            None => Map::new(),
        };
        for (key, value) in object {
            if let Some(value) = self.value(key, value) {
                out.insert(key.clone(), value);
            }
        }
        let is_list = match out.get("type") {
            Some(Value::String(kind)) => kind == "array",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            _ => false,
        };
        if is_list && !out.contains_key("items") {
            out.insert("items".to_owned(), json!({}));
        }
        self.nesting -= 1;
        Value::Object(out)
    }

    /// Returns the value of a keyword, if the keyword is kept.
    fn value(&mut self, key: &str, value: &'a Value) -> Option<Value> {
        if GONE.contains(&key) || (key == "id" && value.is_string()) {
            return None;
        }
        if DATA.contains(&key) {
            return Some(value.clone());
        }
        if NAMES.contains(&key) {
            let named = value.as_object()?.iter();
            let named = named.map(|(name, schema)| (name.clone(), self.schema(schema)));
            return Some(Value::Object(named.collect()));
        }
        match (key, value) {
            ("items", Value::Array(places)) => {
                let places = places.iter().map(|place| self.schema(place)).collect();
                Some(json!({ "anyOf": Value::Array(places) }))
            }
            ("required", Value::Array(names)) => {
                let names = names.iter().filter(|name| name.is_string());
                Some(Value::Array(names.cloned().collect()))
            }
            // The form of drafts 3 and 4.
            ("required" | "exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_))
            | ("required", _) => None,
            (_, Value::Object(_)) => Some(self.schema(value)),
            (_, Value::Array(all)) => Some(Value::Array(
                all.iter()
                    .map(|one| match one {
                        Value::Object(_) => self.schema(one),
                        other => other.clone(),
                    })
                    .collect(),
            )),
            (_, value) => Some(value.clone()),
        }
    }

    fn follow(&mut self, reference: &'a str) -> Map<String, Value> {
        let place = reference.strip_prefix('#');
        let target = place.and_then(|place| self.root.pointer(place));
        let Some(target) = target else {
            return Map::new();
        };
        if self.trail.len() >= self.depth || self.trail.contains(&reference) {
            return bare(target);
        }
        self.trail.push(reference);
        let schema = self.schema(target);
        self.trail.pop();
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }
}

/// Returns only the type of an omitted schema.
fn bare(schema: &Value) -> Map<String, Value> {
    let kind = schema.get("type").filter(|kind| kind.is_string());
    let kind = kind.map(|kind| ("type".to_owned(), kind.clone()));
    kind.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: Value, depth: usize) -> Value {
        let Value::Object(schema) = schema else {
            unreachable!()
        };
        Value::Object(inlined(&schema, depth))
    }

    #[test]
    fn references_become_what_they_lead_to() {
        let schema = json!({
            "type": "object", "$schema": "x", "$id": "y",
            "properties": {
                "who": { "$ref": "#/$defs/Person", "description": "Who" },
                "again": { "$ref": "#/properties/who" },
                "lost": { "$ref": "#/$defs/Nobody", "description": "Lost" },
                "far": { "$ref": "https://example.com/far.json" },
                "odd": { "$ref": 7 },
                "id": { "type": "string" }, "$ref": { "type": "string" },
            },
            "$defs": { "Person": { "type": "object", "properties": { "name": { "$ref": "#/$defs/Name" } } }, "Name": { "type": "string", "minLength": 1 } },
        });
        let person = |about: &str| json!({ "type": "object", "description": about, "properties": { "name": { "type": "string", "minLength": 1 } } });
        let told = json!({
            "type": "object",
            "properties": {
                "who": person("Who"), "again": person("Who"), "lost": { "description": "Lost" }, "far": {}, "odd": {},
                "id": { "type": "string" }, "$ref": { "type": "string" },
            },
        });
        assert_eq!(of(schema.clone(), 8), told);
        // Fewer references are replaced if a schema has to be smaller.
        let flat = of(schema.clone(), 1);
        assert_eq!(
            flat["properties"]["who"]["properties"]["name"],
            json!({ "type": "string" })
        );
        assert_eq!(
            of(schema, 0)["properties"]["who"],
            json!({ "type": "object", "description": "Who" })
        );
    }

    #[test]
    fn references_without_end_end() {
        let tree = json!({
            "properties": { "tree": { "$ref": "#/$defs/Node" }, "self": { "$ref": "#" } },
            "$defs": { "Node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } } } },
        });
        let told = json!({ "properties": {
            "tree": { "type": "object", "properties": { "next": { "type": "object" } } },
            "self": { "properties": { "tree": { "type": "object", "properties": { "next": { "type": "object" } } }, "self": {} } },
        } });
        assert_eq!(of(tree, 8), told);
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "items": deep });
        }
        let read = serde_json::from_str::<Value>(&of(deep, 8).to_string());
        assert!(read.is_ok());
        // Each refers three times to the next.
        let mut defs = Map::new();
        for at in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
            defs.insert(format!("d{at}"), json!({ "anyOf": [next, next, next] }));
        }
        let doubling = json!({ "properties": { "x": { "$ref": "#/$defs/d0" } }, "$defs": defs });
        let text = of(doubling, 40).to_string();
        assert!(
            text.len() < 200_000 && !text.contains("$ref"),
            "{}",
            text.len()
        );
    }

    #[test]
    fn what_no_provider_takes_is_mended_and_data_is_left_alone() {
        for (schema, told) in [
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
                json!({ "properties": { "a": { "required": true, "exclusiveMinimum": true, "minimum": 1 } }, "required": ["a", 7] }),
                json!({ "properties": { "a": { "minimum": 1 } }, "required": ["a"] }),
            ),
            (
                json!({ "properties": { "a": "string", "b": true }, "id": "urn:x" }),
                json!({ "properties": { "a": {}, "b": true } }),
            ),
            (
                json!({ "enum": [{ "$ref": "#" }], "default": { "type": "array" } }),
                json!({ "enum": [{ "$ref": "#" }], "default": { "type": "array" } }),
            ),
        ] {
            assert_eq!(of(schema.clone(), 8), told, "{schema}");
        }
    }
}
