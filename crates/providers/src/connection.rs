//! [`Connection`]: the part of a [`ModelClient`](crate::ModelClient) that is independent of the
//! protocol: HTTP, the key, the known facts about the model and the window that its server reports.

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use plimsoll_wire::overflow::silent::{self, ReplyContext, Silent};
use plimsoll_wire::{BodyChunks, StreamDecoder};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::discovery::{self, ModelLoading};
use crate::http::{Http, error_body, packed, pieces};
use crate::model_ref::ModelRef;
use crate::models::ModelFacts;
use crate::receive::{EventReader, receive};
use crate::refusal::{CallContext, RequestFacts};
use crate::sent::SentSessions;
use crate::token_count::TokenCounter;
use crate::vendor::{ServerLocation, WindowReport};
use plimsoll_core::Secret;

/// The connection to a model's server.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) http: Http,
    pub(crate) model: ModelRef,
    /// `provider/name`.
    pub(crate) full_name: String,
    /// The origin of the key, if there is one.
    pub(crate) key_from: Option<String>,
    /// Values that error messages must not contain: the key and the values of headers and the
    /// address.
    pub(crate) secrets: Vec<Secret>,
    /// The secrets that are certainly keys.
    pub(crate) keys: Vec<Secret>,
    pub(crate) tells: WindowReport,
    /// Further keys of every request's body.
    pub(crate) extra: Map<String, Value>,
    /// The window that the server reported. Empty until the server has answered.
    pub(crate) reported: OnceCell<Option<Tokens>>,
    /// The known facts about the model.
    pub(crate) facts: ModelFacts,
    /// Whether the server counts tokens.
    pub(crate) counter: TokenCounter,
    /// The messages that were sent before.
    pub(crate) sent: SentSessions,
}

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) url: Url,
    /// Headers besides those of every request.
    pub(crate) headers: HeaderMap,
    pub(crate) body: BodyChunks,
    /// The facts for interpreting an error response.
    pub(crate) facts: RequestFacts,
}

impl Connection {
    /// Returns the name under which facts learned about this model are stored.
    pub(crate) fn endpoint(&self) -> String {
        let vendor = self.model.vendor();
        // Plimsoll's own server uses a different port each time.
        if vendor.place == ServerLocation::Ours {
            return self.full_name.clone();
        }
        let endpoint = format!("{} {}", self.http.base, self.model.name());
        let secrets = self.secrets.iter();
        secrets.fold(endpoint, |text, secret| secret.strike_out(text))
    }

    /// Returns the window that the server reports. If it does not answer, a later attempt may succeed.
    pub(crate) async fn window(&self) -> Option<Tokens> {
        let name = self.model.name();
        let ask = || discovery::window(&self.http, self.tells, name, ModelLoading::Allowed);
        let reported = self.reported.get_or_try_init(ask).await;
        reported.ok().copied().flatten()
    }

    /// Returns the known window, without asking the server.
    pub(crate) fn known_window(&self) -> Option<Tokens> {
        self.facts.window.map(|fact| fact.value)
    }

    /// Returns the output limit to send: the request's limit, or less if the user states a lower
    /// one for the model.
    ///
    /// A limit that is only derived from the window or a limit of the run is also lowered to the
    /// published maximum of the model, because servers refuse larger values.
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
        decoder: (EventReader, Box<dyn StreamDecoder>),
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let call = self.call_of(outgoing.facts);
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

    /// Collects the facts about a call that errors mention.
    pub(crate) fn call_of(&self, facts: RequestFacts) -> CallContext<'_> {
        CallContext {
            model: &self.model,
            base: &self.http.base,
            key_from: self.key_from.as_deref(),
            secrets: &self.secrets,
            facts,
        }
    }

    /// Returns the reply, or a failure if it shows that the request did not fit and the server did
    /// not report it.
    pub(crate) fn checked(
        &self,
        reply: Reply,
        max_output: Option<Tokens>,
    ) -> Result<Reply, Failure> {
        let known = ReplyContext {
            window: self.reported.get().copied().flatten(),
            max_output,
            ..ReplyContext::default()
        };
        match silent::detect(&reply, &known) {
            // The model may run with a smaller window than the server reports.
            Some(Silent::NoRoom(overflow)) => Err(Failure::Cut {
                used: overflow.used,
                window: overflow.window,
                usage: reply.usage,
                message: "the request fills the context window, so there are no tokens left for \
                          an answer"
                    .to_owned(),
            }),
            // LM Studio reports an overflow with an empty reply.
            Some(Silent::Nothing) if self.tells == WindowReport::LmStudio => {
                Err(Failure::Overflow {
                    used: None,
                    window: None,
                    message:
                        "the server answered nothing at all, as LM Studio does when a request is \
                          too long"
                            .to_owned(),
                })
            }
            _ => Ok(reply),
        }
    }
}
