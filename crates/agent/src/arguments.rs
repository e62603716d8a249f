//! [`fit`]: the arguments of a tool call as its tool wants them. What a model wrote as the wrong type
//! is put right where that loses nothing; what cannot be is named. Not the last word: that has the
//! tool, which reads them.

mod check;
mod coerce;
mod schema;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use check::ArgumentFault;

/// Places of a schema that are compared with the arguments of one call, at most: a recursive schema
/// or an endless list is left to the tool.
pub const MAX_SCHEMA_VISITS: usize = 20_000;
/// Changes that an event tells of, at most; further ones are made and not told.
pub const MAX_COERCIONS: usize = 32;

/// What an event or an error shows of a value, in characters.
const SHOWN: usize = 60;

/// One argument that was put right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coercion {
    /// Where it stands, as `a.b[0]`; empty for the arguments as a whole.
    pub path: String,
    /// What the model wrote, as JSON, shortened; empty where the field is gone.
    pub from: String,
    /// What the tool gets, as JSON, shortened; empty where the field is gone.
    pub to: String,
}

/// What a model wrote, read as an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    object: Map<String, Value>,
    /// The text of that object, in which numbers stand as the model wrote them.
    text: String,
    changes: Vec<Coercion>,
}

/// Arguments as their tool wants them, as far as they could be put right.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The arguments.
    pub object: Map<String, Value>,
    /// What was changed; empty where nothing was.
    pub changes: Vec<Coercion>,
    /// What does not fit all the same.
    pub faults: Vec<ArgumentFault>,
}

impl Arguments {
    /// Reads what a model wrote. Nothing at all is an empty object, since some models send nothing
    /// for a tool without parameters; a string that holds an object is that object.
    ///
    /// # Errors
    /// Where it is no JSON object: why not.
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

    /// The arguments as they were written.
    #[must_use]
    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }
}

/// Puts arguments right by the JSON schema of their tool, and says what does not fit it. By a schema
/// that is no valid JSON schema nothing is changed and nothing is wrong.
///
/// These are put right, at any depth: a number or `true` and `false` written as a string, an object
/// or a list written as a string of JSON, a number where a string is wanted (as it was written, so
/// that `1.10` stays `1.10`), one value where a list of such is wanted, `null` for a field that may be
/// left out, and the case of a word out of a fixed list.
#[must_use]
pub fn fit(schema: &Value, arguments: Arguments) -> Fitted {
    let Arguments {
        object,
        text,
        changes,
    } = arguments;
    let as_written = |object, changes| Fitted {
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
        Value::Object(fitted) if visits.are_left() => Fitted {
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

/// A value as JSON, shortened.
fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
}

/// A path as `a.b[0]`.
fn written(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Item(at) => text.push_str(&format!("[{at}]")),
        }
    }
    text
}

#[cfg(test)]
mod tests;
