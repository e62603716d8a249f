//! Counts the tokens of a Messages request, block by block in the order of its cache: tools,
//! system, messages. Uses the mock's tokenizer, not Anthropic's.

use plimsoll_context::{TOOL_OVERHEAD, TokenCounter, Tokens};
use plimsoll_wire::__internals::anthropic::MARK;
use serde_json::{Value, json};

use crate::api::{list, text};
use crate::pieces::{Mark, RequestPiece, weigh};
use crate::rules::anthropic::unmarked;

/// The tokens of a message in addition to its content.
const FRAME: Tokens = Tokens(4);

/// Returns all blocks of a request.
pub(crate) fn pieces(request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece> {
    let mut pieces = Vec::new();
    let model = text(request, "model");
    for tool in list(request, "tools") {
        let json = unmarked(tool).to_string();
        let tokens = counter.text(&json) + TOOL_OVERHEAD;
        // Each model has its own cache.
        let content = format!("{model} tool {json}");
        pieces.push(RequestPiece::new(&content, tokens).marked(mark(tool)));
    }
    for block in &blocks(request.get("system")) {
        let content = format!("{model} system {}", unmarked(block));
        let tokens = weigh(block, counter);
        pieces.push(RequestPiece::new(&content, tokens).marked(mark(block)));
    }
    // A change of one of these settings invalidates the cache of all messages.
    let settings = json!([request.get("tool_choice"), request.get("thinking")]);
    for message in list(request, "messages") {
        let role = text(message, "role");
        let mut frame = FRAME;
        for block in &blocks(message.get("content")) {
            let content = format!("{model} {settings} {role} {}", unmarked(block));
            let tokens = weigh(block, counter) + std::mem::take(&mut frame);
            let inside = list(block, "content").iter().filter_map(mark).next_back();
            pieces.push(RequestPiece::new(&content, tokens).marked(mark(block).or(inside)));
        }
    }
    // A breakpoint of the whole request applies to its last block.
    if let (Some(last), Some(mark)) = (pieces.last_mut(), mark(request)) {
        last.mark = last.mark.or(Some(mark));
    }
    pieces
}

/// Returns the blocks of a content; a text is one block.
fn blocks(content: Option<&Value>) -> Vec<Value> {
    match content {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => Vec::new(),
    }
}

fn mark(block: &Value) -> Option<Mark> {
    let mark = block.get(MARK).filter(|mark| mark.is_object())?;
    Some(match text(mark, "ttl") {
        "1h" => Mark::Hour,
        _ => Mark::FiveMinutes,
    })
}
