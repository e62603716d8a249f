//! The parts of a turn in the format of Anthropic Messages: its thinking, which is signed, its texts and its
//! calls.

use crate::rules::anthropic::sign;
use serde_json::{Value, json};

use crate::api::{PendingReply, list, text, with};
use crate::encode::{AnswerPart, TurnPart, turn_parts};
use crate::turn::Turn;

/// The thinking of a turn that must think but has no `think` in its script.
const UNSCRIPTED_THOUGHT: &str = "(The script says nothing of this.)";

/// Returns the blocks of a turn.
pub(super) fn parts(turn: &Turn, reply: &PendingReply<'_>) -> Vec<AnswerPart> {
    let request = reply.request;
    let thinking = request.get("thinking").unwrap_or(&Value::Null);
    let thinks = matches!(text(thinking, "type"), "enabled" | "adaptive");
    let unscripted = || must_think(turn, request).then_some(UNSCRIPTED_THOUGHT);
    let thought = turn.think.as_deref().or_else(unscripted);
    let parts = turn_parts(turn, thought.filter(|_| thinks)).into_iter();
    let parts = parts.map(|part| match part {
        TurnPart::Thought(thought) => {
            // Omitted thinking is signed as well.
            let shown = match text(thinking, "display") {
                "omitted" => "",
                _ => thought,
            };
            let signature = sign(request, shown);
            AnswerPart::text("thinking", shown, json!({ "signature": signature }))
        }
        TurnPart::Text {
            text, citations, ..
        } => {
            let values = match citations {
                [] => json!({}),
                _ => json!({"citations": citations, "no_citations": []}),
            };
            AnswerPart::text("text", text, values)
        }
        TurnPart::Block(block) => match block.get("input") {
            Some(input) if text(block, "type").ends_with("tool_use") => {
                call(block.clone(), &input.to_string())
            }
            _ => AnswerPart::new("block", json!({ "block": block })),
        },
        TurnPart::Call(at, one) => {
            let id = one.id.clone();
            let id = id.unwrap_or_else(|| format!("toolu_{}_{at}", reply.number));
            let arguments = one.text();
            let input: Option<Value> = serde_json::from_str(&arguments).ok();
            let input = input.filter(Value::is_object);
            // Invalid arguments in the format of the API.
            let input = input.unwrap_or_else(|| json!({ "INVALID_JSON": arguments }));
            let block = json!({"type": "tool_use", "id": id, "name": one.name, "input": input});
            call(block, &arguments)
        }
    });
    let mut parts: Vec<AnswerPart> = parts.collect();
    if thinks && turn.redacted {
        let block = json!({"type": "redacted_thinking", "data": sign(request, "")});
        let after = usize::from(thought.is_some());
        parts.insert(after, AnswerPart::new("block", json!({ "block": block })));
    }
    parts
}

/// Returns a call of a tool, whose input is streamed.
fn call(block: Value, arguments: &str) -> AnswerPart {
    let begun = with(block.clone(), json!({ "input": {} }));
    AnswerPart::text("call", arguments, json!({"block": block, "begun": begun}))
}

/// Checks whether a turn must begin with thinking although its script has none. A model with a
/// thinking budget begins every tool loop with thinking, or the API would refuse the client's next
/// request (AM9).
fn must_think(turn: &Turn, request: &Value) -> bool {
    let thinking = request.get("thinking").unwrap_or(&Value::Null);
    let last = list(request, "messages").last().unwrap_or(&Value::Null);
    let mut blocks = list(last, "content").iter();
    let in_loop = blocks.any(|block| text(block, "type") == "tool_result");
    let calls = !turn.call.is_empty() || !turn.blocks.is_empty();
    text(thinking, "type") == "enabled" && calls && !in_loop && !turn.redacted
}
