//! [`AnthropicMessages`]: the provider for Anthropic's Messages API and what speaks like it. One
//! call, one request, always streamed; only where a server will not read the thinking in it, it is
//! sent once more without. What goes over the wire is `wire`'s business; how a provider is put
//! together is in `builder.rs`.

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, Sampling, ThinkingLevel};
use plimsoll_context::{CacheRetention, Delta, HostedTool, Reply, Tokens};
use plimsoll_core::telemetry::ServerAddress;
use plimsoll_core::{Provider, Secret};
use plimsoll_wire::anthropic::{
    NoThinking, ORIGIN, Profile, StreamState, ThinkingStyle, not_hosted, render, validate,
};
use plimsoll_wire::{Delivery, Effort, LeftOut, Note, RenderInput, Rendered};
use reqwest::header::{HeaderMap, HeaderValue};

use crate::discovery::messages_path;
use crate::hosted::{hosted, judged};
use crate::line::{Line, tool_choice, unrendered};
use crate::models::FROM_LOW;
use crate::refusal::Asked;
use crate::responses::effort_of;
use crate::thinking_off::ThinkingOff;
use crate::unread::{Cure, Unread};

/// What is asked, below the address of the API.
const PATH: &str = "messages";
/// What is asked to learn what a request weighs, and what may be said there: not how long the answer
/// may be, how it is sampled or how it is sent.
const COUNT_PATH: &str = "messages/count_tokens";
const COUNT_KEYS: [&str; 11] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
    "context_management",
    "mcp_servers",
    "speed",
];
/// Names what is not yet part of the API's version.
const BETA: &str = "anthropic-beta";

/// A model behind Anthropic's Messages API.
#[derive(Debug)]
pub struct AnthropicMessages {
    pub(crate) line: Line,
    pub(crate) profile: Profile,
    pub(crate) unread: Unread,
}

impl AnthropicMessages {
    /// What its model wants of a request.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Where its server is.
    #[must_use]
    pub fn base_url(&self) -> &crate::BaseUrl {
        &self.line.http.base
    }

    async fn once(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let rendered = self.rendered(request)?;
        let path = messages_path(&self.line.http, PATH);
        let headers = headers(&rendered.betas);
        let limit = request.max_output;
        let asked = Asked::of(request, limit);
        let reply = self
            .line
            .call_with::<StreamState>(&path, headers, rendered.body, asked, deltas)
            .await?;
        // Its thinking goes back only to the same model, after the same words.
        self.line.heard(rendered.prefix.bind(reply), limit)
    }

    pub(crate) fn rendered(&self, request: &Request) -> Result<Rendered, Failure> {
        let blind = self.line.facts.blinds(request);
        let request = &*self.line.facts.enforced(request, FROM_LOW);
        let input = RenderInput {
            model: self.line.model.name(),
            system: Some(&*request.system).filter(|system| !system.is_empty()),
            tools: &request.tools,
            hosted_tools: &hosted(&request.hosted_tools, ORIGIN),
            tool_choice: tool_choice(request),
            // What only says how much is left is no wish for an answer of that length.
            max_output: request
                .max_output
                .filter(|tokens| request.expects.room != Some(*tokens))
                .map(|tokens| tokens.0),
            room: request.expects.room.map(|room| room.0),
            effort: effort(request.sampling.thinking),
            temperature: request.sampling.temperature,
            delivery: Delivery::Stream,
            context: request.dynamic_context.as_deref(),
            cache: Some(&request.cache),
            extra: Some(&self.line.extra),
            ..RenderInput::default()
        };
        let messages = self.unread.left_out(&request.messages);
        let messages = messages.iter().map(AsRef::as_ref);
        let rendered = render(&input, messages, &self.profile);
        let mut rendered = rendered.map_err(|error| unrendered(&error))?;
        rendered
            .notes
            .extend(blind.then_some(Note::setting(LeftOut::Attachment)));
        Ok(rendered)
    }
}

#[async_trait]
impl Provider for AnthropicMessages {
    fn model(&self) -> &str {
        &self.line.full_name
    }

    fn endpoint(&self) -> String {
        self.line.endpoint()
    }

    fn server(&self) -> Option<ServerAddress> {
        self.line.http.base.server()
    }

    fn secrets(&self) -> Vec<Secret> {
        self.line.keys.clone()
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        match self.once(request, deltas).await {
            // What another key signed, or what stood otherwise before it, is given up; the session
            // is not.
            Err(failure)
                if self.unread.learn(&failure, &request.messages, deltas) == Cure::Without =>
            {
                self.once(request, deltas).await
            }
            reply => reply,
        }
    }

    async fn count(&self, request: &Request) -> Result<Option<Tokens>, Failure> {
        let rendered = self.rendered(request)?;
        let path = messages_path(&self.line.http, COUNT_PATH);
        let headers = headers(&rendered.betas);
        let weighed = self.line.weigh(&path, headers, &rendered.body, &COUNT_KEYS);
        weighed.await
    }

    fn keeps(&self, _: CacheRetention) -> bool {
        true
    }

    fn sampling_notes(&self, sampling: &Sampling) -> Vec<String> {
        let thinks = self.profile.thinking != ThinkingStyle::None;
        let off = match self.profile.no_thinking {
            NoThinking::Refused if thinks => ThinkingOff::Never,
            NoThinking::Unknown if thinks => ThinkingOff::Unknown,
            _ => ThinkingOff::NotThinking,
        };
        off.notes(sampling, &self.line.full_name)
    }

    fn hosted_tool_faults(&self, tools: &[HostedTool]) -> Vec<String> {
        let body = |request: &Request| Ok(self.rendered(request)?.body);
        let validate = |request: &serde_json::Value| validate(request, &self.profile);
        judged(tools, not_hosted, body, validate)
    }

    fn known_window(&self) -> Option<Tokens> {
        self.line.known_window()
    }

    async fn window(&self) -> Option<Tokens> {
        self.line.window().await
    }
}

fn headers(betas: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let (false, Ok(value)) = (betas.is_empty(), HeaderValue::try_from(betas.join(","))) {
        headers.insert(BETA, value);
    }
    headers
}

/// Returns the effort of a level; `Off` is an effort on this wire.
fn effort(level: Option<ThinkingLevel>) -> Option<Effort> {
    match level? {
        ThinkingLevel::Off => Some(Effort::None),
        level => effort_of(level),
    }
}
