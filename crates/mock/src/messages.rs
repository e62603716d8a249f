//! The server side of Anthropic Messages: headers, counting, refusals and answers. The rules for requests
//! and thinking are in the module `rules`.

mod admission;
mod reply;
mod weigh;

use std::sync::LazyLock;

use crate::rules::Fault;
use crate::rules::anthropic::{
    TABLE, error_body, refusal, undeclared, unsigned, validate_announced,
};
use plimsoll_context::{TokenCounter, Tokens};
use plimsoll_wire::anthropic::MessagesProfile;
use serde_json::{Value, json};

use crate::answer::HttpAnswer;
use crate::api::{Api, Header, PendingReply, RequestKind, text};
use crate::cache::Caching;
use crate::encode::AnswerPart;
use crate::frames::Frames;
use crate::pieces::RequestPiece;
use crate::rules::table::Words;
use crate::turn::Turn;
use admission::{admission, validate_count};

/// The form of the answers.
pub(crate) static FRAMES: LazyLock<Frames> =
    LazyLock::new(|| Frames::parse(include_str!("../answers/messages.txt")));

/// Anthropic's API. The rules for a request depend on the model that it names.
#[derive(Debug)]
pub(crate) struct Messages {
    /// Whether a client needs an API key. Any key is accepted.
    pub(crate) needs_key: bool,
}

fn profile(request: &Value) -> MessagesProfile {
    MessagesProfile::of_model(text(request, "model"))
}

fn error(status: u16, kind: &str, message: &str) -> HttpAnswer {
    HttpAnswer::new(status, error_body(kind, message))
}

impl Api for Messages {
    fn turned_away(&self, header: Header<'_>, request: &Value) -> Option<HttpAnswer> {
        let header = |name: &str| match name {
            "x-api-key" if !self.needs_key => Some("none".to_owned()),
            name => header(name),
        };
        admission(&header, request)
    }

    fn fault(&self, header: Header<'_>, request: &Value, kind: RequestKind) -> Option<Fault> {
        let profile = profile(request);
        let faults = match kind {
            RequestKind::Reply => {
                let betas = header("anthropic-beta").unwrap_or_default();
                validate_announced(request, &profile, &betas)
            }
            RequestKind::Count => validate_count(request, &profile),
        };
        let fault = faults.into_iter().next();
        fault
            .or_else(|| undeclared(request))
            .or_else(|| unsigned(request))
    }

    fn refusal(&self, fault: &Fault) -> (u16, Value) {
        refusal(fault)
    }

    fn pieces(&self, request: &Value, counter: &dyn TokenCounter) -> Vec<RequestPiece> {
        weigh::pieces(request, counter)
    }

    fn output(&self, request: &Value) -> Option<Tokens> {
        request.get("max_tokens")?.as_u64().map(Tokens)
    }

    /// Output has its own limit.
    fn rated(&self, _: &Value, sent: Tokens) -> Tokens {
        sent
    }

    fn caching(&self, request: &Value) -> Caching {
        Caching::Marked {
            minimum: profile(request).min_cacheable,
        }
    }

    fn words(&self) -> &'static Words {
        &TABLE
    }

    fn error(&self, status: u16, kind: &str, _: Option<&str>, message: &str) -> HttpAnswer {
        error(status, kind, message)
    }

    fn frames(&self) -> &'static Frames {
        &FRAMES
    }

    fn parts(&self, turn: &Turn, reply: &PendingReply<'_>) -> Vec<AnswerPart> {
        reply::parts(turn, reply)
    }

    fn ended(&self, turn: &Turn, _: &PendingReply<'_>, _: &[Value]) -> Value {
        let usual = match turn.call.as_slice() {
            [] => "end_turn",
            _ => "tool_use",
        };
        json!({ "stop": turn.stop.as_deref().unwrap_or(usual) })
    }

    fn max_output(&self, id: &str) -> Option<u64> {
        MessagesProfile::of_model(id).max_output
    }
}
