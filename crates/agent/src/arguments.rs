//! [`fit`]: converts the arguments of a tool call to the types of the tool's schema.
//!
//! Values of the wrong type are converted if that loses nothing; the others are reported. The tool
//! itself still validates its arguments.

mod check;
mod coerce;
mod schema;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use check::ArgumentFault;

/// Maximum number of places of a schema that are compared with the arguments of one call. A recursive
/// schema or a very long list is left to the tool.
pub const MAX_SCHEMA_VISITS: usize = 20_000;
/// Maximum number of conversions in an event. Further ones are made but not reported.
pub const MAX_COERCIONS: usize = 32;

/// Maximum length of a value in an event or an error, in characters.
const SHOWN: usize = 60;

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
    /// The text of the object, with numbers as the model wrote them.
    text: String,
    changes: Vec<Coercion>,
}

/// Arguments after conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertedArguments {
    /// The arguments.
    pub object: Map<String, Value>,
    /// The conversions.
    pub changes: Vec<Coercion>,
    /// The errors that remain.
    pub faults: Vec<ArgumentFault>,
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
        let whole = |object, text: &str, changes| Self {
            object,
            text: text.to_owned(),
            changes,
        };
        if written.trim().is_empty() {
            return Ok(whole(Map::new(), "{}", Vec::new()));
        }
        match serde_json::from_str(written) {
            Ok(Value::Object(object)) => Ok(whole(object, written, Vec::new())),
            Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
                Ok(Value::Object(object)) => {
                    let change = Coercion {
                        path: String::new(),
                        from: shown(&Value::String(inner.clone())),
                        to: shown(&Value::Object(object.clone())),
                    };
                    Ok(whole(object, &inner, vec![change]))
                }
                _ => Err("it is valid JSON, but no object".to_owned()),
            },
            Ok(_) => Err("it is valid JSON, but no object".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the arguments as the model wrote them.
    #[must_use]
    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }
}

/// Converts arguments to the types of their tool's JSON schema, and reports the remaining errors. If
/// the schema is not a valid JSON schema, nothing is changed or reported.
///
/// These are converted, at any depth:
///
/// - a number, `true` or `false` that was written as a string
/// - an object or a list that was written as a string of JSON
/// - a number in place of a string (as it was written: `1.10` stays `1.10`)
/// - a single value in place of a list
/// - `null` for an optional field
/// - the case of a word of a fixed list
#[must_use]
pub fn fit(schema: &Value, arguments: Arguments) -> ConvertedArguments {
    let Arguments {
        object,
        text,
        changes,
    } = arguments;
    let as_written = |object, changes| ConvertedArguments {
        object,
        changes,
        faults: Vec::new(),
    };
    if !schema::is_valid(schema) {
        return as_written(object, changes);
    }
    let mut value = Value::Object(object.clone());
    let mut visits = schema::Visits::new(schema);
    let more = coerce::coerce(&mut visits, &text, &mut value);
    let faults = check::faults(&mut visits, &value);
    match value {
        Value::Object(fitted) if visits.are_left() => ConvertedArguments {
            object: fitted,
            changes: changes
                .into_iter()
                .chain(more)
                .take(MAX_COERCIONS)
                .collect(),
            faults,
        },
        _ => as_written(object, changes),
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

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Field(String),
    Item(usize),
}

/// Formats a path as `a.b[0]`.
fn written(path: &[PathStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            PathStep::Field(name) if text.is_empty() => text.push_str(name),
            PathStep::Field(name) => {
                text.push('.');
                text.push_str(name);
            }
            PathStep::Item(at) => text.push_str(&format!("[{at}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests;
