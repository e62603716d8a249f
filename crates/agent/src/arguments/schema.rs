//! Reads the supported part of JSON schemas: validity, types and references.
//!
//! It is not a validator. Unsupported keywords are left to the tool.

use serde_json::{Map, Value};

use super::MAX_SCHEMA_VISITS;

/// Maximum nesting of a schema.
const MAX_DEPTH: usize = 64;
/// Maximum nesting of a comparison. Arguments have at most 128 levels, because the parser rejects more,
/// but a choice may refer to itself.
const MAX_NESTING: usize = 160;
/// Maximum length of a chain of references.
const MAX_REFERENCES: usize = 16;

/// A type of JSON schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// A schema, with the number of remaining visits.
pub(super) struct Visits<'a> {
    pub(super) root: &'a Value,
    left: usize,
    depth: usize,
}

impl Type {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    /// Returns the name of the type for error messages.
    pub(super) fn wanted(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "a list",
            Self::Object => "an object",
        }
    }

    pub(super) fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            (Self::Integer, Value::Number(number)) => {
                !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            _ => false,
        }
    }
}

impl<'a> Visits<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            root,
            left: MAX_SCHEMA_VISITS,
            depth: 0,
        }
    }

    /// Runs `inside` one level deeper. Stops all visits if the nesting is too deep.
    pub(super) fn nested<T: Default>(&mut self, inside: impl FnOnce(&mut Self) -> T) -> T {
        if self.depth >= MAX_NESTING {
            self.left = 0;
            return T::default();
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// Returns `true` if the limit of visits was not reached.
    pub(super) fn are_left(&self) -> bool {
        self.left > 0
    }

    /// Visits a schema and follows its references. Returns all schemas on the way, in order. The list
    /// is empty if the schema is not an object, or if no visits are left.
    pub(super) fn look(&mut self, schema: &'a Value) -> Vec<&'a Map<String, Value>> {
        let mut found = Vec::new();
        let mut next = Some(schema);
        for _ in 0..MAX_REFERENCES {
            self.left = self.left.saturating_sub(1);
            let Some(object) = next.and_then(Value::as_object).filter(|_| self.left > 0) else {
                break;
            };
            found.push(object);
            let reference = object.get("$ref").and_then(Value::as_str);
            let pointer = reference.and_then(|reference| reference.strip_prefix('#'));
            next = pointer.and_then(|pointer| self.root.pointer(pointer));
        }
        found
    }

    /// Checks whether a schema allows `null`.
    pub(super) fn takes_null(&mut self, schema: &'a Value) -> bool {
        self.nested(|visits| visits.takes_null_here(schema))
    }

    fn takes_null_here(&mut self, schema: &'a Value) -> bool {
        self.look(schema).into_iter().all(|schema| {
            let nullable = schema.get("nullable") == Some(&Value::Bool(true));
            let typed = types(schema).is_none_or(|types| types.contains(&Type::Null));
            let listed = list(schema, "enum").is_none_or(|words| words.contains(&Value::Null));
            let fixed = schema.get("const").is_none_or(Value::is_null);
            nullable
                || typed
                    && listed
                    && fixed
                    && ["anyOf", "oneOf"].into_iter().all(|key| {
                        let branches = list(schema, key);
                        branches.is_none_or(|any| any.iter().any(|one| self.takes_null(one)))
                    })
                    && list(schema, "allOf")
                        .is_none_or(|all| all.iter().all(|one| self.takes_null(one)))
        })
    }
}

/// Returns the types that a schema allows; `None` if it does not say.
pub(super) fn types(schema: &Map<String, Value>) -> Option<Vec<Type>> {
    match schema.get("type")? {
        Value::String(name) => Some(vec![Type::named(name)?]),
        Value::Array(names) => names
            .iter()
            .map(|name| Type::named(name.as_str()?))
            .collect(),
        _ => None,
    }
}

pub(super) fn list<'a>(schema: &'a Map<String, Value>, key: &str) -> Option<&'a Vec<Value>> {
    schema.get(key)?.as_array()
}

pub(super) fn is_required(schema: &Map<String, Value>, field: &str) -> bool {
    let required = list(schema, "required");
    required.is_some_and(|names| names.iter().any(|name| name == field))
}

/// Checks whether all supported keywords have the form that JSON Schema requires.
pub(super) fn is_valid(schema: &Value) -> bool {
    is_valid_at(schema, 0)
}

fn is_valid_at(schema: &Value, depth: usize) -> bool {
    let object = match schema {
        Value::Bool(_) => return true,
        Value::Object(object) if depth < MAX_DEPTH => object,
        _ => return false,
    };
    object.iter().all(|(key, value)| match key.as_str() {
        "type" => match value {
            Value::Array(names) => !names.is_empty() && types(object).is_some(),
            _ => types(object).is_some(),
        },
        "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => value
            .as_object()
            .is_some_and(|named| named.values().all(|one| is_valid_at(one, depth + 1))),
        "required" => value
            .as_array()
            .is_some_and(|names| names.iter().all(Value::is_string)),
        "enum" => value.is_array(),
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => value.as_array().is_some_and(|schemas| {
            !schemas.is_empty() && schemas.iter().all(|one| is_valid_at(one, depth + 1))
        }),
        // Older drafts list the schemas of the first items here.
        "items" => match value {
            Value::Array(schemas) => schemas.iter().all(|one| is_valid_at(one, depth + 1)),
            one => is_valid_at(one, depth + 1),
        },
        "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
            is_valid_at(value, depth + 1)
        }
        "$ref" => value.is_string(),
        _ => true,
    })
}

/// Returns the schema of an item of a list.
pub(super) fn item_schema(schema: &Map<String, Value>, at: usize) -> Option<&Value> {
    let items = schema.get("items");
    let first = list(schema, "prefixItems").or_else(|| items.and_then(Value::as_array));
    let placed = first.and_then(|schemas| schemas.get(at));
    placed.or_else(|| items.filter(|items| !items.is_array()))
}

/// Returns the schema of a field of an object.
pub(super) fn field_schema<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.and_then(|properties| properties.get(name));
    let patterns = schema.contains_key("patternProperties");
    let others = schema.get("additionalProperties").filter(|_| !patterns);
    named.or(others)
}
