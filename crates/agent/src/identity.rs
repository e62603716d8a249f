//! What makes two tool calls the same, and two results. As hashes; they live in this process only and
//! are in no log.

use std::hash::{DefaultHasher, Hash, Hasher};

use plimsoll_context::{Part, Source, ToolCall, ToolResult};
use serde_json::Value;

/// What a call is, whatever its id, the order of the keys and the blanks in its arguments. No
/// arguments at all are an empty object.
pub(crate) fn identity(call: &ToolCall) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.name.hash(&mut hasher);
    let written = match call.arguments.trim() {
        "" => "{}",
        written => written,
    };
    match serde_json::from_str::<Value>(written) {
        Ok(Value::String(inner)) => match serde_json::from_str::<Value>(&inner) {
            Ok(value @ Value::Object(_)) => canonical(&value, &mut hasher),
            _ => canonical(&Value::String(inner), &mut hasher),
        },
        Ok(value) => canonical(&value, &mut hasher),
        Err(_) => written.hash(&mut hasher),
    }
    hasher.finish()
}

/// What a result says.
pub(crate) fn outcome(result: &ToolResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    result.is_error.hash(&mut hasher);
    for part in &result.parts {
        match part {
            Part::Text { text } => (0, text).hash(&mut hasher),
            Part::Image(image) => (1, source(&image.source)).hash(&mut hasher),
            Part::File(file) => (2, source(&file.source)).hash(&mut hasher),
            Part::Thinking(thinking) => (3, &thinking.text).hash(&mut hasher),
            Part::ToolCall(call) => (4, identity(call)).hash(&mut hasher),
            Part::Opaque(opaque) => (5, &opaque.data).hash(&mut hasher),
        }
    }
    hasher.finish()
}

pub(crate) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn source(source: &Source) -> &str {
    match source {
        Source::Url { url } => url,
        Source::Data { base64, .. } => base64,
    }
}

/// Hashes a value, whatever the order of its keys. JSON of a model nests 128 deep at most: the parser
/// refuses more.
fn canonical(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0.hash(hasher),
        Value::Bool(bool) => (1, bool).hash(hasher),
        Value::Number(number) => match number.as_f64() {
            // 1.0 is 1.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                (2, format!("{float:.0}")).hash(hasher);
            }
            _ => (2, number.to_string()).hash(hasher),
        },
        Value::String(text) => (3, text).hash(hasher),
        Value::Array(items) => {
            (4, items.len()).hash(hasher);
            items.iter().for_each(|item| canonical(item, hasher));
        }
        Value::Object(object) => {
            (5, object.len()).hash(hasher);
            let mut entries: Vec<(&String, &Value)> = object.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in entries {
                key.hash(hasher);
                canonical(value, hasher);
            }
        }
    }
}
