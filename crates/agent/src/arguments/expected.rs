//! [`Expected`]: the types that a JSON schema allows for a value.
//!
//! This is not a validator. A schema that has another form than the usual ones expects nothing: the tool
//! itself decides.

use serde_json::{Map, Value};

/// Maximum length of a chain of references and choices.
const MAX_STEPS: usize = 16;
/// The type that a schema may allow beside another.
const NULL: &str = "null";

/// The types that a schema allows.
pub(super) struct Expected<'a> {
    /// The names of the types, `null` included.
    types: Vec<&'a str>,
    schema: &'a Map<String, Value>,
}

impl<'a> Expected<'a> {
    /// Reads a schema. Follows references within `root`, and the only branch of a choice that is not
    /// `null`. Returns `None` if the schema does not say.
    pub(super) fn of(root: &'a Value, schema: &'a Value) -> Option<Self> {
        let mut is_nullable = false;
        let mut next = schema;
        for _ in 0..MAX_STEPS {
            let schema = next.as_object()?;
            is_nullable |= schema.get("nullable") == Some(&Value::Bool(true));
            if let Some(mut types) = type_names(schema) {
                types.extend(is_nullable.then_some(NULL));
                return Some(Self { types, schema });
            }
            next = if let Some(reference) = schema.get("$ref") {
                root.pointer(reference.as_str()?.strip_prefix('#')?)?
            } else {
                let mut keys = ["anyOf", "oneOf", "allOf"].iter();
                let branches = keys.find_map(|key| schema.get(*key))?.as_array()?;
                let is_null = |branch: &&Value| branch.get("type") == Some(&Value::from(NULL));
                is_nullable |= branches.iter().any(|branch| is_null(&branch));
                only(branches.iter().filter(|branch| !is_null(branch)))?
            };
        }
        None
    }

    /// Reads the schema of a tool's arguments. Returns `None` if it does not want an object.
    pub(super) fn object(schema: &'a Value) -> Option<Self> {
        Self::of(schema, schema).filter(|expected| expected.kind() == Some("object"))
    }

    /// Returns the type, if the schema allows only one beside `null`.
    pub(super) fn kind(&self) -> Option<&'a str> {
        only(self.values())
    }

    /// Checks whether a value has one of the types.
    pub(super) fn allows(&self, value: &Value) -> bool {
        self.values().next().is_none() || self.types.iter().any(|name| has_type(value, name))
    }

    /// Returns the wanted types in words.
    pub(super) fn wanted(&self) -> String {
        self.values().collect::<Vec<_>>().join(" or ")
    }

    /// Returns the schema of a field.
    pub(super) fn field(&self, name: &str) -> Option<&'a Value> {
        let named = self.schema.get("properties").and_then(|all| all.get(name));
        named.or_else(|| self.schema.get("additionalProperties"))
    }

    /// Returns the schema of the items of a list.
    pub(super) fn item(&self) -> Option<&'a Value> {
        self.schema.get("items")
    }

    /// Returns the names of the required fields.
    pub(super) fn required(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let names = self.schema.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str)
    }

    fn values(&self) -> impl Iterator<Item = &'a str> {
        self.types.iter().copied().filter(|name| *name != NULL)
    }
}

/// Checks whether a value has a type. An unknown type includes all values.
pub(super) fn has_type(value: &Value, name: &str) -> bool {
    match name {
        NULL => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_number() && !value.is_f64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Returns the names of the types in a schema, if it has any.
fn type_names(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type") {
        Some(Value::Array(names)) => Some(names.iter().filter_map(Value::as_str).collect()),
        Some(name) => Some(vec![name.as_str()?]),
        None => schema.contains_key("properties").then(|| vec!["object"]),
    }
}

/// Returns the only item of an iterator.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}
