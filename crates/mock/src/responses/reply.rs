//! The parts of a turn in the format of OpenAI Responses: its output items.

use crate::rules::openai_responses::encrypt;
use plimsoll_wire::__internals::openai_responses::ENCRYPTED;
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Value, json};

use crate::api::{PendingReply, list, text, with};
use crate::encode::{AnswerPart, TurnPart, halves, turn_parts};
use crate::turn::Turn;

/// The phase of text before calls.
const COMMENTARY: &str = "commentary";
const FINAL: &str = "final_answer";

/// Returns the output items of a turn.
pub(super) fn parts(
    turn: &Turn,
    reply: &PendingReply<'_>,
    profile: &ResponsesProfile,
) -> Vec<AnswerPart> {
    let number = reply.number;
    let thought = turn.think.as_deref();
    let thought = thought.filter(|_| profile.reasoning != ReasoningItems::None);
    let parts = turn_parts(turn, thought).into_iter();
    let parts = parts.map(|part| match part {
        TurnPart::Thought(thought) => reasoning(thought, reply, profile),
        TurnPart::Text {
            text,
            citations,
            is_after,
        } => {
            let is_final = turn.call.is_empty() && !is_after;
            let values = json!({
                "id": format!("msg_{number}_{}", u8::from(is_after)),
                "citations": citations,
                "phase": if is_final { FINAL } else { COMMENTARY },
            });
            AnswerPart::text("message", text, values)
        }
        TurnPart::Block(block) => {
            let mut begun = block.clone();
            if let Some(status) = begun.get_mut("status") {
                *status = "in_progress".into();
            }
            AnswerPart::new("block", json!({"block": block, "begun": begun}))
        }
        TurnPart::Call(at, call) => {
            let mut tools = list(reply.request, "tools").iter();
            let is_custom =
                tools.any(|tool| text(tool, "type") == "custom" && text(tool, "name") == call.name);
            let frame = if is_custom {
                "custom_tool_call"
            } else {
                "function_call"
            };
            let id = call.id.clone();
            let id = id.unwrap_or_else(|| format!("call_{number}_{at}"));
            let values = json!({"id": id, "name": call.name, "call": at});
            AnswerPart::text(frame, &call.text(), values)
        }
    });
    let mut parts: Vec<AnswerPart> = parts.collect();
    if let (Some(last), Some(_)) = (parts.last_mut(), incomplete(turn)) {
        last.values = with(last.values.take(), json!({ "status": "incomplete" }));
    }
    parts
}

/// Returns the reason for which a turn is incomplete.
pub(super) fn incomplete(turn: &Turn) -> Option<&'static str> {
    match turn.stop.as_deref() {
        Some("length" | "max_output_tokens" | "incomplete") => Some("max_output_tokens"),
        Some("content_filter") => Some("content_filter"),
        _ => None,
    }
}

fn reasoning(thought: &str, reply: &PendingReply<'_>, profile: &ResponsesProfile) -> AnswerPart {
    let id = format!("rs_{}", reply.number);
    let settings = reply.request.get("reasoning").unwrap_or(&Value::Null);
    let has_summary = !text(settings, "summary").is_empty();
    let mut include = list(reply.request, "include").iter();
    let is_plain = profile.reasoning == ReasoningItems::Plain;
    let is_encrypted = !is_plain && include.any(|one| one == ENCRYPTED);
    let shown = |is_shown: bool| {
        if is_shown {
            halves(thought)
        } else {
            Vec::new()
        }
    };
    let summary = json!({"type": "summary_text", "text": thought});
    let content = json!([{"type": "reasoning_text", "text": thought}]);
    let values = json!({
        "summary": has_summary.then_some(summary).as_slice(),
        "summary_halves": shown(has_summary),
        "content": is_plain.then_some(content),
        "content_halves": shown(is_plain),
        "encrypted": is_encrypted.then(|| encrypt(&id, thought)),
        "id": id,
    });
    AnswerPart::text("reasoning", thought, values)
}
