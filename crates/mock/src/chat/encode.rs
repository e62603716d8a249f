//! Encodes a turn in the format of Chat Completions: as one completion, or as the chunks of a
//! stream.

use plimsoll_wire::CallIdForm;
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Map, Value, json};

use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{PendingReply, counts, halves};
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
        AnswerBody::Whole(completion(turn, call, &calls, stop))
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
    let message = error.get("message").cloned().unwrap_or_default();
    let mut chunk = head(call, "chat.completion.chunk");
    let choice = json!({"index": 0, "delta": {"role": "assistant", "content": ""},
        "logprobs": null, "finish_reason": "error"});
    let error = json!({"code": failure.status, "message": message, "metadata": {"raw": error}});
    chunk.insert("error".into(), error);
    chunk.insert("choices".into(), json!([choice]));
    data(&Value::Object(chunk))
}

fn head(call: &PendingReply<'_>, object: &str) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("id".into(), format!("chatcmpl-mock{}", call.number).into());
    head.insert("object".into(), object.into());
    head.insert("created".into(), CREATED.into());
    head.insert("model".into(), call.model().into());
    head
}

fn data(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

/// Returns the text before and after the calls, since this protocol has a single field for both.
fn whole_text(turn: &Turn) -> Option<String> {
    match (&turn.say, &turn.say_after) {
        (None, None) => None,
        (say, after) => Some(
            [say.as_deref(), after.as_deref()]
                .into_iter()
                .flatten()
                .collect(),
        ),
    }
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

fn completion(turn: &Turn, call: &PendingReply<'_>, calls: &[Value], stop: &str) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), "assistant".into());
    message.insert("content".into(), json!(whole_text(turn)));
    message.insert("refusal".into(), Value::Null);
    message.insert("annotations".into(), json!([]));
    if let Some(thought) = &turn.think {
        message.insert("reasoning_content".into(), thought.as_str().into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": stop});
    let mut whole = head(call, "chat.completion");
    whole.insert("choices".into(), json!([choice]));
    whole.insert("usage".into(), usage(turn, call));
    Value::Object(whole)
}

fn chunks(turn: &Turn, call: &PendingReply<'_>, calls: &[Value], stop: &str) -> Vec<String> {
    let setting = call.request.pointer("/stream_options/include_usage");
    let includes_usage = setting == Some(&Value::Bool(true));
    let chunk = |choices: Value, usage: Option<Value>| {
        let mut chunk = head(call, "chat.completion.chunk");
        chunk.insert("choices".into(), choices);
        if includes_usage {
            chunk.insert("usage".into(), usage.unwrap_or_default());
        }
        data(&Value::Object(chunk))
    };
    let piece = |delta: Value| {
        let choice = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]);
        chunk(choice, None)
    };
    let mut events = vec![piece(json!({"role": "assistant", "content": ""}))];
    for half in halves(turn.think.as_deref().unwrap_or_default()) {
        events.push(piece(json!({ "reasoning_content": half })));
    }
    for half in halves(turn.say.as_deref().unwrap_or_default()) {
        events.push(piece(json!({ "content": half })));
    }
    for (index, (whole, one)) in calls.iter().zip(&turn.call).enumerate() {
        let mut begin = whole.clone();
        if let Some(begin) = begin.as_object_mut() {
            begin.insert("index".into(), index.into());
            begin.insert(
                "function".into(),
                json!({"name": one.name, "arguments": ""}),
            );
        }
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
