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
    let mut context = Vec::new();
    unfit(schema, &mut context, MAX_DEPTH)
}

fn unfit(schema: &Value, context: &mut Vec<String>, depth: usize) -> Option<String> {
    let object = schema.as_object()?;
    if depth == 0 {
        return Some(format!(
            "In context={}, it is nested too deeply.",
            tuple(context)
        ));
    }
    if let Some(key) = NOT_PERMITTED.iter().find(|key| object.contains_key(**key)) {
        return Some(format!(
            "In context={}, '{key}' is not permitted.",
            tuple(context)
        ));
    }
    let no_properties = Map::new();
    let properties = object.get("properties").and_then(Value::as_object);
    let is_object = match object.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => properties.is_some(),
    };
    if is_object {
        if object.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Some(format!(
                "In context={}, 'additionalProperties' is required to be supplied and to be false.",
                tuple(context)
            ));
        }
        let required = object.get("required").and_then(Value::as_array);
        let required = required.map(Vec::as_slice).unwrap_or_default();
        let mut names = properties.unwrap_or(&no_properties).keys();
        if let Some(missing) = names.find(|name| !required.iter().any(|one| one == name.as_str())) {
            return Some(format!(
                "In context={}, 'required' is required to be supplied and to be an array \
                 including every key in properties. Missing '{missing}'.",
                tuple(context)
            ));
        }
    }
    for key in ["properties", "$defs", "definitions"] {
        for (name, inner) in object
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            context.push(key.to_owned());
            context.push(name.clone());
            let fault = unfit(inner, context, depth - 1);
            if fault.is_some() {
                return fault;
            }
            context.truncate(context.len().saturating_sub(2));
        }
    }
    for key in ["anyOf", "items"] {
        let inner = match object.get(key) {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for inner in inner {
            context.push(key.to_owned());
            let fault = unfit(inner, context, depth - 1);
            if fault.is_some() {
                return fault;
            }
            context.pop();
        }
    }
    None
}

/// Returns a path in OpenAI's notation.
fn tuple(context: &[String]) -> String {
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
