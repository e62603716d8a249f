//! [`Expected`]: the types that a JSON schema allows for a value.
//!
//! This is not a validator. A schema that has another form than the usual ones expects nothing: the tool
//! itself decides.

use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr};

/// Maximum length of a chain of references and choices.
const MAX_STEPS: usize = 16;
/// The type that a schema may allow beside another.
const NULL: &str = "null";

/// A type of JSON schema, apart from `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Kind {
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// The types that a schema allows.
#[derive(Debug, Clone)]
pub(super) struct Expected<'a> {
    /// The types apart from `null`.
    kinds: Vec<Kind>,
    /// Whether `null` is allowed as well.
    pub(super) nullable: bool,
    schema: &'a Map<String, Value>,
}

impl Kind {
    /// Returns the type with its article.
    fn words(self) -> String {
        let name: &str = self.into();
        let article = if name.starts_with(['a', 'i', 'o']) {
            "an"
        } else {
            "a"
        };
        format!("{article} {name}")
    }

    /// Checks whether a value has this type.
    pub(super) fn matches(self, value: &Value) -> bool {
        match self {
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.is_number() && !value.is_f64(),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

impl<'a> Expected<'a> {
    /// Reads a schema. Follows references within `root`, and the only branch of a choice that is not
    /// `null`. Returns `None` if the schema does not say.
    pub(super) fn of(root: &'a Value, schema: &'a Value) -> Option<Self> {
        let mut nullable = false;
        let mut next = schema;
        for _ in 0..MAX_STEPS {
            let schema = next.as_object()?;
            nullable |= schema.get("nullable") == Some(&Value::Bool(true));
            if let Some(mut names) = type_names(schema) {
                nullable |= names.contains(&NULL);
                names.retain(|name| *name != NULL);
                let kinds = names.into_iter().map(|name| name.parse().ok());
                return Some(Self {
                    kinds: kinds.collect::<Option<_>>()?,
                    nullable,
                    schema,
                });
            }
            next = if let Some(reference) = schema.get("$ref") {
                root.pointer(reference.as_str()?.strip_prefix('#')?)?
            } else {
                let mut keys = ["anyOf", "oneOf", "allOf"].iter();
                let branches = keys.find_map(|key| schema.get(*key))?.as_array()?;
                let is_null = |branch: &&Value| branch.get("type") == Some(&Value::from(NULL));
                nullable |= branches.iter().any(|branch| is_null(&branch));
                only(branches.iter().filter(|branch| !is_null(branch)))?
            };
        }
        None
    }

    /// Reads the schema of a tool's arguments. Returns `None` if it does not want an object.
    pub(super) fn object(schema: &'a Value) -> Option<Self> {
        Self::of(schema, schema).filter(|expected| expected.kind() == Some(Kind::Object))
    }

    /// Returns the type, if the schema allows only one.
    pub(super) fn kind(&self) -> Option<Kind> {
        only(self.kinds.iter().copied())
    }

    /// Returns the wanted types in words if a value has none of them.
    pub(super) fn missed(&self, value: &Value) -> Option<String> {
        let is_null = self.nullable && value.is_null();
        if is_null || self.kinds.is_empty() || self.kinds.iter().any(|kind| kind.matches(value)) {
            return None;
        }
        let wanted: Vec<String> = self.kinds.iter().map(|kind| kind.words()).collect();
        Some(wanted.join(" or "))
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
