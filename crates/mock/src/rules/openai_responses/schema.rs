//! JSON schemas that OpenAI refuses: of a tool's input, which must be an object, and in strict mode. Only
//! schemas are judged, not values.

use serde_json::{Map, Value};

/// The maximum depth to which a schema is examined. OpenAI refuses strict schemas with more than ten
/// levels.
const MAX_DEPTH: usize = 64;

/// Keys that a strict schema must not have.
const NOT_PERMITTED: [&str; 13] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "uniqueItems",
    "minLength",
    "maxLength",
    "prefixItems",
];

/// Keys whose values are schemas, lists of schemas, or schemas by name.
const INNER: [&str; 5] = ["properties", "$defs", "definitions", "anyOf", "items"];

/// Returns OpenAI's error for a schema that no tool may have. `None` for a valid one.
pub(super) fn unfit_for_tool(schema: &Value) -> Option<String> {
    let kind = match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {
            let properties = schema.get("properties").is_some_and(Value::is_object);
            let words = "In context=(), object schema missing properties.";
            return (!properties).then(|| words.to_owned());
        }
        Some(Value::String(kind)) => kind.as_str(),
        _ => "None",
    };
    Some(format!(
        "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    ))
}

/// Returns OpenAI's error for a schema that does not allow strict mode. `None` for a valid one.
pub(super) fn unfit_for_strict(schema: &Value) -> Option<String> {
    unfit(schema, &[], MAX_DEPTH)
}

fn unfit(schema: &Value, context: &[&str], depth: usize) -> Option<String> {
    let object = schema.as_object()?;
    let fault = match depth {
        0 => Some("it is nested too deeply.".to_owned()),
        _ => fault_of(object),
    };
    if let Some(fault) = fault {
        return Some(format!("In context={}, {fault}", tuple(context)));
    }
    INNER.into_iter().find_map(|key| {
        let at = |path: &[&str], inner| unfit(inner, &[context, path].concat(), depth - 1);
        match object.get(key)? {
            Value::Object(named) if key != "items" => {
                let mut named = named.iter();
                named.find_map(|(name, inner)| at(&[key, name.as_str()], inner))
            }
            Value::Array(list) => list.iter().find_map(|inner| at(&[key], inner)),
            one => at(&[key], one),
        }
    })
}

/// Returns the fault of a schema without the schemas in it.
fn fault_of(object: &Map<String, Value>) -> Option<String> {
    if let Some(key) = NOT_PERMITTED.iter().find(|key| object.contains_key(**key)) {
        return Some(format!("'{key}' is not permitted."));
    }
    let properties = object.get("properties").and_then(Value::as_object);
    let is_object = match object.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => properties.is_some(),
    };
    if !is_object {
        return None;
    }
    if object.get("additionalProperties") != Some(&Value::Bool(false)) {
        let words = "'additionalProperties' is required to be supplied and to be false.";
        return Some(words.to_owned());
    }
    let required = object.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|list| list.iter().any(|one| one == name));
    let mut names = properties.into_iter().flat_map(Map::keys);
    let missing = names.find(|name| !is_required(name))?;
    Some(format!(
        "'required' is required to be supplied and to be an array including every key in \
         properties. Missing '{missing}'."
    ))
}

/// Returns a path in OpenAI's notation.
fn tuple(context: &[&str]) -> String {
    match context {
        [] => "()".to_owned(),
        [one] => format!("('{one}',)"),
        many => format!("('{}')", many.join("', '")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_that_strict_mode_refuses_are_named() {
        let fits = json!({"type": "object", "additionalProperties": false, "required": ["a"],
            "properties": {"a": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(unfit_for_strict(&fits), None);
        for (schema, words) in [
            (
                json!({"type": "object", "properties": {}}),
                "In context=(), 'additionalP",
            ),
            (
                json!({"type": "object", "additionalProperties": false,
                    "properties": {"a": {}}, "required": []}),
                "Missing 'a'.",
            ),
            (
                json!({"type": "object", "additionalProperties": false, "required": ["a"],
                    "properties": {"a": {"anyOf": [{"type": ["object", "null"]}]}}}),
                "In context=('properties', 'a', 'anyOf'), 'additionalP",
            ),
            (
                json!({"type": "string", "minLength": 1}),
                "'minLength' is not permitted.",
            ),
        ] {
            let reason = unfit_for_strict(&schema).unwrap();
            assert!(reason.contains(words), "{reason}");
        }
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "items": deep });
        }
        assert!(unfit_for_strict(&deep).is_some());
    }
}
