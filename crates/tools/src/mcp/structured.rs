//! Removes data from the structured content of a result if its text content repeats it.
//!
//! The protocol asks servers to repeat structured content as text. FastMCP and the official servers
//! repeat it inside an object such as `{"result": …}`, so a comparison of the whole is not enough.

use serde_json::{Map, Value};

/// Returns the part of `data` that the content blocks do not repeat, or `None` if they repeat all of it.
pub(super) fn not_in_content(data: &Value, content: &[Value]) -> Option<Value> {
    let content = Content::new(content);
    if content.repeats(data) {
        return None;
    }
    let Some(members) = data.as_object() else {
        return Some(data.clone());
    };
    // A text is removed once: another member with the same text has a meaning of its own.
    let is_text = |value: &Value| value.is_string() && content.repeats(value);
    let repeated = members.iter().find(|(_, value)| is_text(value));
    let repeated = repeated.map(|(name, _)| name);
    let rest = members.iter().filter(|(name, _)| Some(*name) != repeated);
    let rest = rest.map(|(name, value)| (name.clone(), value.clone()));
    Some(Value::Object(rest.collect::<Map<_, _>>()))
}

/// The content blocks of a result, and the texts among them.
struct Content<'a> {
    blocks: &'a [Value],
    texts: Vec<Text<'a>>,
}

/// A text, and its value if it is JSON.
struct Text<'a> {
    text: &'a str,
    json: Option<Value>,
}

impl<'a> Content<'a> {
    fn new(blocks: &'a [Value]) -> Self {
        let texts = blocks.iter().filter_map(|block| {
            let is_text = block.get("type").and_then(Value::as_str) == Some("text");
            let text = block.get("text").filter(|_| is_text)?.as_str()?;
            let json = serde_json::from_str(text).ok();
            Some(Text { text, json })
        });
        Self {
            blocks,
            texts: texts.collect(),
        }
    }

    /// Checks whether a value equals the content itself, its text, or the JSON in its text.
    fn repeats(&self, value: &Value) -> bool {
        if self.blocks.is_empty() {
            return false;
        }
        if self.texts.iter().any(|text| text.says(value)) {
            return true;
        }
        match value {
            Value::String(value) => {
                let texts: Vec<&str> = self.texts.iter().map(|text| text.text).collect();
                *value == texts.join("\n")
            }
            Value::Array(items) if items.as_slice() == self.blocks => true,
            Value::Array(items) => {
                let mut pairs = self.texts.iter().zip(items);
                items.len() == self.texts.len() && pairs.all(|(text, item)| text.says(item))
            }
            Value::Object(members) if members.len() == 1 => {
                members.values().all(|value| self.repeats(value))
            }
            _ => false,
        }
    }
}

impl Text<'_> {
    /// Checks whether the text is this string, or JSON with this value.
    fn says(&self, value: &Value) -> bool {
        value.as_str() == Some(self.text) || self.json.as_ref() == Some(value)
    }
}
