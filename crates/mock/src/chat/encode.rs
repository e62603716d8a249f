//! Encodes a turn in the format of Chat Completions: as one completion, or as the chunks of a
//! stream.

use plimsoll_wire::CallIdForm;
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};

use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{PendingReply, counts, halves, with};
use crate::turn::Turn;

/// The creation time of every answer, the same on every machine.
pub(crate) const CREATED: u64 = 1_700_000_000;

/// Returns the body for a turn, streamed if the request asks for it.
pub(crate) fn say(turn: &Turn, call: &PendingReply<'_>, dialect: &Dialect) -> AnswerBody {
    let stop = turn.stop.as_deref();
    let stop = stop.unwrap_or(if turn.call.is_empty() {
        "stop"
    } else {
        "tool_calls"
    });
    let calls = calls(turn, call, dialect);
    if call.streams() {
        AnswerBody::Events(chunks(turn, call, &calls, stop))
    } else {
        AnswerBody::Whole(whole(turn, call, &calls, stop))
    }
}

/// Returns the chunk that ends a stream with a failure: only the error, except for OpenRouter,
/// which adds its source.
pub(crate) fn broken(failure: &HttpAnswer, call: &PendingReply<'_>, dialect: &Dialect) -> String {
    let error = match &failure.body {
        AnswerBody::Whole(body) => body.get("error").cloned().unwrap_or_else(|| body.clone()),
        _ => Value::Null,
    };
    if dialect.name != "openrouter" {
        return data(&json!({ "error": error }));
    }
    let choice = json!({"index": 0, "delta": {"role": "assistant", "content": ""},
        "logprobs": null, "finish_reason": "error"});
    let message = error.get("message").cloned().unwrap_or_default();
    let error = json!({"code": failure.status, "message": message, "metadata": {"raw": error}});
    let keys = json!({"error": error, "choices": [choice]});
    data(&completion(call, "chat.completion.chunk", keys))
}

/// Returns a completion, or a chunk of one, with these keys behind those that all have.
fn completion(call: &PendingReply<'_>, object: &str, keys: Value) -> Value {
    let head = json!({
        "id": format!("chatcmpl-mock{}", call.number),
        "object": object,
        "created": CREATED,
        "model": call.model(),
    });
    with(head, keys)
}

fn data(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

/// Returns the text before and after the calls, since this protocol has a single field for both.
fn whole_text(turn: &Turn) -> Option<String> {
    let texts = [turn.say.as_deref(), turn.say_after.as_deref()];
    let is_there = texts.iter().any(Option::is_some);
    is_there.then(|| texts.into_iter().flatten().collect())
}

fn calls(turn: &Turn, call: &PendingReply<'_>, dialect: &Dialect) -> Vec<Value> {
    let number = call.number;
    let id = |at: usize| match dialect.call_ids {
        CallIdForm::NineAlphanumeric => {
            let unique = number.saturating_mul(1_000).saturating_add(at as u64);
            format!("c{:08}", unique % 100_000_000)
        }
        _ => format!("call_{number}_{at}"),
    };
    let calls = turn.call.iter().enumerate();
    let calls = calls.map(|(at, one)| {
        let id = one.id.clone().unwrap_or_else(|| id(at));
        let function = json!({"name": one.name, "arguments": one.text()});
        json!({"id": id, "type": "function", "function": function})
    });
    calls.collect()
}

fn usage(turn: &Turn, call: &PendingReply<'_>) -> Value {
    let used = &call.used;
    let usage = json!({
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached.read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": used.reasoning, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    });
    counts(usage, turn)
}

fn whole(turn: &Turn, call: &PendingReply<'_>, calls: &[Value], stop: &str) -> Value {
    let mut message = json!({"role": "assistant", "content": whole_text(turn), "refusal": null,
        "annotations": []});
    if let Some(thought) = &turn.think {
        message = with(message, json!({ "reasoning_content": thought }));
    }
    if !calls.is_empty() {
        message = with(message, json!({ "tool_calls": calls }));
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": stop});
    let keys = json!({"choices": [choice], "usage": usage(turn, call)});
    completion(call, "chat.completion", keys)
}

fn chunks(turn: &Turn, call: &PendingReply<'_>, calls: &[Value], stop: &str) -> Vec<String> {
    let setting = call.request.pointer("/stream_options/include_usage");
    let includes_usage = setting == Some(&Value::Bool(true));
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut keys = json!({ "choices": choices });
        if includes_usage {
            keys = with(keys, json!({ "usage": usage }));
        }
        data(&completion(call, "chat.completion.chunk", keys))
    };
    let piece = |delta: Value| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
        chunk(json!([choice]), None)
    };
    let mut events = vec![piece(json!({"role": "assistant", "content": ""}))];
    for half in halves(turn.think.as_deref().unwrap_or_default()) {
        events.push(piece(json!({ "reasoning_content": half })));
    }
    for half in halves(turn.say.as_deref().unwrap_or_default()) {
        events.push(piece(json!({ "content": half })));
    }
    for (index, (whole, one)) in calls.iter().zip(&turn.call).enumerate() {
        let function = json!({"name": one.name, "arguments": ""});
        let begin = with(whole.clone(), json!({"index": index, "function": function}));
        events.push(piece(json!({ "tool_calls": [begin] })));
        for half in halves(&one.text()) {
            let more = json!({"index": index, "function": {"arguments": half}});
            events.push(piece(json!({ "tool_calls": [more] })));
        }
    }
    for half in halves(turn.say_after.as_deref().unwrap_or_default()) {
        events.push(piece(json!({ "content": half })));
    }
    let last = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": stop}]);
    events.push(chunk(last, None));
    if includes_usage {
        events.push(chunk(json!([]), Some(usage(turn, call))));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}
