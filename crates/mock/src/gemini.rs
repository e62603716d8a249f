//! The server side of Gemini's `generateContent`: paths, counting, refusals and answers. The rules for
//! requests are in the module `rules`.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::rules::Fault;
use crate::rules::gemini::{TABLE, refusal, snake_case, validate};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::gemini::GeminiProfile;
use serde_json::{Value, json};

use crate::answer::HttpAnswer;
use crate::api::{Api, Header, PendingReply, RequestKind, list, text, with};
use crate::encode::{AnswerPart, TurnPart, turn_parts};
use crate::frames::{Frames, Values};
use crate::pieces::{RequestPiece, weigh};
use crate::rules::table::Words;
use crate::turn::{Call, Turn};

/// The tokens of a content in addition to its parts.
const FRAME: Tokens = Tokens(4);
/// The finish reason of a call whose arguments are not a JSON object.
const MALFORMED: &str = "MALFORMED_FUNCTION_CALL";

/// The form of the answers.
pub(crate) static FRAMES: LazyLock<Frames> =
    LazyLock::new(|| Frames::parse(include_str!("../answers/gemini.txt")));

/// Google's API. The rules for a request depend on the model in its path.
#[derive(Debug)]
pub(crate) struct Gemini;

/// Returns the model and the method of a path such as `/v1beta/models/gemini-2.5-pro:countTokens`.
fn called(path: &str) -> Option<(&str, &str)> {
    let (_, call) = path.split_once("/models/")?;
    call.rsplit_once(':')
}

fn profile(request: &Value) -> GeminiProfile {
    GeminiProfile::of_model(text(request, "model"))
}

impl Api for Gemini {
    /// Adds the model, and whether the reply is streamed, which other APIs have in the body.
    fn with_path<'r>(&self, path: &str, request: &'r Value) -> Cow<'r, Value> {
        let Some((model, method)) = called(path) else {
            return Cow::Borrowed(request);
        };
        // A count may contain a whole request.
        let inner = request.get("generateContentRequest").unwrap_or(request);
        let is_stream = method == "streamGenerateContent";
        let keys = inner.as_object().cloned().unwrap_or_default();
        Cow::Owned(with(
            keys.into(),
            json!({"model": model, "stream": is_stream}),
        ))
    }

    fn fault(&self, _: Header<'_>, request: &Value, _: RequestKind) -> Option<Fault> {
        validate(request, &profile(request)).into_iter().next()
    }

    fn refusal(&self, fault: &Fault) -> (u16, Value) {
        refusal(fault)
    }

    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece> {
        let system = request.get("systemInstruction");
        let system = system.or_else(|| request.get("system_instruction"));
        let heads = system.into_iter().chain(request.get("tools"));
        let mut pieces: Vec<RequestPiece> = heads
            .map(|head| RequestPiece::new(&head.to_string(), counter.text(&head.to_string())))
            .collect();
        for content in list(request, "contents") {
            let parts = list(content, "parts").iter();
            let tokens: Tokens = parts.map(|part| tokens_of(part, counter)).sum();
            pieces.push(RequestPiece::new(&content.to_string(), tokens + FRAME));
        }
        pieces
    }

    /// Output has its own limit.
    fn output(&self, _: &Value) -> Option<Tokens> {
        None
    }

    fn words(&self) -> &'static Words {
        &TABLE
    }

    fn error(&self, status: u16, kind: &str, _: Option<&str>, message: &str) -> HttpAnswer {
        let error = json!({"code": status, "message": message, "status": kind});
        HttpAnswer::new(status, json!({ "error": error }))
    }

    fn frames(&self) -> &'static Frames {
        &FRAMES
    }

    fn parts(&self, turn: &Turn, reply: &PendingReply<'_>) -> Vec<AnswerPart> {
        let thought = turn.think.as_deref();
        let thought = thought.filter(|_| shows_thoughts(reply.request));
        let signs = profile(reply.request).signatures_required;
        let parts = turn_parts(turn, thought).into_iter();
        let parts = parts.filter_map(|part| match part {
            TurnPart::Thought(text) => Some(AnswerPart::text("thought", text, json!({}))),
            TurnPart::Text { text, .. } => Some(AnswerPart::text("text", text, json!({}))),
            TurnPart::Block(block) => Some(AnswerPart::new("block", json!({ "block": block }))),
            TurnPart::Call(at, call) => {
                // Of parallel calls only the first is signed.
                let signature = (signs && at == 0).then(|| signature(reply.number));
                let values = json!({
                    "name": call.name,
                    "arguments": arguments(call)?,
                    "id": call.id,
                    "signature": signature,
                });
                Some(AnswerPart::new("call", values))
            }
        });
        parts.collect()
    }

    fn ended(&self, turn: &Turn, _: &PendingReply<'_>, _: &[Value]) -> Value {
        let is_malformed = turn.call.iter().any(|call| arguments(call).is_none());
        let usual = if is_malformed { MALFORMED } else { "STOP" };
        json!({ "stop": turn.stop.as_deref().unwrap_or(usual) })
    }

    fn stream(&self, mut parts: Vec<Value>, _: &Values<'_>, ended: &Values<'_>) -> Vec<Value> {
        let last: Vec<Value> = parts.pop().into_iter().collect();
        let response = |values: Value| FRAMES.one("answer", &ended.with(values));
        let begun = parts.iter();
        let begun = begun.map(|part| response(json!({"output": [part], "stop": null})));
        begun.chain([response(json!({ "output": last }))]).collect()
    }

    fn event(&self, event: Value, _: usize) -> String {
        format!("data: {event}\r\n\r\n")
    }
}

/// Checks whether a request asks for thoughts. The API accepts keys in two spellings.
fn shows_thoughts(request: &Value) -> bool {
    let config = request.get("generationConfig");
    let config = config.or_else(|| request.get("generation_config"));
    let config = config.map(snake_case).unwrap_or_default();
    config.pointer("/thinking_config/include_thoughts") == Some(&Value::Bool(true))
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

fn tokens_of(part: &Value, counter: &dyn TokenCounter) -> Tokens {
    match part.get("text") {
        Some(said) => weigh(said, counter),
        None if part.get("inlineData").is_some() => weigh(&json!({"type": "image_url"}), counter),
        None => counter.text(&part.to_string()),
    }
}
