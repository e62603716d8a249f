//! [`Expected`]: the type that a JSON schema requires of a value.
//!
//! This is not a validator. A schema that allows several types, or that has another form than the
//! usual ones, expects nothing: the tool itself decides.

use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr};

/// Maximum length of a chain of references and choices.
const MAX_STEPS: usize = 16;
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

/// The only type that a schema allows, apart from `null`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) kind: Kind,
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
    /// `null`. Returns `None` if several types are allowed, or if the schema does not say.
    pub(super) fn of(root: &'a Value, schema: &'a Value) -> Option<Self> {
        let mut nullable = false;
        let mut next = schema;
        for _ in 0..MAX_STEPS {
            let schema = next.as_object()?;
            nullable |= schema.get("nullable") == Some(&Value::Bool(true));
            let found = match schema.get("type") {
                Some(types) => Some(only_kind(types)?),
                None => schema
                    .contains_key("properties")
                    .then_some((Kind::Object, false)),
            };
            if let Some((kind, takes_null)) = found {
                return Some(Self {
                    kind,
                    nullable: nullable || takes_null,
                    schema,
                });
            }
            next = if let Some(reference) = schema.get("$ref") {
                root.pointer(reference.as_str()?.strip_prefix('#')?)?
            } else {
                let mut keys = ["anyOf", "oneOf", "allOf"].iter();
                let branches = keys.find_map(|key| schema.get(*key))?.as_array()?;
                let is_null = |branch: &&Value| branch.get("type") == Some(&Value::from("null"));
                nullable |= branches.iter().any(|branch| is_null(&branch));
                only(branches.iter().filter(|branch| !is_null(branch)))?
            };
        }
        None
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

/// Returns the wanted types in words if a value has none of them. `None` if it fits, or if the schema does not say.
pub(super) fn missed(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(expected) = Expected::of(root, schema) {
        let fits = expected.kind.matches(value) || (expected.nullable && value.is_null());
        return (!fits).then(|| expected.kind.words());
    }
    let names = schema.get("type")?.as_array()?;
    let names = names.iter().filter_map(Value::as_str);
    let (nulls, names): (Vec<&str>, Vec<&str>) = names.partition(|name| *name == "null");
    let kinds: Option<Vec<Kind>> = names.into_iter().map(|name| name.parse().ok()).collect();
    let kinds = kinds.filter(|kinds| !kinds.is_empty())?;
    let fits =
        kinds.iter().any(|kind| kind.matches(value)) || (!nulls.is_empty() && value.is_null());
    let wanted = kinds.iter().map(|kind| kind.words());
    (!fits).then(|| wanted.collect::<Vec<_>>().join(" or "))
}

/// Returns the only type besides `null`, and whether `null` is allowed.
fn only_kind(types: &Value) -> Option<(Kind, bool)> {
    let names = match types {
        Value::Array(names) => names.as_slice(),
        name => std::slice::from_ref(name),
    };
    let is_null = |name: &&Value| name.as_str() == Some("null");
    let kind = only(names.iter().filter(|name| !is_null(name)))?;
    let null = names.iter().any(|name| is_null(&name));
    Some((kind.as_str()?.parse().ok()?, null))
}

/// Returns the only item of an iterator.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}
