//! Reads one block as parts of a message. Blocks without an equivalent in a transcript are passed
//! through byte for byte. Breakpoints are removed, because they belong to the request.

use plimsoll_context::{CallId, Opaque, Part, Thinking, ToolCall};
use serde_json::Value;

use super::media;
use super::{MARK, ORIGIN};
use crate::error::WireError;
use crate::raw::{self, RawObject, parse};

/// Returns the parts of a block. A text with citations becomes the text, followed by the original
/// block.
pub(super) fn parts(raw: &str, place: &str) -> Result<Vec<Part>, WireError> {
    let object: RawObject<'_> = parse(raw)?;
    let kind = text(&object, "type", place)?;
    let part = match kind.as_str() {
        "text" => return texts(raw, &object, place),
        "thinking" => Part::Thinking(Thinking {
            text: text(&object, "thinking", place)?,
            opaque: Some(opaque(raw, &object)),
        }),
        "redacted_thinking" => Part::Thinking(Thinking {
            text: String::new(),
            opaque: Some(opaque(raw, &object)),
        }),
        "tool_use" => Part::ToolCall(ToolCall {
            id: CallId(text(&object, "id", place)?),
            name: text(&object, "name", place)?,
            arguments: object.get("input").unwrap_or("{}").to_owned(),
            opaque: further_keys(&object),
        }),
        "image" | "document" => {
            let block = object.with(&[(MARK, None)]);
            let block: Value = parse(&block)?;
            let part = media::part(&kind, &block);
            part.unwrap_or_else(|| Part::Opaque(opaque(raw, &object)))
        }
        _ => Part::Opaque(opaque(raw, &object)),
    };
    Ok(vec![part])
}

/// Returns the additional keys of a call, which must be sent back with it.
pub(super) fn further_keys(call: &RawObject<'_>) -> Option<Opaque> {
    let known = ["type", "id", "name", "input", MARK];
    let data = call.with(&known.map(|key| (key, None)));
    (data != "{}").then(|| raw::opaque(ORIGIN, data))
}

fn texts(raw: &str, object: &RawObject<'_>, place: &str) -> Result<Vec<Part>, WireError> {
    let mut parts = vec![Part::Text {
        text: text(object, "text", place)?,
    }];
    let cited = object.get("citations").map(str::trim);
    if cited.is_some_and(|cited| cited.starts_with('[') && cited != "[]") {
        parts.push(Part::Opaque(opaque(raw, object)));
    }
    Ok(parts)
}

/// Returns the original block without a breakpoint.
fn opaque(raw: &str, object: &RawObject<'_>) -> Opaque {
    raw::opaque(
        ORIGIN,
        match object.get(MARK) {
            None => raw.trim().to_owned(),
            Some(_) => object.with(&[(MARK, None)]),
        },
    )
}

/// Returns the text under a key.
pub(super) fn text(object: &RawObject<'_>, key: &str, place: &str) -> Result<String, WireError> {
    let value = object.get(key).map(serde_json::from_str::<Value>);
    match value {
        Some(Ok(Value::String(text))) => Ok(text),
        Some(Err(error)) => Err(WireError::not_json(&error)),
        other => {
            let other = other.and_then(Result::ok);
            let place = format!("{place}.{key}");
            Err(WireError::expected(place, "string", other.as_ref()))
        }
    }
}
