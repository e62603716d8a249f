//! Reads one block as parts of a message. Blocks without an equivalent in a transcript are passed
//! through byte for byte. Breakpoints are removed, because they belong to the request.

use plimsoll_context::{CallId, Opaque, Part, Thinking, ToolCall};

use super::media;
use super::{MARK, ORIGIN};
use crate::error::WireError;
use crate::raw::{self, RawObject, parse};

/// Returns the parts of a block. Citations of a text are left out.
pub(super) fn parts(block: &RawObject<'_>, raw: &str, place: &str) -> Result<Vec<Part>, WireError> {
    // A breakpoint belongs to the request.
    let opaque = || raw::opaque(ORIGIN, unmarked(block, raw));
    let kind = block.need("type", place)?;
    Ok(vec![match kind.as_str() {
        "text" => Part::text(block.need("text", place)?),
        "thinking" => Part::Thinking(Thinking {
            text: block.need("thinking", place)?,
            opaque: Some(opaque()),
        }),
        "redacted_thinking" => Part::Thinking(Thinking {
            text: String::new(),
            opaque: Some(opaque()),
        }),
        "tool_use" => Part::ToolCall(ToolCall {
            id: CallId(block.need("id", place)?),
            name: block.need("name", place)?,
            arguments: block.get("input").unwrap_or("{}").to_owned(),
            opaque: further_keys(block),
        }),
        "image" | "document" => {
            let media = media::part(&kind, &parse(&unmarked(block, raw))?);
            media.unwrap_or_else(|| Part::Opaque(opaque()))
        }
        _ => Part::Opaque(opaque()),
    }])
}

/// Returns the additional keys of a call, which must be sent back with it.
pub(super) fn further_keys(call: &RawObject<'_>) -> Option<Opaque> {
    call.rest(ORIGIN, &["type", "id", "name", "input", MARK])
}

/// Returns a block without its breakpoint.
pub(super) fn unmarked(block: &RawObject<'_>, raw: &str) -> String {
    match block.get(MARK) {
        None => raw.trim().to_owned(),
        Some(_) => block.with(&[(MARK, None)]),
    }
}
