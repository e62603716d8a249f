//! The server side of OpenAI Chat Completions: counting, refusals and answers. The rules for
//! requests are in the module `rules`.

mod encode;
mod refuse;

use crate::rules::Fault;
use crate::rules::openai_chat::{error_body, refusal, validate};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};

use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{Api, Header, PendingReply, RequestKind, ServerInfo, Size, list, with};
use crate::pieces::{RequestPiece, weigh};
use crate::turn::Turn;

/// The tokens of a message in addition to its text.
const FRAME: Tokens = Tokens(4);

/// A server of Chat Completions with the strictness of this dialect.
#[derive(Debug)]
pub(crate) struct Chat(pub(crate) Dialect);

impl Api for Chat {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn request_kind(&self, path: &str) -> Option<RequestKind> {
        path.ends_with("/chat/completions")
            .then_some(RequestKind::Reply)
    }

    fn fault(&self, _: Header<'_>, request: &Value, _: RequestKind) -> Option<Fault> {
        validate(request, &self.0).into_iter().next()
    }

    fn refusal(&self, fault: &Fault) -> (u16, Value) {
        refusal(fault, &self.0)
    }

    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece> {
        let tools = request.get("tools").map(Value::to_string);
        let tools = tools.map(|text| RequestPiece::new(&text, counter.text(&text) + FRAME));
        let messages = list(request, "messages").iter();
        let messages = messages.map(|message| {
            let tokens = weight(message, counter) + FRAME;
            RequestPiece::new(&message.to_string(), tokens)
        });
        tools.into_iter().chain(messages).collect()
    }

    fn output(&self, request: &Value) -> Option<Tokens> {
        let keys = ["max_completion_tokens", "max_tokens"];
        let limit = keys.iter().find_map(|key| request.get(key)?.as_u64());
        limit.map(Tokens).filter(|_| refuse::counts_output(&self.0))
    }

    fn too_long(&self, _: &Value, size: Size) -> HttpAnswer {
        refuse::too_long(size, &self.0)
    }

    fn too_many(&self, _: &Value, requested: Tokens, limit: Tokens) -> HttpAnswer {
        refuse::too_many(requested, limit)
    }

    fn failure(&self, status: u16, message: Option<&str>) -> HttpAnswer {
        refuse::failure(status, message)
    }

    fn body(&self, turn: &Turn, call: &PendingReply<'_>) -> AnswerBody {
        encode::say(turn, call, &self.0)
    }

    fn opening(&self) -> usize {
        1
    }

    fn broken(&self, failure: &HttpAnswer, call: &PendingReply<'_>, _: usize) -> String {
        encode::broken(failure, call, &self.0)
    }

    fn counted(&self, tokens: Tokens) -> Value {
        json!({ "input_tokens": tokens })
    }

    fn about(&self, path: &str, info: &ServerInfo<'_>) -> Option<HttpAnswer> {
        if path == "/props" {
            let window = info.window?;
            let props = json!({"default_generation_settings": {"n_ctx": window}, "total_slots": 1});
            return Some(HttpAnswer::new(200, props));
        }
        models(path, info, info.window)
    }

    fn nowhere(&self, method: &str, path: &str) -> HttpAnswer {
        nowhere(method, path, "Chat Completions, at /v1/chat/completions")
    }
}

/// Returns OpenAI's list of models, or one of them.
pub(crate) fn models(
    path: &str,
    info: &ServerInfo<'_>,
    window: Option<Tokens>,
) -> Option<HttpAnswer> {
    let model = |id: &str| {
        let model = json!({"id": id, "object": "model", "created": 0, "owned_by": "plimsoll"});
        match window {
            Some(window) => with(model, json!({ "max_model_len": window })),
            None => model,
        }
    };
    if matches!(path, "/v1/models" | "/models") {
        let data: Vec<Value> = info.models.iter().map(|id| model(id)).collect();
        return Some(HttpAnswer::new(
            200,
            json!({"object": "list", "data": data}),
        ));
    }
    let (_, id) = path.split_once("/v1/models/")?;
    Some(HttpAnswer::new(200, model(id)))
}

/// Returns OpenAI's answer for an unknown path.
pub(crate) fn nowhere(method: &str, path: &str, speaks: &str) -> HttpAnswer {
    let words = format!("Invalid URL ({method} {path}); this mock speaks {speaks}");
    HttpAnswer::new(404, error_body("invalid_request_error", None, None, &words))
}

/// Returns the number of tokens in a message.
fn weight(message: &Value, counter: &dyn TokenCounter) -> Tokens {
    let of = |key: &str| weigh(message.get(key).unwrap_or(&Value::Null), counter);
    let calls = list(message, "tool_calls").iter();
    let calls = calls.filter_map(|call| call.get("function"));
    let calls: Tokens = calls
        .flat_map(|function| [function.get("name"), function.get("arguments")])
        .flatten()
        .map(|text| weigh(text, counter))
        .sum();
    of("content") + of("reasoning_content") + calls
}
