//! Hashes that identify equal tool calls and equal results.
//!
//! The hashes are only valid within this process and are never logged.

use std::hash::{DefaultHasher, Hash, Hasher};

use plimsoll_context::{Part, Source, ToolCall, ToolResult};
use serde_json::Value;

/// Returns the hash of a call. The id, the order of keys and the whitespace of the arguments are
/// ignored. Missing arguments are equal to an empty object.
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

/// Returns the hash of a result's content.
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

/// Hashes a value independently of the order of its keys. JSON from a model has at most 128 levels,
/// because the parser rejects more.
fn canonical(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0.hash(hasher),
        Value::Bool(bool) => (1, bool).hash(hasher),
        Value::Number(number) => match number.as_f64() {
            // 1.0 equals 1.
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
