//! [`fit`]: converts the arguments of a tool call to the types of the tool's schema.
//!
//! Values of the wrong type are converted if that loses nothing. The tool itself validates its
//! arguments.

mod convert;
mod expected;

use convert::Conversion;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of conversions in an event. Further ones are made but not reported.
pub const MAX_COERCIONS: usize = 32;

/// Maximum length of a value in an event or an error, in characters.
const SHOWN: usize = 60;

/// The error of arguments that are no JSON object.
const NO_OBJECT: &str = "it is valid JSON, but no object";

/// One converted argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coercion {
    /// The path, as `a.b[0]`; empty for the arguments as a whole.
    pub path: String,
    /// The model's value as JSON, shortened; empty if the field was missing.
    pub from: String,
    /// The tool's value as JSON, shortened; empty if the field was removed.
    pub to: String,
}

/// The arguments that a model wrote, parsed as an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    object: Map<String, Value>,
    changes: Vec<Coercion>,
}

/// Arguments after conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertedArguments {
    /// The arguments.
    pub object: Map<String, Value>,
    /// The conversions.
    pub changes: Vec<Coercion>,
}

impl Arguments {
    /// Parses the arguments that a model wrote.
    ///
    /// An empty text is an empty object, since some models send nothing for a tool without parameters.
    /// A string that contains an object is parsed as that object.
    ///
    /// # Errors
    /// If the text is not a JSON object. The error states the reason.
    pub fn read(written: &str) -> Result<Self, String> {
        let as_written = |object| Self {
            object,
            changes: Vec::new(),
        };
        if written.trim().is_empty() {
            return Ok(as_written(Map::new()));
        }
        let value = serde_json::from_str(written).map_err(|error| error.to_string())?;
        match value {
            Value::Object(object) => Ok(as_written(object)),
            Value::String(inner) => {
                let object: Option<Map<String, Value>> = serde_json::from_str(&inner).ok();
                let object = object.ok_or(NO_OBJECT)?;
                let change = Coercion {
                    path: String::new(),
                    from: shown(&Value::String(inner)),
                    to: shown(&Value::Object(object.clone())),
                };
                Ok(Self {
                    object,
                    changes: vec![change],
                })
            }
            _ => Err(NO_OBJECT.to_owned()),
        }
    }

    /// Returns the arguments as the model wrote them.
    #[must_use]
    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }
}

/// Converts arguments to the types of their tool's JSON schema. What the schema does not say clearly is
/// left to the tool.
///
/// These are converted, at any depth:
///
/// - a number, `true` or `false` that was written as a string, and an integer in place of a string
/// - an object or a list that was written as a string of JSON
/// - a single value in place of a list
/// - `null` for an optional field
/// - the case of a word of a fixed list
#[must_use]
pub fn fit(schema: &Value, arguments: Arguments) -> ConvertedArguments {
    let Arguments {
        mut object,
        changes,
    } = arguments;
    let mut conversion = Conversion::new(schema, changes);
    conversion.arguments(&mut object);
    ConvertedArguments {
        object,
        changes: conversion.changes,
    }
}

/// Returns a value as JSON, shortened.
fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
