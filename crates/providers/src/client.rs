//! [`ModelClient`]: a model behind HTTP, in any of the protocols.
//!
//! A call is one streamed request. It is sent a second time only if the server rejects reasoning of
//! earlier replies, and then without that reasoning. The driver makes all other retries.

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, Sampling};
use plimsoll_context::{CacheRetention, Delta, HostedTool, Reply, Tokens};
use plimsoll_core::telemetry::ServerAddress;
use plimsoll_core::{Provider, Secret};

use crate::base_url::BaseUrl;
use crate::cache_lifetime::can_keep;
use crate::connection::{Connection, Outgoing};
use crate::hosted::{faults, none_here};
use crate::protocol::{Protocol, RenderedRequest};
use crate::refusal::RequestFacts;
use crate::rejected::RejectedReasoning;
use crate::vendor::Wire;

/// A model behind an HTTP API.
#[derive(Debug)]
pub struct ModelClient {
    pub(crate) connection: Connection,
    pub(crate) protocol: Box<dyn Protocol>,
    pub(crate) wire: Wire,
    pub(crate) rejected: RejectedReasoning,
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
    pub(crate) fn rendered(&self, request: &Request) -> RenderedRequest {
        let request = self.rejected.without(request);
        self.protocol.render(&self.connection, &request)
    }

    async fn send(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let rendered = self.rendered(request);
        let limit = self.protocol.output_limit(&self.connection, request);
        let outgoing = Outgoing {
            url: self.protocol.url(&self.connection),
            headers: rendered.headers,
            body: rendered.body,
            facts: RequestFacts::of(request, limit),
        };
        let decoder = (self.protocol.events(), self.protocol.decoder(request));
        let reply = self.connection.call(outgoing, decoder, deltas);
        let reply = reply.await?;
        // Signed thinking is only valid after the same prefix.
        let reply = rendered.prefix.bind(reply);
        let mut reply = self.connection.checked(reply, limit)?;
        self.protocol.complete(request, &mut reply);
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

    async fn count(&self, request: &Request) -> Result<Option<Tokens>, Failure> {
        let Some(endpoint) = self.protocol.token_count() else {
            return Ok(None);
        };
        let rendered = self.rendered(request);
        self.connection.count_tokens(endpoint, rendered).await
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

    fn sampling_notes(&self, sampling: &Sampling) -> Vec<String> {
        let off = self.protocol.thinking_off(&self.connection);
        off.notes(sampling, &self.connection.full_name)
    }

    fn hosted_tool_faults(&self, tools: &[HostedTool]) -> Vec<String> {
        match self.protocol.hosted_tools() {
            Some(hosted) => faults(self, &hosted, tools),
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
