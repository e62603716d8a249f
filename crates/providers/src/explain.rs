//! [`Explained`]: what would be sent for a model, and why its server would accept it, with an example
//! that is rendered as every request is and judged by the validator. Nothing is sent; `connect.rs` asks
//! servers.

pub(crate) mod chat;
mod connect;
pub(crate) mod converse;
pub(crate) mod gemini;
pub(crate) mod messages;
pub(crate) mod responses;
mod sample;
mod sentences;

use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_context::{CacheRetention, HostedTool};
use plimsoll_core::Provider;
use serde::Serialize;
use serde_json::{Map, Value};

pub use connect::{Connected, Counted};
pub(crate) use sentences::rules_of;

use crate::builder::ModelClientBuilder;
use crate::client::ModelClient;
use crate::error::ProviderError;
use crate::key::Variables;
use crate::models::ModelFacts;
use crate::vendor::Tells;

/// All levels, the lowest first.
const LEVELS: [(ThinkingLevel, &str); 5] = [
    (ThinkingLevel::Off, "off"),
    (ThinkingLevel::Minimal, "minimal"),
    (ThinkingLevel::Low, "low"),
    (ThinkingLevel::Medium, "medium"),
    (ThinkingLevel::High, "high"),
];
/// How hard the example thinks.
const EXAMPLE: ThinkingLevel = ThinkingLevel::Medium;
/// The places in a request that say how hard to think.
const THINKING_KEYS: [&str; 7] = [
    "/reasoning_effort",
    "/reasoning",
    "/thinking",
    "/output_config",
    "/chat_template_kwargs",
    "/generationConfig/thinkingConfig",
    "/additionalModelRequestFields",
];

/// What is asked of a provider beside an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wishes {
    /// Tools of its own.
    pub hosted_tools: Vec<HostedTool>,
    /// How long its prompt cache is to be kept.
    pub retention: CacheRetention,
}

/// The provider's own tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OwnTools {
    /// The kinds that there are; none where it has none here.
    pub kinds: Vec<&'static str>,
    /// Those that are asked for, by name.
    pub asked: Vec<String>,
    /// Why they would be refused.
    pub faults: Vec<String>,
}

/// What would be sent for a model, and why its server would take it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// What its servers speak.
    pub wire: &'static str,
    /// Where requests go, without any key.
    pub address: String,
    /// The variable that the key comes from; `None` where none is sent.
    pub key_from: Option<String>,
    /// The dialect or profile that requests are written by.
    pub profile: String,
    /// What is peculiar to it.
    pub peculiarities: Vec<Peculiarity>,
    /// What each level of thinking is sent as.
    pub thinking: Vec<Level>,
    /// How its prompt cache is used.
    pub caching: Vec<Peculiarity>,
    /// How its server tells a window.
    pub window_from: &'static str,
    /// Whether a server can be asked what a request weighs.
    pub weighs: Option<&'static str>,
    /// Its own tools.
    pub hosted_tools: OwnTools,
    /// What it cannot take.
    pub cannot: Vec<Peculiarity>,
    /// An example; `None` if it cannot be written.
    pub sample: Option<Sample>,
}

/// Something that is peculiar to a server, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peculiarity {
    /// The sentence.
    pub says: String,
    /// The rules that it is for.
    pub rules: Vec<&'static str>,
}

/// A level of thinking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// As it is asked for.
    pub level: &'static str,
    /// The keys of the request that say so; none where nothing is said.
    pub sent: Map<String, Value>,
}

/// What is said of a protocol's requests to a model.
#[derive(Debug)]
pub(crate) struct Explanation {
    /// What is peculiar to them.
    pub(crate) peculiarities: Vec<Peculiarity>,
    /// How the prompt cache is used.
    pub(crate) caching: Vec<Peculiarity>,
    /// What they cannot contain.
    pub(crate) limitations: Vec<Peculiarity>,
    /// Whether the protocol has images in requests to this model.
    pub(crate) images: bool,
}

/// An example: a question, thinking, two tool calls at once, and their results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// The request.
    pub request: Value,
    /// What of the example it does not hold, in words.
    pub left_out: Vec<String>,
    /// What the server would refuse it for; none is a good answer.
    pub faults: Vec<String>,
    /// What was checked.
    pub rules: Vec<&'static str>,
}

impl ModelClientBuilder {
    /// Explains what would be sent, with the variables given. Nothing is sent.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn explain(self, variables: Variables<'_>) -> Result<Explained, ProviderError> {
        self.explain_with(variables, &Wishes::default())
    }

    /// Explains what would be sent if these wishes are made.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn explain_with(
        self,
        variables: Variables<'_>,
        wishes: &Wishes,
    ) -> Result<Explained, ProviderError> {
        Ok(explained(&self.build_with(variables)?, wishes))
    }
}

impl Wishes {
    /// A request that asks for them as far as its provider has them.
    fn of(&self, mut request: Request, provider: &dyn Provider) -> Request {
        request.hosted_tools = self.hosted_tools.clone().into();
        request.cache.retention = self.gets(provider);
        request
    }

    fn gets(&self, provider: &dyn Provider) -> CacheRetention {
        match provider.keeps(self.retention) {
            true => self.retention,
            false => CacheRetention::Usual,
        }
    }

    fn tools(&self, kinds: Vec<&'static str>, provider: &dyn Provider) -> OwnTools {
        let names = self.hosted_tools.iter();
        OwnTools {
            kinds,
            asked: names.map(|tool| tool.name().to_owned()).collect(),
            faults: match self.hosted_tools.is_empty() {
                true => Vec::new(),
                false => provider.hosted_tool_faults(&self.hosted_tools),
            },
        }
    }

    /// What becomes of the cache.
    fn kept(&self, facts: &ModelFacts, provider: &dyn Provider) -> Option<Peculiarity> {
        let longer = facts.sheet().and_then(|sheet| sheet.longer);
        sentences::of_retention(self.retention, self.gets(provider), longer)
    }
}

/// A short request, to be judged.
pub(crate) fn question() -> Request {
    sample::question(None)
}

#[cfg(test)]
pub(crate) fn question_at(level: ThinkingLevel) -> Request {
    sample::question(Some(level))
}

fn explained(client: &ModelClient, wishes: &Wishes) -> Explained {
    let ModelClient {
        connection,
        protocol,
        ..
    } = client;
    let hosted = protocol.hosted_tools();
    let Explanation {
        peculiarities,
        mut caching,
        mut limitations,
        images,
    } = protocol.explain(connection);
    caching.extend(wishes.kept(&connection.facts, client));
    limitations.extend(sentences::unable(images, &connection.facts));
    Explained {
        wire: client.wire.label(),
        address: connection.http.base.to_string(),
        key_from: connection.key_from.clone(),
        profile: protocol.profile_name().to_owned(),
        peculiarities,
        thinking: levels(client),
        caching,
        window_from: window_from(connection.tells),
        weighs: protocol.token_count().map(|endpoint| endpoint.shown),
        hosted_tools: wishes.tools(hosted.map(|tools| tools.kinds).unwrap_or_default(), client),
        cannot: limitations,
        sample: sampled(client, wishes),
    }
}

/// Renders and judges the example.
fn sampled(client: &ModelClient, wishes: &Wishes) -> Option<Sample> {
    let question = wishes.of(sample::question(Some(EXAMPLE)), client);
    let reply = client.protocol.sample_reply(&sample::reply());
    let mut decoder = client.protocol.decoder(&question);
    let reply = decoder.read_whole(&reply.to_string()).ok()?;
    // Signed thinking is bound to the question.
    let reply = match client.rendered(&question).ok()?.prefix {
        Some(prefix) => prefix.bind(reply),
        None => reply,
    };
    let request = wishes.of(sample::answered(EXAMPLE, reply), client);
    let rendered = client.rendered(&request).ok()?;
    let request = value(&rendered.body.into_vec())?;
    let faults = client.protocol.validate(&request);
    Some(Sample {
        faults: faults.iter().map(ToString::to_string).collect(),
        rules: client.protocol.rules(),
        left_out: rendered.left_out,
        request,
    })
}

fn value(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

/// What each level is sent as, taken from requests that say it.
fn levels(client: &ModelClient) -> Vec<Level> {
    let sent = |request: &Request| value(&client.rendered(request).ok()?.body.into_vec());
    let levels = LEVELS.iter().map(|(level, name)| {
        let body = sent(&sample::question(Some(*level))).unwrap_or_default();
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

fn window_from(tells: Tells) -> &'static str {
    match tells {
        Tells::Nothing | Tells::Silent => "its server does not tell; a refusal does",
        Tells::Models => "its list of models",
        Tells::Props => "/props, the window of one slot",
        Tells::Ollama => "/api/ps, once the model is loaded",
        Tells::LmStudio => "/api/v0/models, once the model is loaded",
        Tells::LikeAnthropic => "the model's own entry, or /props",
        Tells::Anthropic | Tells::Google => "the model's own entry",
        Tells::Perhaps => "its list of models or /props, where it has them",
    }
}

#[cfg(test)]
mod tests;
