//! OpenAI Chat Completions as a server speaks it: what a request weighs, how it is refused, how a turn
//! is said. The rules of a request are `wire`'s.

use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::openai_chat::{Dialect, Voice, refusal, validate};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Said};
use crate::prompt_cache::Piece;
use crate::script::Turn;

/// What a message weighs besides its text.
const FRAME: Tokens = Tokens(4);

/// Whether the server takes a request; otherwise its refusal.
pub(crate) fn judge(request: &Value, dialect: &Dialect) -> Result<(), Answer> {
    match validate(request, dialect).first() {
        None => Ok(()),
        Some(fault) => {
            let (status, body) = refusal(fault, dialect);
            Err(Answer::new(status, body))
        }
    }
}

/// A request in pieces, as it would stand in a prompt: the tools, then each message.
pub(crate) fn pieces(request: &Value, counter: &dyn TokenCounter) -> Vec<Piece> {
    let list = |key: &str| request.get(key).and_then(Value::as_array);
    let tools = list("tools").map(|tools| Value::from(tools.clone()).to_string());
    let messages = list("messages").into_iter().flatten();
    let weigh = |text: &str| counter.text(text) + FRAME;
    let tools = tools.map(|text| Piece::new(&text, weigh(&text)));
    let messages = messages.map(|message| Piece::new(&message.to_string(), weigh(&said(message))));
    tools.into_iter().chain(messages).collect()
}

/// The texts of a message: what a tokenizer would see of it.
fn said(message: &Value) -> String {
    let mut text = String::new();
    let mut add = |value: Option<&Value>| match value {
        Some(Value::String(one)) => text.push_str(one),
        Some(Value::Array(parts)) => {
            for part in parts {
                let part = part.get("text").and_then(Value::as_str);
                text.push_str(part.unwrap_or_default());
            }
        }
        _ => {}
    };
    add(message.get("content"));
    add(message.get("reasoning_content"));
    let calls = message.get("tool_calls").and_then(Value::as_array);
    for function in calls
        .into_iter()
        .flatten()
        .filter_map(|call| call.get("function"))
    {
        add(function.get("name"));
        add(function.get("arguments"));
    }
    text
}

/// The refusal of a request of `used` tokens that does not fit `window`, as the server words it.
pub(crate) fn too_long(used: Tokens, window: Tokens, dialect: &Dialect) -> Answer {
    let body = match dialect.voice {
        Voice::Template => json!({"error": {
            "code": 400,
            "message": format!("request ({used} tokens) exceeds the available context size ({window} tokens), try increasing it"),
            "type": "exceed_context_size_error",
            "n_prompt_tokens": used,
            "n_ctx": window,
        }}),
        Voice::Mistral => json!({
            "object": "error",
            "message": format!("Prompt contains {used} tokens and 0 draft tokens, too large for model with {window} maximum context length"),
            "type": "invalid_request_prompt",
            "param": null,
            "code": "3051",
        }),
        Voice::Kimi => json!({"error": {
            "message": format!("Invalid request: Your request exceeded model token limit: {window}"),
            "type": "invalid_request_error",
        }}),
        Voice::OpenAi | Voice::DeepSeek => json!({"error": {
            "message": format!("This model's maximum context length is {window} tokens. However, your messages resulted in {used} tokens. Please reduce the length of the messages."),
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }}),
    };
    Answer::new(400, body)
}

/// The refusal of a request of more tokens than may be sent in a minute, as Groq words it.
pub(crate) fn too_many(used: Tokens, limit: Tokens) -> Answer {
    let message = format!(
        "Request too large for model `mock` in organization `org_mock` service tier `on_demand` on tokens per minute (TPM): Limit {limit}, Requested {used}, please reduce your message size and try again."
    );
    let error = json!({"message": message, "type": "tokens", "code": "rate_limit_exceeded"});
    Answer::new(413, json!({ "error": error }))
}

/// A failure that the script asks for.
pub(crate) fn failure(status: u16, turn: &Turn) -> Answer {
    let message = turn.message.as_deref().unwrap_or(match status {
        401 | 403 => "Incorrect API key provided.",
        429 => "Rate limit reached for requests.",
        503 => "The server is overloaded or not ready yet.",
        _ => "The server had an error while processing your request.",
    });
    let kind = match status {
        401 | 403 => "authentication_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    let error = json!({"message": message, "type": kind, "param": null, "code": null});
    let mut answer = Answer::new(status, json!({ "error": error }));
    answer.retry_after = turn.retry_after;
    answer
}

/// What a request took, as it is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) input: Tokens,
    pub(crate) cached: Tokens,
    pub(crate) output: Tokens,
}

/// A turn, streamed if the request wants it so.
pub(crate) fn say(turn: &Turn, request: &Value, number: u64, used: Used) -> Said {
    let model = request.get("model").cloned().unwrap_or(Value::Null);
    let id = format!("chatcmpl-mock{number}");
    let stop = turn.stop.as_deref();
    let stop = stop.unwrap_or(match turn.call.is_empty() {
        true => "stop",
        false => "tool_calls",
    });
    let calls: Vec<Value> = turn
        .call
        .iter()
        .enumerate()
        .map(|(at, call)| {
            json!({
                "id": format!("call_{number}_{at}"),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments()},
            })
        })
        .collect();
    let usage = json!({
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    });
    let flag = |place: &str| request.pointer(place) == Some(&Value::Bool(true));
    if !flag("/stream") {
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        message.insert("content".into(), json!(turn.say));
        message.insert("refusal".into(), Value::Null);
        if let Some(thought) = &turn.think {
            message.insert("reasoning_content".into(), thought.as_str().into());
        }
        if !calls.is_empty() {
            message.insert("tool_calls".into(), calls.into());
        }
        return Said::Whole(json!({
            "id": id, "object": "chat.completion", "created": CREATED, "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": stop}],
            "usage": usage,
        }));
    }
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({
            "id": id, "object": "chat.completion.chunk", "created": CREATED, "model": model,
            "choices": choices, "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let piece = |delta: Value| {
        let choice = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]);
        chunk(choice, Value::Null)
    };
    let mut events = vec![piece(json!({"role": "assistant", "content": ""}))];
    for half in halves(turn.think.as_deref()) {
        events.push(piece(json!({ "reasoning_content": half })));
    }
    for half in halves(turn.say.as_deref()) {
        events.push(piece(json!({ "content": half })));
    }
    for (at, call) in turn.call.iter().enumerate() {
        let begin = json!({
            "index": at,
            "id": format!("call_{number}_{at}"),
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        });
        events.push(piece(json!({ "tool_calls": [begin] })));
        for half in halves(Some(&call.arguments())) {
            let more = json!({"index": at, "function": {"arguments": half}});
            events.push(piece(json!({ "tool_calls": [more] })));
        }
    }
    let last = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": stop}]);
    events.push(chunk(last, Value::Null));
    if flag("/stream_options/include_usage") {
        events.push(chunk(json!([]), usage));
    }
    events.push("data: [DONE]\n\n".to_owned());
    Said::Events(events)
}

/// When every answer was made: the same on every machine.
const CREATED: u64 = 1_700_000_000;

/// A text in two pieces.
fn halves(text: Option<&str>) -> impl Iterator<Item = &str> {
    let text = text.unwrap_or_default();
    let (one, other) = text
        .split_at_checked(text.floor_char_boundary(text.len() / 2))
        .unwrap_or((text, ""));
    [one, other].into_iter().filter(|half| !half.is_empty())
}
