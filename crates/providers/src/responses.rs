//! [`OpenAiResponses`]: the provider for OpenAI's Responses API. One call, one request, always
//! streamed and never stored: the whole history goes with each. Only where a server will not read
//! the reasoning in it, it is sent once more without. What goes over the wire is `wire`'s business;
//! how a provider is put together is in `builder.rs`.

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request, Sampling, ThinkingLevel};
use plimsoll_context::{CacheRetention, Delta, HostedTool, Reply, Tokens};
use plimsoll_core::telemetry::ServerAddress;
use plimsoll_core::{Provider, Secret};
use plimsoll_wire::openai_responses::{
    CacheKey, ORIGIN, Profile, StreamState, not_hosted, render, validate,
};
use plimsoll_wire::{Delivery, Effort, RenderInput, Rendered};

use reqwest::header::HeaderMap;

use crate::efforts;
use crate::hosted::{hosted, judged};
use crate::line::{Line, tool_choice, unrendered};
use crate::model_ref::ModelRef;
use crate::refusal::Asked;
use crate::retention::{Asks, keeps, kept};
use crate::thinking_off::{self, ThinkingOff};
use crate::unread::{Cure, Unread};

/// What is asked, below the address of the API.
const PATH: &str = "responses";

/// What is asked to learn what a request weighs, and what may be said there: not how long the answer
/// may be, how it is sampled, sent or stored.
const COUNT_PATH: &str = "responses/input_tokens";
const COUNT_KEYS: [&str; 10] = [
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "truncation",
    "previous_response_id",
];

/// A model behind OpenAI's Responses API.
#[derive(Debug)]
pub struct OpenAiResponses {
    pub(crate) line: Line,
    pub(crate) profile: Profile,
    pub(crate) unread: Unread,
}

impl OpenAiResponses {
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

    /// How its server is asked to keep its cache longer.
    fn asks(&self) -> Asks {
        match self.profile.cache {
            CacheKey::Sent => Asks::ByKey,
            CacheKey::Unsent => Asks::Nothing,
        }
    }

    fn body(&self, request: &Request) -> Result<Vec<u8>, Failure> {
        Ok(self.rendered(request)?.body)
    }

    /// Returns how hard to think; nothing is said to a model that cannot be told not to.
    fn effort(&self, level: Option<ThinkingLevel>) -> Option<Effort> {
        match (level?, self.thinking_off()) {
            (ThinkingLevel::Off, ThinkingOff::Effort(effort)) => Some(effort),
            (ThinkingLevel::Off, _) => None,
            (level, _) => effort_of(level),
        }
    }

    fn thinking_off(&self) -> ThinkingOff {
        let efforts = self.profile.efforts.iter().min();
        efforts.map_or_else(
            || thinking_off::by_facts(&self.line.model, &self.line.facts),
            |effort| ThinkingOff::Effort(*effort),
        )
    }

    pub(crate) fn rendered(&self, request: &Request) -> Result<Rendered, Failure> {
        let extra = kept(&self.line, request, self.asks());
        let input = RenderInput {
            model: self.line.model.name(),
            system: Some(&*request.system).filter(|system| !system.is_empty()),
            tools: &request.tools,
            hosted_tools: &hosted(&request.hosted_tools, ORIGIN),
            tool_choice: tool_choice(request),
            max_output: self.line.most(request).map(|tokens| tokens.0),
            effort: self.effort(request.sampling.thinking),
            temperature: request.sampling.temperature,
            delivery: Delivery::Stream,
            context: request.dynamic_context.as_deref(),
            // The schema is for models that have to be held to one; these do as they are told.
            format: None,
            cache: Some(&request.cache),
            extra: Some(&extra),
            ..RenderInput::default()
        };
        let messages = self.unread.left_out(&request.messages);
        let messages = messages.iter().map(AsRef::as_ref);
        let rendered = render(&input, messages, &self.profile);
        rendered.map_err(|error| unrendered(&error))
    }
}

#[async_trait]
impl Provider for OpenAiResponses {
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
        let limit = request.max_output;
        let asked = Asked::of(request, limit);
        let body = self.body(request)?;
        let reply = self.line.call::<StreamState>(PATH, body, asked, deltas);
        let reply = match reply.await {
            Err(failure)
                if self.unread.learn(&failure, &request.messages, deltas) == Cure::Without =>
            {
                let body = self.body(request)?;
                let reply = self.line.call::<StreamState>(PATH, body, asked, deltas);
                reply.await
            }
            reply => reply,
        };
        self.line.heard(reply?, limit)
    }

    async fn count(&self, request: &Request) -> Result<Option<Tokens>, Failure> {
        let body = self.body(request)?;
        let weighed = self
            .line
            .weigh(COUNT_PATH, HeaderMap::new(), &body, &COUNT_KEYS);
        weighed.await
    }

    fn keeps(&self, retention: CacheRetention) -> bool {
        keeps(&self.line, retention, self.asks())
    }

    fn sampling_notes(&self, sampling: &Sampling) -> Vec<String> {
        self.thinking_off().notes(sampling, &self.line.full_name)
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

/// Whether a server is the vendor's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// It is.
    Vendors,
    /// It may be any that speaks like it.
    Another,
}

/// What OpenAI's model of that name wants of a request; its newest demands where the name says
/// nothing.
#[must_use]
pub fn responses_profile(name: &str) -> Profile {
    ModelRef::parse(&format!("openai-responses/{name}")).map_or_else(
        |_| Profile::openai(),
        |model| profile_of(&model, Server::Vendors),
    )
}

/// What a model wants of a request, as far as its name tells.
pub(crate) fn profile_of(model: &ModelRef, server: Server) -> Profile {
    let family = efforts::of_openai(model.name());
    match (family, server) {
        (Some([]), _) => Profile::plain(),
        (Some(efforts), _) => Profile {
            efforts: efforts.to_vec(),
            ..Profile::openai()
        },
        (None, Server::Vendors) => Profile::openai(),
        (None, Server::Another) => Profile::compatible(),
    }
}

/// How hard to think, in this wire's words; nothing leaves it to the model.
pub(crate) fn effort_of(level: ThinkingLevel) -> Option<Effort> {
    match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal => Some(Effort::Minimal),
        ThinkingLevel::Low => Some(Effort::Low),
        ThinkingLevel::Medium => Some(Effort::Medium),
        ThinkingLevel::High => Some(Effort::High),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_wire::openai_responses::ReasoningItems;

    #[test]
    fn a_level_becomes_what_the_family_accepts() {
        use ThinkingLevel::{High, Low, Medium, Minimal};
        let sent = |name: &str, level: ThinkingLevel| {
            let model = ModelRef::parse(&format!("openai-responses/{name}")).unwrap();
            let profile = profile_of(&model, Server::Vendors);
            effort_of(level)
                .and_then(|effort| profile.effort(effort))
                .map(Effort::name)
        };
        for (name, [minimal, low, medium, high]) in [
            ("gpt-5-2025-08-07", ["minimal", "low", "medium", "high"]),
            ("gpt-5-codex", ["low", "low", "medium", "high"]),
            ("gpt-5-pro", ["high"; 4]),
            ("gpt-5.1", ["none", "low", "medium", "high"]),
            ("gpt-5.2-chat-latest", ["medium"; 4]),
            ("openai/gpt-5.4-pro", ["medium", "medium", "medium", "high"]),
            ("o4-mini", ["low", "low", "medium", "high"]),
            ("a-model-of-tomorrow", ["low", "low", "medium", "high"]),
        ] {
            let levels = [Minimal, Low, Medium, High].map(|level| sent(name, level));
            assert_eq!(levels, [minimal, low, medium, high].map(Some), "{name}");
            assert_eq!(sent(name, ThinkingLevel::Off), None);
        }
        for name in ["gpt-4.1", "ft:gpt-4o:mine", "gpt-5-chat-latest"] {
            assert_eq!(sent(name, High), None, "{name}");
        }
    }

    #[test]
    fn another_server_gives_its_reasoning_in_the_open() {
        let of = |name: &str, server| {
            let model = ModelRef::parse(&format!("openai-responses/{name}")).unwrap();
            profile_of(&model, server).reasoning
        };
        assert_eq!(of("qwen3", Server::Another), ReasoningItems::Plain);
        assert_eq!(of("gpt-5", Server::Another), ReasoningItems::Encrypted);
        assert_eq!(of("gpt-7", Server::Vendors), ReasoningItems::Encrypted);
        assert_eq!(of("gpt-4o", Server::Another), ReasoningItems::None);
    }
}
