//! Encodes a turn in the format of OpenAI Responses: its output items, and the Response object
//! around them. The events of a stream are in `events.rs`.

use crate::rules::openai_responses::encrypt;
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Value, json};

use crate::api::{PendingReply, counts, list, text, with};
use crate::turn::{Call, Turn};

/// The creation time of every answer, the same on every machine.
const CREATED: u64 = 1_700_000_000;
/// The value of `include` that requests encrypted reasoning.
const ENCRYPTED: &str = "reasoning.encrypted_content";
/// The phase of text before calls.
const COMMENTARY: &str = "commentary";
const FINAL: &str = "final_answer";

/// Returns the complete output items of a turn.
pub(crate) fn items(
    turn: &Turn,
    call: &PendingReply<'_>,
    profile: &ResponsesProfile,
) -> Vec<Value> {
    let number = call.number;
    let mut items = Vec::new();
    if let Some(thought) = turn.think.as_deref()
        && profile.reasoning != ReasoningItems::None
    {
        items.push(reasoning(thought, call, profile));
    }
    if let Some(text) = turn.say.as_deref().filter(|text| !text.is_empty()) {
        let phase = if turn.call.is_empty() {
            FINAL
        } else {
            COMMENTARY
        };
        let id = format!("msg_{number}_0");
        items.push(message(&id, text, &turn.citations, phase));
    }
    items.extend(turn.blocks.iter().cloned());
    for (at, one) in turn.call.iter().enumerate() {
        items.push(tool_call(one, at, call));
    }
    if let Some(text) = turn.say_after.as_deref().filter(|text| !text.is_empty()) {
        items.push(message(&format!("msg_{number}_1"), text, &[], COMMENTARY));
    }
    items
}

/// Returns the Response object of a finished turn.
pub(crate) fn ended(turn: &Turn, call: &PendingReply<'_>, items: &[Value]) -> Value {
    let why = match turn.stop.as_deref() {
        Some("length" | "max_output_tokens" | "incomplete") => Some("max_output_tokens"),
        Some("content_filter") => Some("content_filter"),
        _ => None,
    };
    let used = &call.used;
    let usage = json!({
        "input_tokens": used.input,
        "input_tokens_details": {
            "cached_tokens": used.cached.read, "cache_write_tokens": used.cached.written(),
        },
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    });
    let mut output = items.to_vec();
    let last = output.last_mut().and_then(|last| last.get_mut("status"));
    if let (Some(_), Some(status)) = (why, last) {
        *status = "incomplete".into();
    }
    let keys = json!({
        "incomplete_details": why.map(|reason| json!({ "reason": reason })),
        "output": output,
        "usage": counts(usage, turn),
    });
    let status = why.map_or("completed", |_| "incomplete");
    with(response(call, status), keys)
}

/// Returns a Response object without output.
pub(crate) fn response(call: &PendingReply<'_>, status: &str) -> Value {
    let request = call.request;
    let of = |key: &str, default: Value| {
        let value = request.get(key).filter(|value| !value.is_null());
        value.cloned().unwrap_or(default)
    };
    json!({
        "id": format!("resp_mock{}", call.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": of("instructions", Value::Null),
        "max_output_tokens": of("max_output_tokens", Value::Null),
        "max_tool_calls": of("max_tool_calls", Value::Null),
        "model": call.model(),
        "output": [],
        "parallel_tool_calls": of("parallel_tool_calls", true.into()),
        "previous_response_id": of("previous_response_id", Value::Null),
        "prompt_cache_key": of("prompt_cache_key", Value::Null),
        "reasoning": reasoning_settings(request),
        "safety_identifier": of("safety_identifier", Value::Null),
        "service_tier": "default",
        "store": of("store", true.into()),
        "temperature": of("temperature", json!(1.0)),
        "text": text_settings(request),
        "tool_choice": of("tool_choice", "auto".into()),
        "tools": tools(request),
        "top_logprobs": of("top_logprobs", 0.into()),
        "top_p": of("top_p", json!(1.0)),
        "truncation": of("truncation", "disabled".into()),
        "usage": null,
        "user": of("user", Value::Null),
        "metadata": of("metadata", json!({})),
    })
}

fn reasoning_settings(request: &Value) -> Value {
    let reasoning = request.get("reasoning").unwrap_or(&Value::Null);
    json!({"effort": reasoning.get("effort"), "summary": reasoning.get("summary")})
}

fn text_settings(request: &Value) -> Value {
    let defaults = json!({"format": {"type": "text"}, "verbosity": "medium"});
    let own = request.get("text").and_then(Value::as_object);
    let own = own.into_iter().flatten();
    let known = own.filter(|(key, _)| defaults.get(key.as_str()).is_some());
    let own: Value = known
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    with(defaults, own)
}

/// Returns the tools with the defaults that the API fills in.
fn tools(request: &Value) -> Value {
    let tools = list(request, "tools").iter();
    let filled = tools.map(|tool| match text(tool, "type") {
        "function" => {
            let parameters = json!({"type": "object", "properties": {}});
            let defaults = json!({"description": null, "strict": true, "parameters": parameters});
            // The tool's own keys come first.
            with(with(tool.clone(), defaults), tool.clone())
        }
        _ => tool.clone(),
    });
    filled.collect()
}

fn reasoning(thought: &str, call: &PendingReply<'_>, profile: &ResponsesProfile) -> Value {
    let id = format!("rs_{}", call.number);
    let reasoning = call.request.get("reasoning").unwrap_or(&Value::Null);
    let summary = match text(reasoning, "summary") {
        "" => json!([]),
        _ => json!([{"type": "summary_text", "text": thought}]),
    };
    let item = json!({"id": id, "type": "reasoning", "summary": summary});
    let mut include = list(call.request, "include").iter();
    if profile.reasoning == ReasoningItems::Plain {
        let content = json!([{"type": "reasoning_text", "text": thought}]);
        with(item, json!({ "content": content }))
    } else if include.any(|one| one == ENCRYPTED) {
        let content = encrypt(&id, thought);
        with(item, json!({ "encrypted_content": content }))
    } else {
        item
    }
}

fn message(id: &str, text: &str, annotations: &[Value], phase: &str) -> Value {
    let part = json!({"type": "output_text", "annotations": annotations, "logprobs": [],
        "text": text});
    json!({"id": id, "type": "message", "status": "completed", "content": [part],
        "phase": phase, "role": "assistant"})
}

/// Returns a tool call; for a custom tool, with free text as its input.
fn tool_call(one: &Call, at: usize, call: &PendingReply<'_>) -> Value {
    let number = call.number;
    let id = one
        .id
        .clone()
        .unwrap_or_else(|| format!("call_{number}_{at}"));
    let custom = list(call.request, "tools")
        .iter()
        .any(|tool| text(tool, "type") == "custom" && text(tool, "name") == one.name);
    if custom {
        json!({"id": format!("ctc_{number}_{at}"), "type": "custom_tool_call",
            "status": "completed", "call_id": id, "name": one.name, "input": one.text()})
    } else {
        json!({"id": format!("fc_{number}_{at}"), "type": "function_call",
            "status": "completed", "arguments": one.text(), "call_id": id, "name": one.name})
    }
}
