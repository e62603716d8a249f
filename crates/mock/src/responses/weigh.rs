//! What a Responses request weighs, item by item as it would stand in a prompt. Counts as the mock's
//! own tokenizer does. What is encrypted weighs as it is long.

use plimsoll_context::{TokenCounter, Tokens};
use serde_json::{Value, json};

use crate::api::{list, text};
use crate::pieces::{Piece, weigh};

/// What an item weighs besides what is in it.
const FRAME: Tokens = Tokens(4);
/// Bytes of encrypted content for one token of it.
const HIDDEN_BYTES: u64 = 8;

/// All items of a request, after its tools and its instructions.
pub(crate) fn pieces(request: &Value, counter: &dyn TokenCounter) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let tools = request
        .get("tools")
        .filter(|tools| !list(request, "tools").is_empty() && tools.is_array());
    for head in tools.into_iter().chain(request.get("instructions")) {
        let said = head
            .as_str()
            .map_or_else(|| head.to_string(), str::to_owned);
        pieces.push(Piece::new(&said, counter.text(&said) + FRAME));
    }
    let items = match request.get("input") {
        Some(Value::String(said)) => vec![json!({"role": "user", "content": said})],
        _ => list(request, "input").to_vec(),
    };
    for item in &items {
        let tokens = weight(item, counter) + FRAME;
        pieces.push(Piece::new(&item.to_string(), tokens));
    }
    pieces
}

fn weight(item: &Value, counter: &dyn TokenCounter) -> Tokens {
    let of = |key: &str| weigh(item.get(key).unwrap_or(&Value::Null), counter);
    match text(item, "type") {
        "" | "message" => of("content"),
        "function_call" => of("name") + of("arguments"), // tidy:allow(function call)
        "custom_tool_call" => of("name") + of("input"),
        "function_call_output" | "custom_tool_call_output" => of("output"),
        "reasoning" => {
            let hidden = text(item, "encrypted_content").len() as u64 / HIDDEN_BYTES;
            of("content") + Tokens(hidden)
        }
        _ => counter.text(&item.to_string()),
    }
}
