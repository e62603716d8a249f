//! The server side of OpenAI Chat Completions: counting, refusals and answers. The rules for
//! requests are in the module `rules`.

mod encode;
mod refuse;

use crate::rules::Fault;
use crate::rules::openai_chat::{TABLE, error_body, refusal, validate};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};

use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{Api, Header, PendingReply, RequestKind, Size, list, with};
use crate::pieces::{RequestPiece, weigh};
use crate::rules::table::Words;
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

    fn words(&self) -> &'static Words {
        &TABLE
    }

    fn error(&self, status: u16, kind: &str, _: Option<&str>, message: &str) -> HttpAnswer {
        HttpAnswer::new(status, error_body(kind, None, None, message))
    }

    fn too_long(&self, size: Size) -> HttpAnswer {
        refuse::too_long(size, &self.0)
    }

    fn too_many(&self, _: &Value, requested: Tokens, limit: Tokens) -> HttpAnswer {
        refuse::too_many(requested, limit)
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

    fn model(&self, id: &str, window: Option<Tokens>) -> Value {
        model(id, window)
    }

    fn models(&self, _: &[String], descriptions: Vec<Value>) -> Value {
        models(&descriptions)
    }

    fn page(&self, path: &str, window: Option<Tokens>) -> Option<Value> {
        let settings = json!({ "n_ctx": window.filter(|_| path == "/props")? });
        Some(json!({"default_generation_settings": settings, "total_slots": 1}))
    }
}

/// Returns OpenAI's description of a model.
pub(crate) fn model(id: &str, window: Option<Tokens>) -> Value {
    let model = json!({"id": id, "object": "model", "created": 0, "owned_by": "plimsoll"});
    match window {
        Some(window) => with(model, json!({ "max_model_len": window })),
        None => model,
    }
}

/// Returns OpenAI's list of models.
pub(crate) fn models(descriptions: &[Value]) -> Value {
    json!({"object": "list", "data": descriptions})
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
