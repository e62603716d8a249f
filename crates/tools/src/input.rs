//! Deserializes the arguments that models write, and produces short schemas for them.
//!
//! Values of the wrong type are accepted if their meaning is certain (`"10"` for 10).

use plimsoll_core::schema_of;
use schemars::JsonSchema;
use serde::de::Error;
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

/// Reads an optional integer; `10.0` and `"10"` are accepted as 10.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let read = |value: Value| match &value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            // Every integer below 2^53 is exact as a float.
            ((0.0..9e15).contains(&float) && float.fract() == 0.0).then_some(float as u64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let fault = || D::Error::custom("a whole number of 0 or more is expected");
    value
        .filter(|value| !value.is_null())
        .map(|value| read(value).ok_or_else(fault))
        .transpose()
}

/// Reads an optional boolean; `"true"` is accepted as true.
pub(crate) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(Value::String(text)) if text == "true" => Ok(true),
        Some(Value::String(text)) if text == "false" => Ok(false),
        Some(_) => Err(D::Error::custom("true or false is expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct SampleInput {
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "u64")]
        n: Option<u64>,
        #[serde(default, deserialize_with = "flag")]
        all: bool,
    }

    #[test]
    fn plain_meanings_are_understood_and_no_others() {
        for (json, n) in [
            ("{}", Some(None)),
            (r#"{"n":null,"all":null}"#, Some(None)),
            (r#"{"n":10}"#, Some(Some(10))),
            (r#"{"n":10.0}"#, Some(Some(10))),
            (r#"{"n":" 10 "}"#, Some(Some(10))),
            (r#"{"n":1.5}"#, None),
            (r#"{"n":-1}"#, None),
            (r#"{"n":1e300}"#, None),
            (r#"{"n":"ten"}"#, None),
            (r#"{"n":[1]}"#, None),
        ] {
            let read = serde_json::from_str::<SampleInput>(json);
            assert_eq!(read.ok().map(|input| input.n), n, "{json}");
        }
        for (json, all) in [
            (r#"{"all":true}"#, Some(true)),
            (r#"{"all":"true"}"#, Some(true)),
            (r#"{"all":"false"}"#, Some(false)),
            (r#"{"all":1}"#, None),
        ] {
            let read = serde_json::from_str::<SampleInput>(json);
            assert_eq!(read.ok().map(|input| input.all), all, "{json}");
        }
    }

    #[test]
    fn a_schema_says_what_a_model_needs() {
        assert_eq!(
            schema::<SampleInput>().to_string(),
            r#"{"type":"object","properties":{"n":{"type":"integer"},"all":{"type":"boolean"}}}"#
        );
    }
}
