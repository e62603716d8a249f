//! [`Line`]: what every provider over HTTP has, whatever it says over it: the connection, the
//! model, the key, what no text may hold, and the window that the server reports. Not a provider;
//! `chat.rs`, `responses.rs` and `messages.rs` are.

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use plimsoll_wire::ToolChoice;
use plimsoll_wire::WireError;
use plimsoll_wire::overflow::silent::{self, Known, Silent};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::discovery::{self, Loading, Report};
use crate::http::{Http, error_body, packed, pieces};
use crate::incoming::Incoming;
use crate::model_ref::ModelRef;
use crate::models::ModelFacts;
use crate::receive::receive;
use crate::refusal::{Asked, Call};
use crate::vendor::{Place, Tells};
use crate::weigh::Scales;
use plimsoll_core::Secret;

/// What every provider over HTTP has.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) http: Http,
    pub(crate) model: ModelRef,
    /// `provider/name`.
    pub(crate) full_name: String,
    /// Where the key comes from, if there is one.
    pub(crate) key_from: Option<String>,
    /// What no error may hold: the key, the values of headers and of the address.
    pub(crate) secrets: Vec<Secret>,
    /// Those of them that are keys for certain.
    pub(crate) keys: Vec<Secret>,
    pub(crate) tells: Tells,
    /// Further keys of every request's body.
    pub(crate) extra: Map<String, Value>,
    /// What the server reported; empty until it answered.
    pub(crate) reported: OnceCell<Option<Tokens>>,
    /// What is known of the model.
    pub(crate) facts: ModelFacts,
    /// Whether it says what a request weighs.
    pub(crate) scales: Scales,
}

/// Whether the model may call tools, in the words of the wires.
pub(crate) fn tool_choice(request: &Request) -> ToolChoice {
    match request.tool_choice {
        plimsoll_agent::ToolChoice::Auto => ToolChoice::Auto,
        plimsoll_agent::ToolChoice::None => ToolChoice::None,
    }
}

/// A request that its wire cannot say was refused before it was sent.
pub(crate) fn unrendered(error: &WireError) -> Failure {
    Failure::Refused {
        status: None,
        message: error.to_string(),
    }
}

/// The server did not answer: it may the next time.
struct Unanswered;

impl Line {
    /// Where the model is, as a name of what was learned there.
    pub(crate) fn endpoint(&self) -> String {
        let vendor = self.model.vendor();
        // Our own server has another port each time.
        if vendor.place == Place::Ours {
            return self.full_name.clone();
        }
        let endpoint = format!("{} {}", self.http.base, self.model.name());
        let secrets = self.secrets.iter();
        secrets.fold(endpoint, |text, secret| secret.strike_out(text))
    }

    /// The window that the server reports.
    pub(crate) async fn window(&self) -> Option<Tokens> {
        let reported = self.reported.get_or_try_init(|| self.report()).await;
        reported.ok().copied().flatten()
    }

    /// The window as far as it is known without asking.
    pub(crate) fn known_window(&self) -> Option<Tokens> {
        self.facts.window.map(|fact| fact.value)
    }

    /// Returns the tokens of an answer to ask for: what the request says, or less if the user says that
    /// the model writes less.
    ///
    /// A number that only says what the window or a limit of the run leaves is also lowered to what is
    /// published of the model, since a server refuses more than its model writes.
    pub(crate) fn most(&self, request: &Request) -> Option<Tokens> {
        let asked = request.max_output?;
        let nobody_asked = request.expects.room == Some(asked);
        let facts = self.facts.max_output.as_ref();
        let most = facts.filter(|most| most.is_own() || nobody_asked);
        Some(most.map_or(asked, |most| asked.min(most.value)))
    }

    /// Sends a request and reads the reply to it, each piece handed on as it comes.
    pub(crate) async fn call<I: Incoming>(
        &self,
        path: &str,
        body: Vec<u8>,
        asked: Asked,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let headers = HeaderMap::new();
        self.call_with::<I>(path, headers, body, asked, deltas)
            .await
    }

    /// The same with further headers.
    pub(crate) async fn call_with<I: Incoming>(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        asked: Asked,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let call = self.call_of(asked);
        let answer = self.http.post(path, headers, body).await;
        let answer = answer.map_err(|silence| call.silence(&silence))?;
        let idle = self.http.timeouts.idle;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            deltas(Delta::Refused { status });
            let headers = answer.headers().clone();
            let body = error_body(pieces(answer), idle).await;
            return Err(call.refused(status, &headers, &body));
        }
        if let Some(packed) = packed(answer.headers()) {
            return Err(call.packed(&packed));
        }
        let reply = receive::<I, _, _>(pieces(answer), idle, deltas).await;
        reply.map_err(|broken| call.broken(broken))
    }

    /// What is known of a call besides its failure.
    pub(crate) fn call_of(&self, asked: Asked) -> Call<'_> {
        Call {
            model: &self.model,
            base: &self.http.base,
            key_from: self.key_from.as_deref(),
            secrets: &self.secrets,
            asked,
        }
    }

    /// A reply, unless it shows that the request did not fit and nobody said so.
    pub(crate) fn heard(&self, reply: Reply, max_output: Option<Tokens>) -> Result<Reply, Failure> {
        let known = Known {
            window: self.reported.get().copied().flatten(),
            max_output,
            ..Known::default()
        };
        match silent::detect(&reply, &known) {
            // The machine may not know the window that the server reports.
            Some(Silent::NoRoom(overflow)) => Err(Failure::Cut {
                used: overflow.used,
                window: overflow.window,
                usage: reply.usage,
                message: "the request fills the window and leaves no room for an answer".to_owned(),
            }),
            // Its way of saying so.
            Some(Silent::Nothing) if self.tells == Tells::LmStudio => Err(Failure::Overflow {
                used: None,
                window: None,
                message: "the server answered nothing at all, as LM Studio does when a request is \
                          too long"
                    .to_owned(),
            }),
            _ => Ok(reply),
        }
    }

    async fn report(&self) -> Result<Option<Tokens>, Unanswered> {
        let name = self.model.name();
        match discovery::window(&self.http, self.tells, name, Loading::Allowed).await {
            Report::Said(window) => Ok(Some(window)),
            Report::Unsaid => Ok(None),
            Report::NoAnswer => Err(Unanswered),
        }
    }
}
