//! Encodes a turn in the format of `generateContent`: as one response, or as the responses of a
//! stream, each with the next parts.

use serde_json::{Value, json};

use super::profile;
use crate::answer::AnswerBody;
use crate::api::{PendingReply, counts, halves, with};
use crate::turn::{Call, Turn};

/// The finish reason of a call whose arguments are not a JSON object.
const MALFORMED: &str = "MALFORMED_FUNCTION_CALL";

/// Returns the body for a turn, streamed if the request asks for it.
pub(crate) fn reply(turn: &Turn, call: &PendingReply<'_>) -> AnswerBody {
    let is_malformed = turn.call.iter().any(|call| arguments(call).is_none());
    let usual = if is_malformed { MALFORMED } else { "STOP" };
    let stop = turn.stop.as_deref().unwrap_or(usual);
    if !call.streams() {
        let parts = parts(turn, call, |text| vec![text]);
        return AnswerBody::Whole(response(turn, call, parts, Some(stop)));
    }
    let mut parts = parts(turn, call, |text| halves(text).collect());
    let last: Vec<Value> = parts.pop().into_iter().collect();
    let begun = parts.into_iter();
    let begun = begun.map(|part| response(turn, call, vec![part], None));
    let events = begun.chain([response(turn, call, last, Some(stop))]);
    AnswerBody::Events(events.map(|response| event(&response)).collect())
}

/// Formats one response of a stream.
pub(crate) fn event(response: &Value) -> String {
    format!("data: {response}\r\n\r\n")
}

/// Returns the parts of a turn. `split` divides a text into the texts of its parts.
fn parts(turn: &Turn, call: &PendingReply<'_>, split: fn(&str) -> Vec<&str>) -> Vec<Value> {
    let shows_thoughts = shows_thoughts(call.request);
    let thought = turn.think.as_deref().filter(|_| shows_thoughts);
    let mut parts = Vec::new();
    for half in thought.into_iter().flat_map(split) {
        parts.push(json!({"text": half, "thought": true}));
    }
    for half in turn.say.as_deref().into_iter().flat_map(split) {
        parts.push(json!({"text": half}));
    }
    parts.extend(turn.blocks.iter().cloned());
    let signs = profile(call.request).signatures_required;
    for (at, one) in turn.call.iter().enumerate() {
        let Some(args) = arguments(one) else {
            continue;
        };
        let mut function = json!({"name": one.name, "args": args});
        if let Some(id) = &one.id {
            function = with(function, json!({ "id": id }));
        }
        // Of parallel calls only the first is signed.
        parts.push(if signs && at == 0 {
            json!({"functionCall": function, "thoughtSignature": signature(call.number)})
        } else {
            json!({ "functionCall": function })
        });
    }
    for half in turn.say_after.as_deref().into_iter().flat_map(split) {
        parts.push(json!({"text": half}));
    }
    parts
}

/// Checks whether a request asks for thoughts. The API accepts keys in two spellings.
fn shows_thoughts(request: &Value) -> bool {
    let key = |value: &Value, camel: &str, snake: &str| {
        let found = value.get(camel).or_else(|| value.get(snake));
        found.cloned().unwrap_or_default()
    };
    let config = key(request, "generationConfig", "generation_config");
    let thinking = key(&config, "thinkingConfig", "thinking_config");
    key(&thinking, "includeThoughts", "include_thoughts") == Value::Bool(true)
}

/// Returns the arguments of a call. `None` if they are not a JSON object.
fn arguments(call: &Call) -> Option<Value> {
    let arguments: Value = serde_json::from_str(&call.text()).ok()?;
    arguments.is_object().then_some(arguments)
}

/// Returns a signature as the API has them: bytes in base64.
fn signature(number: u64) -> String {
    let digest = blake3::hash(&number.to_le_bytes()).to_hex();
    digest.as_str().to_owned()
}

fn response(turn: &Turn, call: &PendingReply<'_>, parts: Vec<Value>, stop: Option<&str>) -> Value {
    let used = call.used;
    let output = used.output.minus(used.reasoning);
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(stop) = stop {
        candidate = with(candidate, json!({ "finishReason": stop }));
    }
    let usage = json!({
        "promptTokenCount": used.input,
        "cachedContentTokenCount": used.cached.read,
        "candidatesTokenCount": output,
        "thoughtsTokenCount": used.reasoning,
        "totalTokenCount": used.input + used.output,
    });
    json!({
        "candidates": [candidate],
        "usageMetadata": counts(usage, turn),
        "modelVersion": call.model(),
        "responseId": format!("mock{}", call.number),
    })
}
