//! [`ModelClient`]: a model behind HTTP, in any of the protocols.
//!
//! A call is one streamed request. It is sent a second time only if the server rejects reasoning of
//! earlier replies, and then without that reasoning. The driver makes all other retries.

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, Sampling, ThinkingLevel};
use plimsoll_context::{CacheRetention, Delta, HostedTool, Reply, Tokens};
use plimsoll_core::telemetry::ServerAddress;
use plimsoll_core::{Provider, Secret};
use plimsoll_wire::EncodedRequest;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::base_url::BaseUrl;
use crate::cache_lifetime::can_keep;
use crate::discovery;
use crate::failure::{CallContext, RequestFacts};
use crate::http::{Http, error_body, packed, pieces};
use crate::model_ref::ModelRef;
use crate::models::ModelFacts;
use crate::protocol::Protocol;
use crate::receive::receive;
use crate::rejected_reasoning::RejectedReasoning;
use crate::vendor::{ServerLocation, WindowReport, Wire};

/// The header that names features of Anthropic's API which are not yet part of its version.
const BETA: &str = "anthropic-beta";

/// A model behind an HTTP API.
#[derive(Debug)]
pub struct ModelClient {
    pub(crate) connection: Connection,
    pub(crate) protocol: Box<dyn Protocol>,
    pub(crate) wire: Wire,
    pub(crate) rejected: RejectedReasoning,
}

/// The part of a client that is independent of the protocol: HTTP, the key, the known facts about the
/// model and the window that its server reports.
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
}

impl ModelClient {
    /// Returns the protocol that its server speaks.
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Returns the name of the dialect or profile that requests are written by.
    #[must_use]
    pub fn profile(&self) -> &str {
        self.protocol.profile_name()
    }

    /// Returns the address of its server.
    #[must_use]
    pub fn base_url(&self) -> &BaseUrl {
        &self.connection.http.base
    }

    /// Writes a request, without the reasoning that the server has rejected.
    pub(crate) fn rendered(&self, request: &Request) -> EncodedRequest {
        let request = self.rejected.without(request);
        self.protocol.render(&self.connection, &request)
    }

    /// Writes the body of a request as JSON.
    pub(crate) fn json(&self, request: &Request) -> Value {
        let body = self.rendered(request).body;
        serde_json::from_slice(&body).unwrap_or_default()
    }

    /// Returns the headers of a request besides those of every request.
    fn headers(&self, rendered: &EncodedRequest) -> HeaderMap {
        let mut headers = self.protocol.headers();
        let betas = HeaderValue::try_from(rendered.betas.join(","));
        if let (false, Ok(betas)) = (rendered.betas.is_empty(), betas) {
            headers.insert(BETA, betas);
        }
        headers
    }

    async fn send(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let (connection, protocol) = (&self.connection, &self.protocol);
        let http = &connection.http;
        let rendered = self.rendered(request);
        let limit = protocol.output_limit(connection, request);
        let call = connection.call_of(RequestFacts::of(request, limit));
        let (url, headers) = (protocol.url(connection), self.headers(&rendered));
        let answer = http.post(url, headers, rendered.body).await;
        let answer = answer.map_err(|silence| call.silence(&silence))?;
        let idle = http.timeouts.idle;
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
        let decoder = (protocol.events(), protocol.decoder(request));
        let reply = receive(pieces(answer), decoder, idle, deltas).await;
        let reply = reply.map_err(|broken| call.broken(broken))?;
        // Signed thinking is only valid after the same prefix.
        let reply = rendered.prefix.bind(reply);
        let mut reply = connection.checked(reply)?;
        protocol.complete(request, &mut reply);
        Ok(reply)
    }
}

#[async_trait]
impl Provider for ModelClient {
    fn model(&self) -> &str {
        &self.connection.full_name
    }

    fn endpoint(&self) -> String {
        self.connection.endpoint()
    }

    fn server(&self) -> Option<ServerAddress> {
        self.connection.http.base.server()
    }

    fn secrets(&self) -> Vec<Secret> {
        self.connection.keys.clone()
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        match self.send(request, deltas).await {
            Err(failure) if self.rejected.learn(&failure, &request.messages, deltas) => {
                self.send(request, deltas).await
            }
            reply => reply,
        }
    }

    fn keeps(&self, retention: CacheRetention) -> bool {
        can_keep(&self.connection, retention, self.protocol.cache_lifetime())
    }

    fn takes_images(&self) -> Option<bool> {
        if self.protocol.takes_images() {
            self.connection.facts.takes_images()
        } else {
            Some(false)
        }
    }

    fn max_tools(&self) -> Option<usize> {
        self.protocol.max_tools()
    }

    fn sampling_notes(&self, sampling: &Sampling) -> Vec<String> {
        let model = &self.connection.full_name;
        match sampling.thinking {
            None => Vec::new(),
            Some(ThinkingLevel::Off) => self.protocol.thinking_off().notes(model),
            Some(_) if self.protocol.sends_thinking_levels() => Vec::new(),
            Some(_) => vec![format!(
                "thinking_level has no effect: {model} is not known to take one; if it does, \
                 set `thinking = true` for it in [models]"
            )],
        }
    }

    fn hosted_tool_faults(&self, tools: &[HostedTool]) -> Vec<String> {
        match self.protocol.hosted_tools() {
            Some(hosted) => tools.iter().filter_map(hosted.fault).collect(),
            None => none_here(&self.connection.full_name, tools),
        }
    }

    fn known_window(&self) -> Option<Tokens> {
        self.connection.known_window()
    }

    async fn window(&self) -> Option<Tokens> {
        self.connection.window().await
    }
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
        let ask = || discovery::window(&self.http, self.tells, name);
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

    /// Returns the reply, or a failure if it is empty and comes from LM Studio, which answers a request
    /// that is too long with nothing at all.
    pub(crate) fn checked(&self, reply: Reply) -> Result<Reply, Failure> {
        let is_nothing = reply.usage.is_none() && reply.parts.is_empty();
        if is_nothing && self.tells == WindowReport::LmStudio {
            return Err(Failure::Overflow {
                used: None,
                window: None,
                message: "the server answered nothing at all, as LM Studio does when a request is \
                          too long"
                    .to_owned(),
            });
        }
        Ok(reply)
    }
}

/// Returns a fault for each tool, because the protocol has no tools of the provider's own.
fn none_here(model: &str, tools: &[HostedTool]) -> Vec<String> {
    let faults = tools.iter().map(|tool| {
        let name = tool.name();
        format!(
            "`{name}` is asked for as a tool of the provider's own, and {model} has none here; leave \
             it out of hosted_tools"
        )
    });
    faults.collect()
}
