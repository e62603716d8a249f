//! The server side of OpenAI Responses. The rules for requests and their encrypted content are in
//! `rules`; this module handles valid requests. It stores only the ids of its replies' items.

mod reply;
mod stored;
mod weigh;

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::rules::Fault;
use crate::rules::openai_chat::error_body;
use crate::rules::openai_responses::{TABLE, refusal, unreadable, validate, validate_count};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Value, json};

use crate::answer::HttpAnswer;
use crate::api::{Api, Header, PendingReply, RequestKind, text};
use crate::encode::{AnswerPart, sse};
use crate::frames::Frames;
use crate::pieces::RequestPiece;
use crate::rules::table::Words;
use crate::turn::Turn;

pub use stored::MAX_STORED;
use stored::StoredItems;

/// A function that returns the requirements of the model with this name.
pub(crate) type ProfileOf = dyn Fn(&str) -> ResponsesProfile + Send + Sync;

/// The form of the answers.
pub(crate) static FRAMES: LazyLock<Frames> =
    LazyLock::new(|| Frames::parse(include_str!("../answers/responses.txt")));

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

    fn frames(&self) -> &'static Frames {
        &FRAMES
    }

    fn parts(&self, turn: &Turn, reply: &PendingReply<'_>) -> Vec<AnswerPart> {
        reply::parts(turn, reply, &self.profile(reply.request))
    }

    fn ended(&self, turn: &Turn, reply: &PendingReply<'_>, output: &[Value]) -> Value {
        self.stored.keep(reply.request, output);
        match reply::incomplete(turn) {
            Some(reason) => json!({"status": "incomplete", "incomplete": {"reason": reason}}),
            None => json!({ "status": "completed" }),
        }
    }

    fn event(&self, mut event: Value, number: usize) -> String {
        if let Some(place) = event.get_mut("sequence_number") {
            *place = number.into();
        }
        sse(&event)
    }

    fn failed_frame(&self, status: u16, error: &Value) -> &'static str {
        if status < 500 && text(error, "code") != "context_length_exceeded" {
            "error"
        } else {
            "failed"
        }
    }
}
