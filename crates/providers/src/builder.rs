//! [`ModelClientBuilder`]: the settings of a client. Reads no files and asks no server.

use plimsoll_core::Secret;
use plimsoll_wire::openai_chat::{Dialect, Reach};
use plimsoll_wire::{anthropic, bedrock, gemini};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::api_key::{
    ApiKey, Variables, environment, find_base_url, find_key, need_key, usual_base_url,
};
use crate::base_url::BaseUrl;
use crate::client::{Connection, ModelClient};
use crate::error::ProviderError;
use crate::http::{Http, Timeouts};
use crate::model_ref::ModelRef;
use crate::models::{ModelBook, ModelFacts};
use crate::protocol::{
    ChatProtocol, ConverseProtocol, GeminiProtocol, MessagesProtocol, Protocol, ResponsesProtocol,
    ServerOwner, dialect_of, profile_of,
};
use crate::rejected_reasoning::RejectedReasoning;
use crate::thinking::chat_reach;
use crate::vendor::{Vendor, WindowReport, Wire};

/// The origin of a key that the caller set.
const SETTINGS: &str = "the settings";
/// The header with the version of Anthropic's API. Requests without it are refused.
const VERSION_HEADER: HeaderName = HeaderName::from_static("anthropic-version");
const VERSION: &str = "2023-06-01";
/// The vendor that serves some of its models only partly, or not at all, through Chat Completions.
const OPENAI: &str = "openai";
/// The prefix of the models at Vertex AI whose protocol is supported.
const VERTEX_MODELS: &str = "gemini";

/// The settings of a [`ModelClient`]. Unset values come from the environment and the model's
/// vendor.
#[derive(Debug, Clone)]
#[must_use]
pub struct ModelClientBuilder {
    model: Result<ModelRef, ProviderError>,
    wire: Option<Wire>,
    base_url: Option<String>,
    /// The key and its origin.
    key: Option<(Secret, String)>,
    dialect: Option<Dialect>,
    headers: Vec<(String, Secret)>,
    timeouts: Timeouts,
    extra: Map<String, Value>,
    facts: Option<ModelFacts>,
}

impl ModelClient {
    /// Creates the settings of a client for a model, written as `provider/name`.
    ///
    /// ```
    /// use plimsoll_providers::{ModelClient, Secret, Wire};
    ///
    /// let builder = ModelClient::builder("anthropic/claude-opus-5").key(Secret::new("sk-test"));
    /// assert_eq!(builder.build()?.wire(), Wire::Messages);
    /// # Ok::<(), plimsoll_providers::ProviderError>(())
    /// ```
    pub fn builder<M>(model: M) -> ModelClientBuilder
    where
        M: TryInto<ModelRef>,
        ProviderError: From<M::Error>,
    {
        ModelClientBuilder {
            model: model.try_into().map_err(ProviderError::from),
            wire: None,
            base_url: None,
            key: None,
            dialect: None,
            headers: Vec::new(),
            timeouts: Timeouts::default(),
            extra: Map::new(),
            facts: None,
        }
    }
}

impl ModelClientBuilder {
    /// Sets the protocol, for a server that does not use the vendor's usual one.
    pub fn wire(mut self, wire: Wire) -> Self {
        self.wire = Some(wire);
        self
    }

    /// Sets the address. It overrides the environment and the vendor's usual address. A key is
    /// optional at this address, but sent if there is one.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets the key. It overrides the environment; an empty key sends none.
    pub fn key(self, key: Secret) -> Self {
        self.key_of(SETTINGS, key)
    }

    /// Sets the key and the environment variable that it comes from. The name is shown in messages.
    pub fn key_of(mut self, variable: impl Into<String>, key: Secret) -> Self {
        self.key = Some((key, variable.into()));
        self
    }

    /// Sets the dialect of Chat Completions, if the server does not use the vendor's usual one.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Adds a header to every request. Its value is treated as a secret.
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Sets how long to wait while the server is silent.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets extra keys for the body of every request.
    pub fn extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = extra;
        self
    }

    /// Sets the facts about the model. They replace the built-in ones. Facts that the user states
    /// are enforced; the window applies if the server does not report one.
    pub fn facts(mut self, facts: ModelFacts) -> Self {
        self.facts = Some(facts);
        self
    }

    /// Creates a client for the protocol of the model's vendor, with the environment of this
    /// process.
    ///
    /// OpenAI serves some models only through Responses, or only there with tools and thinking
    /// together. At OpenAI's own address these use Responses, unless a dialect is set.
    ///
    /// # Errors
    /// A [`ProviderError`] if a setting is missing or wrong.
    pub fn build(self) -> Result<ModelClient, ProviderError> {
        self.build_with(&environment)
    }

    /// Creates the client with these variables instead of the environment.
    ///
    /// # Errors
    /// A [`ProviderError`] if a setting is missing or wrong.
    pub fn build_with(self, variables: Variables<'_>) -> Result<ModelClient, ProviderError> {
        let model = self.model.clone()?;
        let wire = self.protocol_of(&model, variables);
        let dialect = self.dialect.clone();
        let (connection, server) = self.connect_to(model, wire, variables)?;
        let (model, facts) = (&connection.model, &connection.facts);
        let protocol: Box<dyn Protocol> = match wire {
            Wire::Chat => {
                let dialect = dialect.unwrap_or_else(|| dialect_of(model));
                Box::new(ChatProtocol::new(model, facts, facts.dialect(dialect)))
            }
            Wire::Responses => {
                let profile = facts.responses(profile_of(model, server));
                Box::new(ResponsesProtocol::new(model, facts, profile))
            }
            Wire::Messages => Box::new(MessagesProtocol {
                profile: facts.messages(anthropic::MessagesProfile::of_model(model.name())),
            }),
            Wire::Vertex if !model.name().starts_with(VERTEX_MODELS) => {
                return Err(ProviderError::NotServed {
                    provider: model.vendor().name,
                    model: model.name().to_owned(),
                    served: "gemini-*",
                });
            }
            Wire::Gemini | Wire::Vertex => Box::new(GeminiProtocol {
                profile: facts.gemini(gemini::GeminiProfile::of_model(model.name())),
                at_vertex: wire == Wire::Vertex,
            }),
            Wire::Converse => Box::new(ConverseProtocol {
                profile: facts.converse(bedrock::ConverseProfile::of_model(model.name())),
                model: model.name().to_owned(),
            }),
        };
        Ok(ModelClient {
            rejected: RejectedReasoning::new(protocol.rejection_texts()),
            connection,
            protocol,
            wire,
        })
    }

    /// Chooses the protocol for the server.
    fn protocol_of(&self, model: &ModelRef, variables: Variables<'_>) -> Wire {
        let vendor = model.vendor();
        let elsewhere = self.base_url.clone();
        let elsewhere = elsewhere.or_else(|| find_base_url(vendor, variables));
        let is_here = elsewhere.is_none_or(|url| is_usual(&url, vendor));
        let detour = is_here
            && self.dialect.is_none()
            && vendor.name == OPENAI
            && chat_reach(model) != Reach::Whole;
        match self.wire {
            Some(wire) => wire,
            None if detour => Wire::Responses,
            None => vendor.wire,
        }
    }

    /// Creates the connection. Also returns whether the server is the vendor's own.
    fn connect_to(
        self,
        model: ModelRef,
        wire: Wire,
        variables: Variables<'_>,
    ) -> Result<(Connection, ServerOwner), ProviderError> {
        let vendor = model.vendor();
        let elsewhere = self.base_url.or_else(|| find_base_url(vendor, variables));
        let found = |key: ApiKey| (key.secret, key.variable.to_owned());
        let key = match (self.key, &elsewhere) {
            (Some(key), _) => Some(key),
            (None, Some(_)) => find_key(vendor, variables).map(found),
            (None, None) => need_key(vendor, variables)?.map(found),
        };
        let (key, key_from) = key.filter(|(key, _)| !key.is_empty()).unzip();
        let server = match &elsewhere {
            Some(url) if !is_usual(url, vendor) => ServerOwner::Another,
            _ => ServerOwner::Vendors,
        };
        // Another server may be a proxy, or one with the vendor's protocol.
        let tells = match (server, vendor.tells) {
            (ServerOwner::Another, WindowReport::Nothing) => WindowReport::Perhaps,
            (ServerOwner::Another, WindowReport::Anthropic) => WindowReport::LikeAnthropic,
            (_, tells) => tells,
        };
        let base = match elsewhere {
            Some(elsewhere) => Some(elsewhere.into()),
            None => usual_base_url(vendor, variables)?,
        };
        let base = base.ok_or(ProviderError::NoBaseUrl {
            provider: vendor.name,
        })?;
        let base = BaseUrl::parse(&base, vendor.base_url)?;
        let mut headers = headers(&self.headers)?;
        if let Some(key) = &key {
            // A header that the caller set replaces the key.
            let (name, value) = vendor.header(key)?;
            headers.entry(name).or_insert(value);
        }
        if wire == Wire::Messages {
            let version = HeaderValue::from_static(VERSION);
            headers.entry(VERSION_HEADER).or_insert(version);
        }
        let http = Http::new(base, headers, self.timeouts)?;
        let headers = self.headers.iter();
        let keys = headers.filter_map(|(name, value)| Secret::of_header(name, value.expose()));
        let in_address = http.base.secrets().into_iter();
        let keys = keys.chain(in_address.filter(Secret::looks_like_a_key));
        let keys = keys.chain(key.clone()).collect();
        let secrets = self.headers.into_iter().map(|(_, value)| value);
        let secrets = secrets.chain(key).chain(http.base.secrets()).collect();
        let known = || ModelBook::built_in().facts(&model);
        let connection = Connection {
            facts: self.facts.unwrap_or_else(known),
            http,
            full_name: model.to_string(),
            model,
            key_from,
            secrets,
            keys,
            tells,
            extra: self.extra,
            reported: OnceCell::new(),
        };
        Ok((connection, server))
    }
}

/// Checks whether an address is the vendor's usual one in any spelling, or a regional address of
/// OpenAI such as `https://eu.api.openai.com/v1`.
fn is_usual(url: &str, vendor: &Vendor) -> bool {
    let read = |url: &str| BaseUrl::parse(url, vendor.base_url).ok();
    let (Some(given), Some(usual)) = (read(url), vendor.base_url.and_then(read)) else {
        return false;
    };
    given == usual || (vendor.name == OPENAI && given.is_within(&usual))
}

fn headers(given: &[(String, Secret)]) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let bad = || ProviderError::BadHeader { name: name.clone() };
        let parsed = HeaderName::try_from(name.as_str()).map_err(|_| bad())?;
        let value = HeaderValue::from_str(value.expose()).map_err(|_| bad())?;
        headers.insert(parsed, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Provider;

    use super::*;

    const HUSH: &str = "sk-0123456789-hush";

    fn env(name: &str) -> Option<String> {
        let value = match name {
            "OPENAI_API_KEY" => HUSH,
            "GROQ_API_KEY" => "two\nlines",
            "OLLAMA_HOST" => "0.0.0.0",
            _ => return None,
        };
        Some(value.to_owned())
    }

    fn builder(model: &str) -> ModelClientBuilder {
        ModelClient::builder(model)
    }

    #[test]
    fn what_is_not_given_comes_from_the_environment_and_the_vendor() {
        for (model, base_url, base, key) in [
            ("openai/gpt-4o", None, "https://api.openai.com/v1", true),
            (
                "openai/gpt-4o",
                Some("localhost:4000"),
                "http://localhost:4000/v1",
                true,
            ),
            (
                "xai/grok-4",
                Some("localhost:4000"),
                "http://localhost:4000/v1",
                false,
            ),
            ("ollama/qwen3", None, "http://127.0.0.1:11434/v1", false),
            ("llama.cpp", None, "http://127.0.0.1:8080/v1", false),
            (
                "openai-compatible/m",
                Some("h:1/v1"),
                "https://h:1/v1",
                false,
            ),
        ] {
            let mut builder = builder(model);
            if let Some(base_url) = base_url {
                builder = builder.base_url(base_url);
            }
            let chat = builder.build_with(&env).unwrap();
            assert_eq!(chat.base_url().to_string(), base);
            assert_eq!(chat.connection.key_from.is_some(), key, "{model}");
            assert_eq!(chat.model(), ModelRef::parse(model).unwrap().to_string());
        }
    }

    #[test]
    fn what_is_missing_is_said_and_no_secret_is() {
        for (builder, cure) in [
            (builder("xai/grok-4"), "set XAI_API_KEY"),
            (builder("groq/m"), "copy it again"),
            (builder("openai-compatible/m"), "--base-url"),
            (builder("local"), "--base-url"),
            (
                builder("ollama/m").base_url("ftp://x"),
                "neither http nor https",
            ),
            (
                builder("ollama/m").header("a b", Secret::new(HUSH)),
                "`a b`",
            ),
            (
                builder("ollama/m").header("x", Secret::new("hu\nsh")),
                "`x`",
            ),
        ] {
            let error = builder.build_with(&env).unwrap_err().to_string();
            assert!(error.contains(cure), "{error}");
            assert!(!error.contains("hush") && !error.contains("two"), "{error}");
        }
    }

    #[test]
    fn what_chat_does_not_go_all_the_way_with_goes_over_responses_at_openais_own_address() {
        let own = "https://api.openai.com/v1/";
        let protocol_of = |builder: ModelClientBuilder, variables: Variables<'_>| {
            let model = builder.model.clone().unwrap();
            builder.protocol_of(&model, variables)
        };
        let wire = |builder: ModelClientBuilder| protocol_of(builder, &env);
        for model in [
            "gpt-5.4",
            "gpt-5.6-terra",
            "gpt-6-astra",
            "gpt-5-pro",
            "o3-pro",
            "gpt-99",
        ] {
            let model = format!("openai/{model}");
            assert_eq!(wire(builder(&model)), Wire::Responses, "{model}");
            assert_eq!(wire(builder(&model).base_url(own)), Wire::Responses);
            assert_eq!(
                wire(builder(&model).base_url("http://proxy:4000")),
                Wire::Chat
            );
            assert_eq!(wire(builder(&model).dialect(Dialect::openai())), Wire::Chat);
            let provider = builder(&model).build_with(&env).unwrap();
            assert_eq!(provider.model(), model);
        }
        let elsewhere = |name: &str| match name {
            "OPENAI_BASE_URL" => Some("https://proxy.example/v1".to_owned()),
            name => env(name),
        };
        assert_eq!(
            protocol_of(builder("openai/gpt-5.6"), &elsewhere),
            Wire::Chat
        );
        for (address, over) in [
            ("https://eu.api.openai.com/v1", Wire::Responses),
            ("https://us.api.openai.com", Wire::Responses),
            ("au.api.openai.com/v1/", Wire::Responses),
            ("http://eu.api.openai.com/v1", Wire::Chat),
            ("https://eu.api.openai.com:8443/v1", Wire::Chat),
            ("https://eu.api.openai.com/v2", Wire::Chat),
            ("https://api.openai.com.example/v1", Wire::Chat),
            ("https://evil-api.openai.com/v1", Wire::Chat),
        ] {
            let regional = |name: &str| match name {
                "OPENAI_BASE_URL" => Some(address.to_owned()),
                name => env(name),
            };
            let model = "openai/gpt-5.4-pro";
            assert_eq!(protocol_of(builder(model), &regional), over, "{address}");
        }
        for model in [
            "openai/gpt-5",
            "openai/o3",
            "openai/gpt-4o",
            "openrouter/openai/gpt-5.6",
        ] {
            assert_eq!(wire(builder(model)), Wire::Chat, "{model}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let builder = builder("openai/gpt-4o").header("x-key", Secret::new(HUSH));
        assert!(!format!("{builder:?}").contains("hush"));
        let chat = builder.build_with(&env).unwrap();
        assert!(!format!("{chat:#?}").contains("hush"), "{chat:#?}");
    }

    #[test]
    fn an_endpoint_is_an_address_and_a_model_and_no_secret() {
        for (builder, endpoint) in [
            (builder("openai/gpt-4o"), "https://api.openai.com/v1 gpt-4o"),
            (
                builder("openai/gpt-4o").base_url("https://h/v1?key=hush-hush"),
                "https://h/v1 gpt-4o",
            ),
            (
                builder("openrouter/a/b").key(Secret::new(HUSH)),
                "https://openrouter.ai/api/v1 a/b",
            ),
            // Plimsoll's own server uses a different port each time.
            (
                builder("local").base_url("http://127.0.0.1:40999"),
                "local/default",
            ),
        ] {
            assert_eq!(builder.build_with(&env).unwrap().endpoint(), endpoint);
        }
        let told = builder("openai/m").base_url(format!("https://h/{HUSH}/v1"));
        let told = told.key(Secret::new(HUSH)).build_with(&env).unwrap();
        assert!(!told.endpoint().contains(HUSH), "{}", told.endpoint());
    }

    #[test]
    fn an_empty_key_sends_none() {
        let chat = builder("openai/gpt-4o").key(Secret::new(" "));
        assert!(chat.build_with(&env).unwrap().connection.key_from.is_none());
    }
}
