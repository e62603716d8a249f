//! [`RequestExplanation`]: the requests that would be sent for a model, and the reasons why its
//! server would accept them. Includes an example that is rendered and validated like every request.
//! This module sends nothing; `connect.rs` contacts servers.

mod connect;
mod sample;
mod sentences;

use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_context::{CacheRetention, HostedTool};
use plimsoll_core::Provider;
use plimsoll_wire::openai_chat::takes_temperature;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use connect::{ConnectionReport, CountAnswer};

use crate::api_key::Variables;
use crate::builder::ModelClientBuilder;
use crate::client::Connection;
use crate::client::ModelClient;
use crate::error::ProviderError;
use crate::models::ModelFacts;
use crate::thinking::chat_reach;
use crate::vendor::{ServerLocation, WindowReport};
use sentences::Explanation;

/// All thinking levels, lowest first.
const LEVELS: [(ThinkingLevel, &str); 5] = [
    (ThinkingLevel::Off, "off"),
    (ThinkingLevel::Minimal, "minimal"),
    (ThinkingLevel::Low, "low"),
    (ThinkingLevel::Medium, "medium"),
    (ThinkingLevel::High, "high"),
];
/// The thinking level of the example.
const EXAMPLE: ThinkingLevel = ThinkingLevel::Medium;
/// The keys of a request that control thinking.
const THINKING_KEYS: [&str; 7] = [
    "/reasoning_effort",
    "/reasoning",
    "/thinking",
    "/output_config",
    "/chat_template_kwargs",
    "/generationConfig/thinkingConfig",
    "/additionalModelRequestFields",
];

/// Optional features that are requested from a provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestedFeatures {
    /// The provider's own tools.
    pub hosted_tools: Vec<HostedTool>,
    /// The requested lifetime of the prompt cache.
    pub retention: CacheRetention,
}

/// The provider's own tools, available and requested.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OwnTools {
    /// The available kinds. Empty if the provider has none.
    pub kinds: Vec<&'static str>,
    /// The names of the requested tools.
    pub asked: Vec<String>,
    /// The reasons why the provider would refuse them.
    pub faults: Vec<String>,
}

/// The requests that would be sent for a model, and their peculiarities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestExplanation {
    /// The protocol of its servers.
    pub wire: &'static str,
    /// The address of the server, without any key.
    pub address: String,
    /// The variable that contains the key. `None` if no key is sent.
    pub key_from: Option<String>,
    /// The name of the dialect or profile of the requests.
    pub profile: String,
    /// The peculiarities of its requests.
    pub peculiarities: Vec<Peculiarity>,
    /// The keys that are sent for each thinking level.
    pub thinking: Vec<Level>,
    /// The use of its prompt cache.
    pub caching: Vec<Peculiarity>,
    /// The way in which its server reports the context window.
    pub window_from: &'static str,
    /// The endpoint that counts the tokens of a request, if there is one.
    pub weighs: Option<&'static str>,
    /// The provider's own tools.
    pub hosted_tools: OwnTools,
    /// The features that it does not support.
    pub cannot: Vec<Peculiarity>,
    /// An example.
    pub sample: Sample,
}

/// A peculiarity of a server, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peculiarity {
    /// The sentence.
    pub says: String,
}

/// A thinking level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// The name of the level, such as `low`.
    pub level: &'static str,
    /// The keys of the request that set this level. Empty if the request does not mention it.
    pub sent: Map<String, Value>,
}

/// An example: a question, with a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// The request.
    pub request: Value,
    /// The names of the parts of the example that the request leaves out.
    pub left_out: Vec<String>,
}

impl ModelClientBuilder {
    /// Explains the requests that would be sent, with these variables as the environment. Sends
    /// nothing.
    ///
    /// # Errors
    /// A [`ProviderError`] if a setting is missing or wrong.
    pub fn explain(self, variables: Variables<'_>) -> Result<RequestExplanation, ProviderError> {
        self.explain_with(variables, &RequestedFeatures::default())
    }

    /// Like [`Self::explain`], with these features requested.
    ///
    /// # Errors
    /// A [`ProviderError`] if a setting is missing or wrong.
    pub fn explain_with(
        self,
        variables: Variables<'_>,
        wishes: &RequestedFeatures,
    ) -> Result<RequestExplanation, ProviderError> {
        Ok(explained(&self.build_with(variables)?, wishes))
    }
}

impl RequestedFeatures {
    /// Adds the features to a request. The cache lifetime is only added if the provider supports
    /// it.
    fn of(&self, mut request: Request, provider: &dyn Provider) -> Request {
        request.hosted_tools = self.hosted_tools.clone().into();
        request.cache.retention = self.gets(provider);
        request
    }

    fn gets(&self, provider: &dyn Provider) -> CacheRetention {
        if provider.keeps(self.retention) {
            self.retention
        } else {
            CacheRetention::Usual
        }
    }

    fn tools(&self, kinds: Vec<&'static str>, provider: &dyn Provider) -> OwnTools {
        let names = self.hosted_tools.iter();
        OwnTools {
            kinds,
            asked: names.map(|tool| tool.name().to_owned()).collect(),
            faults: if self.hosted_tools.is_empty() {
                Vec::new()
            } else {
                provider.hosted_tool_faults(&self.hosted_tools)
            },
        }
    }

    /// Explains how long the cache keeps its entries.
    fn kept(&self, facts: &ModelFacts, provider: &dyn Provider) -> Option<Peculiarity> {
        let longer = facts.sheet().and_then(|sheet| sheet.longer);
        sentences::of_retention(self.retention, self.gets(provider), longer)
    }
}

/// Creates a short request.
#[cfg(test)]
pub(crate) fn question() -> Request {
    sample::question(None)
}

#[cfg(test)]
pub(crate) fn question_at(level: ThinkingLevel) -> Request {
    sample::question(Some(level))
}

fn explained(client: &ModelClient, wishes: &RequestedFeatures) -> RequestExplanation {
    let ModelClient {
        connection,
        protocol,
        ..
    } = client;
    let hosted = protocol.hosted_tools();
    let Explanation {
        requests,
        mut caching,
        cannot,
    } = explained_profile(client);
    caching.extend(wishes.kept(&connection.facts, client));
    RequestExplanation {
        wire: client.wire.label(),
        address: connection.http.base.to_string(),
        key_from: connection.key_from.clone(),
        profile: protocol.profile_name().to_owned(),
        peculiarities: requests,
        thinking: levels(client),
        caching,
        window_from: window_from(connection.tells),
        weighs: protocol.token_count().map(|endpoint| endpoint.shown),
        hosted_tools: wishes.tools(hosted.map(|tools| tools.kinds).unwrap_or_default(), client),
        cannot,
        sample: sampled(client, wishes),
    }
}

/// Explains the requests by the profile that they are written by, and the known facts about the model.
fn explained_profile(client: &ModelClient) -> Explanation {
    let Connection { model, facts, .. } = &client.connection;
    let (protocol, mut properties) = client.protocol.profile();
    let is_here = model.vendor().place == ServerLocation::ThisMachine;
    let known = json!({
        "name": model.name(),
        "vendor_speaks": model.vendor().wire,
        "reach": chat_reach(model),
        "temperature": is_here || takes_temperature(model.name(), None, 0.0),
        "images": facts.takes_images(),
        "tools": facts.tools.as_ref().map(|fact| fact.value),
        "thinking": facts.thinking.as_ref().map(|fact| fact.value),
    });
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("model".into(), known);
        let least = facts.min_cacheable.as_ref().map(|fact| fact.value.0);
        properties.extend(least.map(|least| ("min_cacheable".to_owned(), least.into())));
    }
    sentences::explain(protocol, &properties)
}

/// Renders the example.
fn sampled(client: &ModelClient, wishes: &RequestedFeatures) -> Sample {
    let request = wishes.of(sample::question(Some(EXAMPLE)), client);
    let notes = client.rendered(&request).notes.into_iter();
    Sample {
        left_out: notes.map(|note| format!("{:?}", note.what)).collect(),
        request: client.json(&request),
    }
}

/// Returns the keys that each level sends, taken from rendered requests.
fn levels(client: &ModelClient) -> Vec<Level> {
    let levels = LEVELS.iter().map(|(level, name)| {
        let body = client.json(&sample::question(Some(*level)));
        let said = THINKING_KEYS.iter().filter_map(|key| {
            let value = body.pointer(key).filter(|value| !value.is_null())?;
            let key = key.rsplit('/').next().unwrap_or_default();
            Some((key.to_owned(), value.clone()))
        });
        Level {
            level: name,
            sent: said.collect(),
        }
    });
    levels.collect()
}

fn window_from(tells: WindowReport) -> &'static str {
    match tells {
        WindowReport::Nothing | WindowReport::Silent => "not reported; learned from a refusal",
        WindowReport::Models => "its list of models",
        WindowReport::Props => "/props, the window of one slot",
        WindowReport::Ollama => "/api/ps, once the model is loaded",
        WindowReport::LmStudio => "/api/v0/models, once the model is loaded",
        WindowReport::LikeAnthropic => "the model's own entry, or /props",
        WindowReport::Anthropic | WindowReport::Google => "the model's own entry",
        WindowReport::Perhaps => "its list of models or /props, if it has them",
    }
}

#[cfg(test)]
mod tests;
