//! Produces short schemas for the arguments of tools.

use plimsoll_core::schema_of;
use schemars::JsonSchema;
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;

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
