//! Produces short schemas for the arguments of tools.

use plimsoll_core::schema_of;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Schema keywords that a model does not need.
const NOISE: [&str; 5] = ["format", "minimum", "maximum", "default", "$schema"];

/// Returns the schema of an input without keywords that only a validator needs, since every request
/// contains the schema.
pub(crate) fn schema<I: JsonSchema>() -> Value {
    let mut schema = schema_of::<I>();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(|map| map.values_mut()) {
        if let Some(property) = property.as_object_mut() {
            property.retain(|key, _| !NOISE.contains(&key.as_str()));
        }
    }
    schema
}

/// Reads a number that may be written as a string, for fields with other names beside that of the
/// schema: the machine converts only arguments that the schema names.
pub(crate) fn number<'de, N, D>(deserializer: D) -> Result<Option<N>, D::Error>
where
    N: DeserializeOwned,
    D: Deserializer<'de>,
{
    let mut value = Value::deserialize(deserializer)?;
    if let Some(text) = value.as_str() {
        value = serde_json::from_str(text.trim()).map_err(D::Error::custom)?;
    }
    Option::deserialize(value).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct SampleInput {
        #[serde(default)]
        #[schemars(with = "u64")]
        n: Option<u64>,
        #[serde(default)]
        all: bool,
    }

    #[test]
    fn a_schema_says_what_a_model_needs() {
        assert_eq!(
            schema::<SampleInput>().to_string(),
            r#"{"type":"object","properties":{"n":{"type":"integer"},"all":{"type":"boolean"}}}"#
        );
    }
}
