//! [`fit`]: converts the arguments of a tool call to the types of the tool's schema.
//!
//! Values of the wrong type are converted if that loses nothing. [`misfits`] names what is still missing or of
//! another type. Everything else is validated by the tool itself.

mod expected;

use serde_json::{Map, Number, Value};

use crate::notice::shortened;
use expected::{Expected, has_type};

/// The error of arguments that are no JSON object.
const NO_OBJECT: &str = "it is valid JSON, but no object";
/// Integers up to here are represented exactly as floating point numbers.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Maximum nesting of converted values. Deeper ones are left to the tool.
const MAX_DEPTH: usize = 64;
/// Maximum length of a value that a fault shows, in characters.
const SHOWN: usize = 60;

/// Parses the arguments that a model wrote.
///
/// An empty text is an empty object, since some models send nothing for a tool without parameters. A
/// string that contains an object is parsed as that object.
///
/// # Errors
/// If the text is not a JSON object. The error states the reason.
pub fn read_arguments(written: &str) -> Result<Map<String, Value>, String> {
    if written.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(written).map_err(|error| error.to_string())? {
        Value::Object(object) => Ok(object),
        Value::String(inner) => serde_json::from_str(&inner).map_err(|_| NO_OBJECT.to_owned()),
        _ => Err(NO_OBJECT.to_owned()),
    }
}

/// Returns the faults of arguments by the `required` names and the types of their tool's JSON schema, as phrases such
/// as ``"`n` is the string \"sixty\", in place of integer"``. Values within the arguments are not checked.
pub(crate) fn misfits(schema: &Value, arguments: &Map<String, Value>) -> Vec<String> {
    let Some(expected) = Expected::object(schema) else {
        return Vec::new();
    };
    let missing = expected.required();
    let missing = missing.filter(|name| !arguments.contains_key(*name));
    let missing = missing.map(|name| format!("`{name}` is missing"));
    let others = arguments.iter().filter_map(|(name, value)| {
        let expected = Expected::of(schema, expected.field(name)?)?;
        let (is, wanted) = (described(value), expected.wanted());
        let fault = format!("`{name}` is {is}, in place of {wanted}");
        (!expected.allows(value)).then_some(fault)
    });
    missing.chain(others).collect()
}

/// Returns a value for a fault, shortened.
fn described(value: &Value) -> String {
    let shown = shortened(&value.to_string(), SHOWN);
    let kind = match value {
        Value::String(_) => "the string ",
        Value::Array(_) => "the list ",
        Value::Object(_) => "the object ",
        Value::Null | Value::Bool(_) | Value::Number(_) => "",
    };
    format!("{kind}{shown}")
}

/// Converts arguments to the types of their tool's JSON schema. If the schema is not clear, the tool
/// decides.
///
/// These are converted, at any depth:
///
/// - a number, `true` or `false` that was written as a string, and an integer in place of a string
/// - an object or a list that was written as a string of JSON
/// - a single value in place of a list
/// - `null` for an optional field
pub fn fit(schema: &Value, arguments: &mut Map<String, Value>) {
    if let Some(expected) = Expected::object(schema) {
        fields(schema, &expected, arguments, 0);
    }
}

/// Converts a value to the type that its schema expects. Returns `false` if it has another type.
fn convert(root: &Value, schema: &Value, value: &mut Value, depth: usize) -> bool {
    let expected = Expected::of(root, schema).filter(|_| depth < MAX_DEPTH);
    let Some((expected, kind)) = expected.and_then(|it| it.kind().map(|kind| (it, kind))) else {
        return true;
    };
    if !expected.allows(value) {
        let Some(new) = converted(root, kind, expected.item(), value, depth) else {
            return false;
        };
        *value = new;
    }
    match value {
        Value::Object(object) => fields(root, &expected, object, depth + 1),
        Value::Array(items) => {
            if let Some(schema) = expected.item() {
                for item in items {
                    convert(root, schema, item, depth + 1);
                }
            }
        }
        _ => {}
    }
    true
}

fn fields(root: &Value, expected: &Expected<'_>, object: &mut Map<String, Value>, depth: usize) {
    object.retain(|name, value| {
        let field = expected.field(name);
        let field = field.and_then(|schema| Expected::of(root, schema));
        let takes_null = field.is_none_or(|field| field.allows(&Value::Null));
        let is_required = expected.required().any(|required| required == name);
        !value.is_null() || takes_null || is_required
    });
    for (name, value) in object.iter_mut() {
        if let Some(schema) = expected.field(name) {
            convert(root, schema, value, depth);
        }
    }
}

/// Returns the value as the expected type, if it means one value of that type.
fn converted(
    root: &Value,
    kind: &str,
    item: Option<&Value>,
    value: &Value,
    depth: usize,
) -> Option<Value> {
    match (kind, value) {
        ("array" | "object", Value::String(text)) if text.trim_start().starts_with(['{', '[']) => {
            let inner: Value = serde_json::from_str(text).ok()?;
            has_type(&inner, kind).then_some(inner)
        }
        ("array", Value::Null) => None,
        ("array", single) => {
            let mut single = single.clone();
            let is_item = item.is_none_or(|item| convert(root, item, &mut single, depth + 1));
            is_item.then(|| Value::Array(vec![single]))
        }
        ("integer", Value::Number(number)) => whole(number).map(Value::Number),
        ("integer", Value::String(text)) => whole(&number(text)?).map(Value::Number),
        ("number", Value::String(text)) => number(text).map(Value::Number),
        ("boolean", Value::String(text)) => {
            text.trim().to_lowercase().parse().ok().map(Value::Bool)
        }
        // A fraction may have been written with more digits than its number has.
        ("string", Value::Number(number)) if !number.is_f64() => {
            Some(Value::String(number.to_string()))
        }
        _ => None,
    }
}

/// Parses a string that contains only a number. Returns `None` if it is not a JSON number, or if digits
/// would be lost.
fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    let number: Number = serde_json::from_str(text).ok()?;
    let is_whole = text.chars().all(|c| c.is_ascii_digit() || c == '-');
    (!(number.is_f64() && is_whole)).then_some(number)
}

/// Converts a number to an integer. Returns `None` if that would lose precision.
#[allow(clippy::cast_possible_truncation)]
fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() < EXACT).then(|| Number::from(float as i64))
}

#[cfg(test)]
mod tests;
