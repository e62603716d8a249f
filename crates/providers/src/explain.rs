//! [`Explained`]: what would be sent for a model, and why its server would take it: an example,
//! rendered as every request is and judged by the validator. Sends nothing; `connect.rs` asks.

mod connect;
mod reach;
mod sample;
mod sentences;

use plimsoll_agent::{Request, ThinkingLevel};
use plimsoll_context::{CacheRetention, HostedTool};
use plimsoll_core::Provider;
use plimsoll_wire::{Fault, anthropic, openai_chat, openai_responses};
use serde::Serialize;
use serde_json::{Map, Value};

pub use connect::{Connected, Counted};

use crate::builder::OpenAiChatBuilder;
use crate::chat::OpenAiChat;
use crate::error::ProviderError;
use crate::key::Variables;
use crate::messages::AnthropicMessages;
use crate::models::ModelFacts;
use crate::responses::OpenAiResponses;
use crate::vendor::{Tells, Wire};

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
/// Where a request says how hard to think.
const THINKING_KEYS: [&str; 5] = [
    "reasoning_effort",
    "reasoning",
    "thinking",
    "output_config",
    "chat_template_kwargs",
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
    /// An example; `None` where another library writes the requests.
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

impl OpenAiChatBuilder {
    /// Says what would be sent, with the variables given. Nothing is sent.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn explain(self, variables: Variables<'_>) -> Result<Explained, ProviderError> {
        self.explain_with(variables, &Wishes::default())
    }

    /// The same where all this is asked of it.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn explain_with(
        self,
        variables: Variables<'_>,
        wishes: &Wishes,
    ) -> Result<Explained, ProviderError> {
        match self.wire(variables) {
            Wire::Chat => Ok(chat(&self.build_with(variables)?, wishes)),
            Wire::Responses => Ok(responses(&self.responses_with(variables)?, wishes)),
            Wire::Messages => Ok(messages(&self.messages_with(variables)?, wishes)),
            Wire::Gemini | Wire::Vertex | Wire::Converse | Wire::Ollama => {
                self.other(variables, wishes)
            }
        }
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

impl OpenAiChatBuilder {
    /// Another library writes the request, where it is in this build.
    fn other(self, variables: Variables<'_>, wishes: &Wishes) -> Result<Explained, ProviderError> {
        let vendor = self.vendor();
        let (address, key_from, hosted_tools) = self.reached(variables, wishes)?;
        Ok(Explained {
            wire: name_of(vendor.wire),
            address,
            key_from,
            profile: "genai".to_owned(),
            peculiarities: sentences::of_genai(vendor.wire),
            thinking: Vec::new(),
            caching: Vec::new(),
            window_from: window_from(vendor.tells),
            weighs: None,
            hosted_tools,
            cannot: Vec::new(),
            sample: None,
        })
    }

    /// Where its requests go, and where the key comes from.
    #[cfg(feature = "genai")]
    fn reached(self, variables: Variables<'_>, wishes: &Wishes) -> Result<Reached, ProviderError> {
        let provider = self.genai_with(variables)?;
        let tools = wishes.tools(Vec::new(), &provider);
        let key_from = provider.key_from().map(str::to_owned);
        Ok((provider.base_url().to_string(), key_from, tools))
    }

    #[cfg(not(feature = "genai"))]
    fn reached(self, _: Variables<'_>, _: &Wishes) -> Result<Reached, ProviderError> {
        Err(ProviderError::NotBuiltIn {
            provider: self.vendor().name,
        })
    }
}

/// An address, the variable of a key, and tools of its own.
type Reached = (String, Option<String>, OwnTools);

fn chat(provider: &OpenAiChat, wishes: &Wishes) -> Explained {
    let dialect = &provider.dialect;
    let request = wishes.of(sample::of_chat(EXAMPLE), provider);
    let body = |request: &Request| {
        let rendered = provider.rendered(request).ok()?;
        let notes = rendered.notes.iter().map(|note| format!("{:?}", note.what));
        Some((value(&rendered.body)?, notes.collect()))
    };
    let sent = |request: &Request| body(request).map(|(body, _)| body);
    let rules = sentences::rules_of_chat(dialect);
    let sample = body(&request).map(|(body, notes)| {
        let faults = openai_chat::validate(&body, dialect);
        sampled(body, notes, &faults, rules)
    });
    let line = &provider.line;
    let facts = &line.facts;
    Explained {
        wire: name_of(Wire::Chat),
        address: line.http.base.to_string(),
        key_from: line.key_from.clone(),
        profile: dialect.name.clone(),
        peculiarities: with(
            sentences::of_dialect(dialect),
            reach::of_thinking(&line.model),
        ),
        thinking: levels(&sent),
        caching: with(
            sentences::cache_of_chat(dialect, facts),
            wishes.kept(facts, provider),
        ),
        window_from: window_from(line.tells),
        weighs: None,
        hosted_tools: wishes.tools(Vec::new(), provider),
        cannot: sentences::chat_cannot(dialect, facts),
        sample,
    }
}

fn responses(provider: &OpenAiResponses, wishes: &Wishes) -> Explained {
    let profile = &provider.profile;
    let request = wishes.of(sample::of_responses(EXAMPLE, profile), provider);
    let body = |request: &Request| {
        let rendered = provider.rendered(request).ok()?;
        let notes = rendered.notes.iter().map(|note| format!("{:?}", note.what));
        Some((value(&rendered.body)?, notes.collect()))
    };
    let sent = |request: &Request| body(request).map(|(body, _)| body);
    let rules = sentences::rules_of("OR");
    let sample = body(&request).map(|(body, notes)| {
        let faults = openai_responses::validate(&body, profile);
        sampled(body, notes, &faults, rules)
    });
    let line = &provider.line;
    Explained {
        wire: name_of(Wire::Responses),
        address: line.http.base.to_string(),
        key_from: line.key_from.clone(),
        profile: profile.name.clone(),
        peculiarities: with(
            sentences::of_responses(profile),
            reach::of_detour(&line.model),
        ),
        thinking: levels(&sent),
        caching: with(
            sentences::cache_of_responses(profile, &line.facts),
            wishes.kept(&line.facts, provider),
        ),
        window_from: window_from(line.tells),
        weighs: Some("POST responses/input_tokens"),
        hosted_tools: wishes.tools(openai_responses::hosted_kinds().collect(), provider),
        cannot: sentences::responses_cannot(profile, &line.facts),
        sample,
    }
}

fn messages(provider: &AnthropicMessages, wishes: &Wishes) -> Explained {
    let profile = &provider.profile;
    let body = |request: &Request| {
        let rendered = provider.rendered(request).ok()?;
        let notes = rendered.notes.iter().map(|note| format!("{:?}", note.what));
        let notes: Vec<String> = notes.collect();
        Some((value(&rendered.body)?, notes, rendered.prefix))
    };
    let sent = |request: &Request| body(request).map(|(body, ..)| body);
    // Its thinking comes from a reply to the question, and is bound to that.
    let asked = body(&wishes.of(sample::question(Some(EXAMPLE)), provider));
    let bind = |reply| match asked {
        Some((.., prefix)) => prefix.bind(reply),
        None => reply,
    };
    let request = wishes.of(sample::of_messages(EXAMPLE, profile, bind), provider);
    let rules = sentences::rules_of("AM");
    let sample = body(&request).map(|(body, notes, _)| {
        let faults = anthropic::validate(&body, profile);
        sampled(body, notes, &faults, rules)
    });
    let line = &provider.line;
    Explained {
        wire: name_of(Wire::Messages),
        address: line.http.base.to_string(),
        key_from: line.key_from.clone(),
        profile: profile.name.clone(),
        peculiarities: sentences::of_messages(profile),
        thinking: levels(&sent),
        caching: with(
            sentences::cache_of_messages(profile, &line.facts),
            wishes.kept(&line.facts, provider),
        ),
        window_from: window_from(line.tells),
        weighs: Some("POST messages/count_tokens"),
        hosted_tools: wishes.tools(anthropic::hosted_kinds().collect(), provider),
        cannot: sentences::messages_cannot(profile, &line.facts),
        sample,
    }
}

fn with(
    mut all: Vec<Peculiarity>,
    more: impl IntoIterator<Item = Peculiarity>,
) -> Vec<Peculiarity> {
    all.extend(more);
    all
}

fn value(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

fn sampled(
    request: Value,
    left_out: Vec<String>,
    faults: &[Fault],
    rules: Vec<&'static str>,
) -> Sample {
    Sample {
        request,
        left_out,
        faults: faults.iter().map(ToString::to_string).collect(),
        rules,
    }
}

/// What each level is sent as, taken from requests that say it.
fn levels(sent: &dyn Fn(&Request) -> Option<Value>) -> Vec<Level> {
    let levels = LEVELS.iter().map(|(level, name)| {
        let body = sent(&sample::question(Some(*level))).unwrap_or_default();
        let said = THINKING_KEYS.iter().filter_map(|key| {
            let value = body.get(*key).filter(|value| !value.is_null())?;
            Some(((*key).to_owned(), value.clone()))
        });
        Level {
            level: name,
            sent: said.collect(),
        }
    });
    levels.collect()
}

/// What a wire is called by people.
pub(crate) fn name_of(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "OpenAI Chat Completions",
        Wire::Responses => "OpenAI Responses",
        Wire::Messages => "Anthropic Messages",
        Wire::Gemini => "Gemini generateContent",
        Wire::Vertex => "Vertex AI generateContent",
        Wire::Converse => "Bedrock Converse",
        Wire::Ollama => "Ollama's own API",
    }
}

fn window_from(tells: Tells) -> &'static str {
    match tells {
        Tells::Nothing => "its server does not tell; a refusal does",
        Tells::Models => "its list of models",
        Tells::Props => "/props, the window of one slot",
        Tells::Ollama => "/api/ps, once the model is loaded",
        Tells::LmStudio => "/api/v0/models, once the model is loaded",
        Tells::LikeAnthropic => "the model's own entry, or /props",
        Tells::Anthropic | Tells::Google => "the model's own entry",
        Tells::Perhaps => "its list of models or /props, where it has them",
    }
}

/// Whether the model takes images, as far as it is known.
fn takes_images(facts: &ModelFacts) -> Option<bool> {
    facts.images.as_ref().map(|fact| fact.value)
}

#[cfg(test)]
mod tests;
