//! [`Connection`]: the part of a [`ModelClient`](crate::ModelClient) that is independent of the
//! protocol: HTTP, the key, the known facts about the model and the window that its server reports.

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use plimsoll_wire::overflow::silent::{self, Known, Silent};
use plimsoll_wire::{BodyChunks, StreamDecoder};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::discovery::{self, Loading, Report};
use crate::http::{Http, error_body, packed, pieces};
use crate::model_ref::ModelRef;
use crate::models::ModelFacts;
use crate::receive::{Framing, receive};
use crate::refusal::{Asked, Call};
use crate::token_count::TokenCounter;
use crate::vendor::{Place, Tells};
use plimsoll_core::Secret;

/// The connection to a model's server.
#[derive(Debug)]
pub(crate) struct Connection {
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
    /// Whether the server counts tokens.
    pub(crate) counter: TokenCounter,
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) url: Url,
    /// Headers besides those of every request.
    pub(crate) headers: HeaderMap,
    pub(crate) body: BodyChunks,
    /// The facts by which a refusal is judged.
    pub(crate) asked: Asked,
}

/// The server did not answer: it may the next time.
struct Unanswered;

impl Connection {
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

    /// Sends a request and decodes the reply; each piece goes to `deltas` as it arrives.
    pub(crate) async fn call(
        &self,
        outgoing: Outgoing,
        decoder: (Framing, Box<dyn StreamDecoder>),
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let call = self.call_of(outgoing.asked);
        let answer = self
            .http
            .post(outgoing.url, outgoing.headers, outgoing.body);
        let answer = answer.await.map_err(|silence| call.silence(&silence))?;
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
        let reply = receive(pieces(answer), decoder, idle, deltas).await;
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

    /// Returns the reply, unless it shows that the request did not fit and the server did not say so.
    pub(crate) fn checked(
        &self,
        reply: Reply,
        max_output: Option<Tokens>,
    ) -> Result<Reply, Failure> {
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
