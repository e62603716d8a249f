//! The server side of OpenAI Responses. The rules for requests and their encrypted content are in
//! `rules`; this module handles valid requests. It stores only the ids of its replies' items.

mod encode;
mod events;
mod stored;
mod weigh;

use std::fmt;
use std::sync::Arc;

use crate::rules::Fault;
use crate::rules::openai_chat::error_body;
use crate::rules::openai_responses::{TABLE, refusal, unreadable, validate, validate_count};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Value, json};

use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{Api, Header, PendingReply, RequestKind, text};
use crate::chat;
use crate::pieces::RequestPiece;
use crate::rules::table::Words;
use crate::turn::Turn;

pub use stored::MAX_STORED;
use stored::StoredItems;

/// A function that returns the requirements of the model with this name.
pub(crate) type ProfileOf = dyn Fn(&str) -> ResponsesProfile + Send + Sync;

/// OpenAI's API, or a compatible one.
pub(crate) struct Responses {
    profile: Arc<ProfileOf>,
    stored: StoredItems,
}

impl Responses {
    pub(crate) fn new(profile: Arc<ProfileOf>) -> Self {
        Self {
            profile,
            stored: StoredItems::default(),
        }
    }

    fn profile(&self, request: &Value) -> ResponsesProfile {
        (self.profile)(text(request, "model"))
    }
}

impl fmt::Debug for Responses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Responses").finish_non_exhaustive()
    }
}

impl Api for Responses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn request_kind(&self, path: &str) -> Option<RequestKind> {
        match path {
            _ if path.ends_with("/responses") => Some(RequestKind::Reply),
            _ if path.ends_with("/responses/input_tokens") => Some(RequestKind::Count),
            _ => None,
        }
    }

    fn turned_away(&self, _: Header<'_>, request: &Value) -> Option<HttpAnswer> {
        stored::goes_on(request)
    }

    fn fault(&self, _: Header<'_>, request: &Value, kind: RequestKind) -> Option<Fault> {
        let profile = self.profile(request);
        let faults = match kind {
            RequestKind::Reply => validate(request, &profile),
            RequestKind::Count => validate_count(request, &profile),
        };
        let refers = profile.reasoning == ReasoningItems::Encrypted;
        let unknown = || self.stored.unknown(request).filter(|_| refers);
        let untied = || self.stored.untied(request).filter(|_| refers);
        let broken = faults.into_iter().next().or_else(untied);
        broken.or_else(|| unreadable(request)).or_else(unknown)
    }

    fn refusal(&self, fault: &Fault) -> (u16, Value) {
        refusal(fault)
    }

    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece> {
        weigh::pieces(request, counter)
    }

    /// Output does not count towards the window here.
    fn output(&self, _: &Value) -> Option<Tokens> {
        None
    }

    fn rated(&self, request: &Value, sent: Tokens) -> Tokens {
        let output = request.get("max_output_tokens").and_then(Value::as_u64);
        sent + Tokens(output.unwrap_or_default())
    }

    fn words(&self) -> &'static Words {
        &TABLE
    }

    fn error(&self, status: u16, kind: &str, code: Option<&str>, message: &str) -> HttpAnswer {
        let param = (code == Some("context_length_exceeded")).then_some("input");
        HttpAnswer::new(status, error_body(kind, param, code, message))
    }

    fn body(&self, turn: &Turn, call: &PendingReply<'_>) -> AnswerBody {
        let items = encode::items(turn, call, &self.profile(call.request));
        self.stored.keep(call.request, &items);
        if call.streams() {
            AnswerBody::Events(events::events(turn, call, &items))
        } else {
            AnswerBody::Whole(encode::ended(turn, call, &items))
        }
    }

    fn opening(&self) -> usize {
        events::OPENING
    }

    fn broken(&self, failure: &HttpAnswer, call: &PendingReply<'_>, after: usize) -> String {
        events::broken(failure, call, after)
    }

    fn counted(&self, tokens: Tokens) -> Value {
        json!({"object": "response.input_tokens", "input_tokens": tokens})
    }

    /// OpenAI does not publish its windows in the API.
    fn model(&self, id: &str, _: Option<Tokens>) -> Value {
        chat::model(id, None)
    }

    fn models(&self, _: &[String], descriptions: Vec<Value>) -> Value {
        chat::models(&descriptions)
    }
}
