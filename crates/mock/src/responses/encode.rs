//! Encodes a turn in the format of OpenAI Responses: its output items, and the Response object
//! around them. The events of a stream are in `events.rs`.

use crate::rules::openai_responses::encrypt;
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Map, Value, json};

use crate::api::{PendingReply, counts, list, text};
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
    let mut response = response(
        call,
        match why {
            Some(_) => "incomplete",
            None => "completed",
        },
    );
    if let Some(keys) = response.as_object_mut() {
        let mut output = items.to_vec();
        if let (Some(_), Some(status)) = (
            why,
            output.last_mut().and_then(|last| last.get_mut("status")),
        ) {
            *status = "incomplete".into();
        }
        keys.insert("output".into(), output.into());
        keys.insert("usage".into(), counts(usage, turn));
        if let Some(reason) = why {
            keys.insert("incomplete_details".into(), json!({ "reason": reason }));
        }
    }
    response
}

/// Returns a Response object without output.
pub(crate) fn response(call: &PendingReply<'_>, status: &str) -> Value {
    let request = call.request;
    let requested = |key: &str, default: Value| {
        let value = request.get(key).filter(|value| !value.is_null());
        (key.to_owned(), value.cloned().unwrap_or(default))
    };
    let mut response = Map::new();
    let head = json!({
        "id": format!("resp_mock{}", call.number),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": null,
    });
    response.extend(head.as_object().cloned().unwrap_or_default());
    response.extend([
        requested("instructions", Value::Null),
        requested("max_output_tokens", Value::Null),
        requested("max_tool_calls", Value::Null),
        ("model".to_owned(), call.model().into()),
        ("output".to_owned(), json!([])),
        requested("parallel_tool_calls", true.into()),
        requested("previous_response_id", Value::Null),
        requested("prompt_cache_key", Value::Null),
        ("reasoning".to_owned(), reasoning_settings(request)),
        requested("safety_identifier", Value::Null),
        ("service_tier".to_owned(), "default".into()),
        requested("store", true.into()),
        requested("temperature", json!(1.0)),
        ("text".to_owned(), text_settings(request)),
        requested("tool_choice", "auto".into()),
        ("tools".to_owned(), tools(request)),
        requested("top_logprobs", 0.into()),
        requested("top_p", json!(1.0)),
        requested("truncation", "disabled".into()),
        ("usage".to_owned(), Value::Null),
        requested("user", Value::Null),
        requested("metadata", json!({})),
    ]);
    Value::Object(response)
}

fn reasoning_settings(request: &Value) -> Value {
    let reasoning = request.get("reasoning").unwrap_or(&Value::Null);
    json!({"effort": reasoning.get("effort"), "summary": reasoning.get("summary")})
}

fn text_settings(request: &Value) -> Value {
    let text = request.get("text").unwrap_or(&Value::Null);
    let format = text.get("format").cloned();
    let verbosity = text.get("verbosity").cloned();
    json!({
        "format": format.unwrap_or_else(|| json!({"type": "text"})),
        "verbosity": verbosity.unwrap_or_else(|| "medium".into()),
    })
}

/// Returns the tools with the defaults that the API fills in.
fn tools(request: &Value) -> Value {
    let filled = |tool: &Value| {
        let mut tool = tool.clone();
        if let Some(keys) = tool
            .as_object_mut()
            .filter(|keys| keys.get("type") == Some(&"function".into()))
        {
            keys.entry("description").or_insert(Value::Null);
            keys.entry("strict").or_insert(true.into());
            keys.entry("parameters")
                .or_insert_with(|| json!({"type": "object", "properties": {}}));
        }
        tool
    };
    list(request, "tools").iter().map(filled).collect()
}

fn reasoning(thought: &str, call: &PendingReply<'_>, profile: &ResponsesProfile) -> Value {
    let id = format!("rs_{}", call.number);
    let reasoning = call.request.get("reasoning").unwrap_or(&Value::Null);
    let summary = match text(reasoning, "summary") {
        "" => json!([]),
        _ => json!([{"type": "summary_text", "text": thought}]),
    };
    let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
    let keys = item.as_object_mut();
    match (profile.reasoning, keys) {
        (ReasoningItems::Plain, Some(keys)) => {
            let content = json!([{"type": "reasoning_text", "text": thought}]);
            keys.insert("content".into(), content);
        }
        (_, Some(keys))
            if list(call.request, "include")
                .iter()
                .any(|one| one == ENCRYPTED) =>
        {
            keys.insert("encrypted_content".into(), encrypt(&id, thought).into());
        }
        _ => {}
    }
    item
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
