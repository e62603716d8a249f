//! Counts the tokens of a Responses request, item by item in prompt order, with the mock's
//! tokenizer. Encrypted content counts by its length.

use plimsoll_context::{TokenCounter, Tokens};
use serde_json::{Value, json};

use crate::api::{list, text};
use crate::pieces::{RequestPiece, weigh};

/// The tokens of an item in addition to its content.
const FRAME: Tokens = Tokens(4);
/// Bytes of encrypted content per token.
const HIDDEN_BYTES: u64 = 8;

/// Returns the tools and the instructions of a request, followed by its items.
pub(crate) fn pieces(request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece> {
    let mut pieces = Vec::new();
    let tools = request
        .get("tools")
        .filter(|tools| !list(request, "tools").is_empty() && tools.is_array());
    for head in tools.into_iter().chain(request.get("instructions")) {
        let content = head
            .as_str()
            .map_or_else(|| head.to_string(), str::to_owned);
        pieces.push(RequestPiece::new(&content, counter.text(&content) + FRAME));
    }
    let items = match request.get("input") {
        Some(Value::String(text)) => vec![json!({"role": "user", "content": text})],
        _ => list(request, "input").to_vec(),
    };
    for item in &items {
        let tokens = weight(item, counter) + FRAME;
        pieces.push(RequestPiece::new(&item.to_string(), tokens));
    }
    pieces
}

fn weight(item: &Value, counter: &dyn TokenCounter) -> Tokens {
    let of = |key: &str| weigh(item.get(key).unwrap_or(&Value::Null), counter);
    match text(item, "type") {
        "" | "message" => of("content"),
        "function_call" => of("name") + of("arguments"),
        "custom_tool_call" => of("name") + of("input"),
        "function_call_output" | "custom_tool_call_output" => of("output"),
        "reasoning" => {
            let hidden = text(item, "encrypted_content").len() as u64 / HIDDEN_BYTES;
            of("content") + Tokens(hidden)
        }
        _ => counter.text(&item.to_string()),
    }
}
