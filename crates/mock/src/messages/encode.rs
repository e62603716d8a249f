//! Encodes a turn in the format of Anthropic Messages: as one message, or as the events of a
//! stream, in the API's order.

use crate::rules::anthropic::sign;
use serde_json::{Value, json};

use crate::answer::AnswerBody;
use crate::api::{PendingReply, counts, halves, text, with};
use crate::turn::{Call, Turn};

/// The thinking of a turn that must think but has no `think` in its script.
const UNSCRIPTED_THOUGHT: &str = "(The script says nothing of this.)";

/// Returns the body for a turn, streamed if the request asks for it.
pub(crate) fn say(turn: &Turn, call: &PendingReply<'_>) -> AnswerBody {
    let blocks = blocks(turn, call);
    let stop = turn.stop.as_deref().unwrap_or(if turn.call.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    });
    if call.streams() {
        AnswerBody::Events(events(turn, call, &blocks, stop))
    } else {
        let content = blocks.into_iter().map(|block| block.whole).collect();
        AnswerBody::Whole(message(turn, call, content, Some(stop)))
    }
}

/// Formats an event with its name.
pub(crate) fn event(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", text(event, "type"))
}

/// A content block, and its events in a stream.
struct StreamedBlock {
    whole: Value,
    begun: Value,
    deltas: Vec<Value>,
}

impl StreamedBlock {
    /// Creates a block that is streamed in one piece.
    fn whole(whole: Value) -> Self {
        Self {
            begun: whole.clone(),
            whole,
            deltas: Vec::new(),
        }
    }

    fn thinking(thinking: &str, signature: &str) -> Self {
        let delta = |half| json!({"type": "thinking_delta", "thinking": half});
        let mut deltas: Vec<Value> = halves(thinking).map(delta).collect();
        deltas.push(json!({"type": "signature_delta", "signature": signature}));
        Self {
            whole: json!({"type": "thinking", "thinking": thinking, "signature": signature}),
            begun: json!({"type": "thinking", "thinking": "", "signature": ""}),
            deltas,
        }
    }

    fn text(text: &str, citations: &[Value]) -> Self {
        let delta = |half| json!({"type": "text_delta", "text": half});
        let mut deltas: Vec<Value> = halves(text).map(delta).collect();
        let mut whole = json!({"type": "text", "text": text});
        let mut begun = json!({"type": "text", "text": ""});
        if !citations.is_empty() {
            whole = with(whole, json!({ "citations": citations }));
            begun = with(begun, json!({ "citations": [] }));
            let cited = |citation| json!({"type": "citations_delta", "citation": citation});
            deltas.extend(citations.iter().map(cited));
        }
        Self {
            whole,
            begun,
            deltas,
        }
    }

    fn call(call: &Call, id: String) -> Self {
        let arguments = call.text();
        // Invalid arguments in the format of the API.
        let input = serde_json::from_str(&arguments)
            .ok()
            .filter(Value::is_object);
        let input = input.unwrap_or_else(|| json!({ "INVALID_JSON": arguments }));
        Self::input(
            json!({"type": "tool_use", "id": id, "name": call.name, "input": input}),
            &arguments,
        )
    }

    /// Creates a block of the API's own tools, or of their results.
    fn own(block: &Value) -> Self {
        match block.get("input") {
            Some(input) if text(block, "type").ends_with("tool_use") => {
                let arguments = input.to_string();
                Self::input(block.clone(), &arguments)
            }
            _ => Self::whole(block.clone()),
        }
    }

    fn input(whole: Value, arguments: &str) -> Self {
        let begun = with(whole.clone(), json!({ "input": {} }));
        let delta = |half| json!({"type": "input_json_delta", "partial_json": half});
        let deltas = std::iter::once("").chain(halves(arguments)).map(delta);
        Self {
            whole,
            begun,
            deltas: deltas.collect(),
        }
    }
}

fn blocks(turn: &Turn, call: &PendingReply<'_>) -> Vec<StreamedBlock> {
    let mut blocks = Vec::new();
    let thinking = call.request.get("thinking").unwrap_or(&Value::Null);
    if matches!(text(thinking, "type"), "enabled" | "adaptive") {
        let unscripted = || must_think(turn, call.request).then_some(UNSCRIPTED_THOUGHT);
        if let Some(thought) = turn.think.as_deref().or_else(unscripted) {
            // Omitted thinking is signed as well.
            let shown = match text(thinking, "display") {
                "omitted" => "",
                _ => thought,
            };
            blocks.push(StreamedBlock::thinking(shown, &sign(call.request, shown)));
        }
        if turn.redacted {
            let data = sign(call.request, "");
            blocks.push(StreamedBlock::whole(
                json!({"type": "redacted_thinking", "data": data}),
            ));
        }
    }
    if let Some(text) = turn.say.as_deref().filter(|text| !text.is_empty()) {
        blocks.push(StreamedBlock::text(text, &turn.citations));
    }
    blocks.extend(turn.blocks.iter().map(StreamedBlock::own));
    for (at, one) in turn.call.iter().enumerate() {
        let id = one.id.clone();
        let id = id.unwrap_or_else(|| format!("toolu_{}_{at}", call.number));
        blocks.push(StreamedBlock::call(one, id));
    }
    if let Some(text) = turn.say_after.as_deref().filter(|text| !text.is_empty()) {
        blocks.push(StreamedBlock::text(text, &[]));
    }
    blocks
}

/// Checks whether a turn must begin with thinking although its script has none. A model with a
/// thinking budget begins every tool loop with thinking, or the API would refuse the client's next
/// request (AM9).
fn must_think(turn: &Turn, request: &Value) -> bool {
    let thinking = request.get("thinking").unwrap_or(&Value::Null);
    let blocks = || {
        let messages = request.get("messages")?.as_array()?;
        messages.last()?.get("content")?.as_array()
    };
    let is_result = |block: &Value| text(block, "type") == "tool_result";
    let in_loop = blocks().is_some_and(|blocks| blocks.iter().any(is_result));
    let calls = !turn.call.is_empty() || !turn.blocks.is_empty();
    text(thinking, "type") == "enabled" && calls && !in_loop && !turn.redacted
}

fn message(turn: &Turn, call: &PendingReply<'_>, content: Value, stop: Option<&str>) -> Value {
    let cached = call.used.cached;
    let input = call.used.input.minus(cached.read).minus(cached.written());
    // A message at its beginning has almost no output.
    let output = stop.map_or(1, |_| call.used.output.0);
    let usage = json!({
        "input_tokens": input,
        "cache_creation_input_tokens": cached.written(),
        "cache_read_input_tokens": cached.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": cached.five_minutes,
            "ephemeral_1h_input_tokens": cached.hour,
        },
        "output_tokens": output,
        "service_tier": "standard",
    });
    json!({
        "id": format!("msg_mock{}", call.number),
        "type": "message",
        "role": "assistant",
        "model": call.model(),
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": counts(usage, turn),
    })
}

fn events(
    turn: &Turn,
    call: &PendingReply<'_>,
    blocks: &[StreamedBlock],
    stop: &str,
) -> Vec<String> {
    let begun = message(turn, call, json!([]), None);
    let mut events = vec![json!({"type": "message_start", "message": begun})];
    for (index, block) in blocks.iter().enumerate() {
        let begun = &block.begun;
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        if index == 0 {
            events.push(json!({"type": "ping"}));
        }
        for delta in &block.deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let mut usage = message(turn, call, json!([]), Some(stop));
    let usage = usage.get_mut("usage").map(Value::take).unwrap_or_default();
    let keys = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens",
    ];
    let usage: Value = keys
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), usage.get(*key)?.clone())))
        .collect();
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": null},
        "usage": usage,
    }));
    events.push(json!({"type": "message_stop"}));
    events.iter().map(event).collect()
}
