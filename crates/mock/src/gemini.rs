//! The server side of Gemini's `generateContent`: paths, counting, refusals and answers. The rules for
//! requests are in the module `rules`.

mod encode;

use std::borrow::Cow;

use crate::rules::Fault;
use crate::rules::gemini::{TABLE, refusal, validate};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::gemini::GeminiProfile;
use serde_json::{Value, json};

use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{Api, Header, PendingReply, RequestKind, list, text, with};
use crate::pieces::{RequestPiece, weigh};
use crate::rules::table::Words;
use crate::turn::Turn;

/// The tokens of a content in addition to its parts.
const FRAME: Tokens = Tokens(4);
/// The methods of a model, after the colon of its path.
const METHODS: [&str; 3] = ["generateContent", "streamGenerateContent", "countTokens"];

/// Google's API. The rules for a request depend on the model in its path.
#[derive(Debug)]
pub(crate) struct Gemini;

/// Returns the model and the method of a path such as `/v1beta/models/gemini-2.5-pro:countTokens`.
fn called(path: &str) -> Option<(&str, &str)> {
    let (_, call) = path.split_once("/models/")?;
    call.rsplit_once(':')
}

pub(crate) fn profile(request: &Value) -> GeminiProfile {
    GeminiProfile::of_model(text(request, "model"))
}

impl Api for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn base_path(&self) -> &'static str {
        // Google's own clients append the version themselves.
        ""
    }

    fn request_kind(&self, path: &str) -> Option<RequestKind> {
        match called(path)?.1 {
            "generateContent" | "streamGenerateContent" => Some(RequestKind::Reply),
            "countTokens" => Some(RequestKind::Count),
            _ => None,
        }
    }

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

    fn body(&self, turn: &Turn, call: &PendingReply<'_>) -> AnswerBody {
        encode::reply(turn, call)
    }

    fn opening(&self) -> usize {
        0
    }

    fn broken(&self, failure: &HttpAnswer, _: &PendingReply<'_>, _: usize) -> String {
        match &failure.body {
            AnswerBody::Whole(error) => encode::event(error),
            _ => String::new(),
        }
    }

    fn counted(&self, tokens: Tokens) -> Value {
        json!({ "totalTokens": tokens })
    }

    fn model(&self, id: &str, window: Option<Tokens>) -> Value {
        json!({
            "name": format!("models/{id}"),
            "version": "001",
            "displayName": id,
            "inputTokenLimit": window.unwrap_or(Tokens(1_048_576)),
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": METHODS,
        })
    }

    fn models(&self, _: &[String], descriptions: Vec<Value>) -> Value {
        json!({ "models": descriptions })
    }
}

fn tokens_of(part: &Value, counter: &dyn TokenCounter) -> Tokens {
    match part.get("text") {
        Some(said) => weigh(said, counter),
        None if part.get("inlineData").is_some() => weigh(&json!({"type": "image_url"}), counter),
        None => counter.text(&part.to_string()),
    }
}
