//! Blocks of Anthropic Messages, in which the histories of most agents are written.

use plimsoll_context::typed_words;
use plimsoll_wire::__internals::set;
use serde_json::{Value, json};

use crate::ids::Ids;

/// Returns a text block.
pub(crate) fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns a text block, or `None` for a blank text, which the API does not accept.
pub(crate) fn some_text(content: &str) -> Option<Value> {
    (!content.trim().is_empty()).then(|| text(content))
}

/// Puts the text of a block into the element in which Claude Code sends its own texts, unless its form shows
/// already that no person typed it.
pub(crate) fn mark_as_host(block: &mut Value) {
    put_into("system-reminder", block);
}

/// Puts the text of a block into the element of a summary, unless its form shows already that no person typed it.
pub(crate) fn mark_as_summary(block: &mut Value) {
    put_into("summary", block);
}

fn put_into(element: &str, block: &mut Value) {
    let own = block.get("text").and_then(Value::as_str);
    let own = own.filter(|own| typed_words(own).is_some());
    if let Some(own) = own.map(|own| own.replace(&format!("</{element}>"), "")) {
        set(block, "text", format!("<{element}>\n{own}\n</{element}>"));
    }
}

/// Returns an image block.
pub(crate) fn image(media_type: &str, data: &str) -> Value {
    let source = json!({ "type": "base64", "media_type": media_type, "data": data });
    json!({ "type": "image", "source": source })
}

/// Returns the block of a tool call. A call without arguments has an empty object.
pub(crate) fn call(id: &str, name: impl Into<Value>, input: Option<&Value>) -> Value {
    let (id, name) = (wire_id(id), name.into());
    json!({ "type": "tool_use", "id": id, "name": name, "input": arguments(input) })
}

/// Returns the block of a tool result.
pub(crate) fn result(id: &str, content: Vec<Value>, is_error: bool) -> Value {
    json!({
        "type": "tool_result", "tool_use_id": wire_id(id), "content": content, "is_error": is_error,
    })
}

/// Returns the arguments of a call, or an empty object.
pub(crate) fn arguments(input: Option<&Value>) -> Value {
    input.cloned().unwrap_or_else(|| json!({}))
}

/// Returns the id of a call with the characters that Messages allow. pi joins two ids of Responses
/// with `|`, the only other character that occurs.
pub(crate) fn wire_id(id: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= 64 && id.chars().all(is_allowed) {
        return id.to_owned();
    }
    format!("call_{}", Ids::new(id.as_bytes()).hex(24))
}
