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
use crate::api::{Api, Header, PendingReply, RequestKind, ServerInfo, Size, list, text, with};
use crate::pieces::{RequestPiece, weigh};
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

fn error(status: u16, message: &str) -> HttpAnswer {
    let (name, ..) = TABLE.failure(status);
    let error = json!({"code": status, "message": message, "status": name});
    HttpAnswer::new(status, json!({ "error": error }))
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

    fn too_long(&self, _: &Value, size: Size) -> HttpAnswer {
        let Size { used, window, .. } = size;
        let words = format!(
            "The input token count ({used}) exceeds the maximum number of tokens allowed ({window})."
        );
        error(400, &words)
    }

    fn too_many(&self, request: &Value, _: Tokens, limit: Tokens) -> HttpAnswer {
        let model = text(request, "model");
        let words = format!(
            "You exceeded your current quota, please check your plan and billing details.\n* Quota \
             exceeded for metric: generativelanguage.googleapis.com/\
             generate_content_paid_tier_input_token_count, limit: {limit}, model: {model}"
        );
        error(429, &words)
    }

    fn failure(&self, status: u16, message: Option<&str>) -> HttpAnswer {
        let (.., words) = TABLE.failure(status);
        error(status, message.unwrap_or(words))
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

    fn about(&self, path: &str, info: &ServerInfo<'_>) -> Option<HttpAnswer> {
        let model = |id: &str| {
            json!({
                "name": format!("models/{id}"),
                "version": "001",
                "displayName": id,
                "inputTokenLimit": info.window.unwrap_or(Tokens(1_048_576)),
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": METHODS,
            })
        };
        if path.ends_with("/models") {
            let models: Vec<Value> = info.models.iter().map(|id| model(id)).collect();
            return Some(HttpAnswer::new(200, json!({ "models": models })));
        }
        let (_, id) = path.split_once("/models/")?;
        Some(HttpAnswer::new(200, model(id)))
    }

    fn nowhere(&self, method: &str, path: &str) -> HttpAnswer {
        let words = format!(
            "Not Found: {method} {path}; this mock speaks Gemini, at \
             /v1beta/models/MODEL:generateContent and :streamGenerateContent"
        );
        error(404, &words)
    }
}

fn tokens_of(part: &Value, counter: &dyn TokenCounter) -> Tokens {
    match part.get("text") {
        Some(said) => weigh(said, counter),
        None if part.get("inlineData").is_some() => weigh(&json!({"type": "image_url"}), counter),
        None => counter.text(&part.to_string()),
    }
}
