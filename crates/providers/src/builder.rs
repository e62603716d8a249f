//! [`OpenAiChatBuilder`]: puts a provider of any wire together from what is given, the environment and the
//! vendor's own. Reads no files and asks no server.

use std::sync::Arc;

use plimsoll_core::Provider;
use plimsoll_wire::anthropic;
use plimsoll_wire::openai_chat::{CacheMarks, Dialect, Reach, Template, Voice};
use plimsoll_wire::openai_responses::Profile;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use crate::base_url::BaseUrl;
use crate::chat::OpenAiChat;
use crate::efforts::goes;
use crate::error::ProviderError;
#[cfg(feature = "genai")]
use crate::genai::{Api, Genai};
use crate::http::Http;
use crate::key::{Key, Variables, environment, find_base_url, find_key, need_key, usual_base_url};
use crate::line::Line;
use crate::messages::AnthropicMessages;
use crate::model_ref::ModelRef;
use crate::models::{ModelBook, ModelFacts};
use crate::responses::{OpenAiResponses, Server, profile_of};
use crate::timeouts::Timeouts;
use crate::unread::Unread;
use crate::vendor::{Tells, Vendor, Wire};
use crate::weigh::Scales;
use plimsoll_core::Secret;

/// Families of chat templates by what models of theirs are called.
const TEMPLATES: [(&str, Template); 12] = [
    ("gemma", Template::Gemma),
    ("devstral", Template::Mistral),
    ("mistral", Template::Mistral),
    ("ministral", Template::Mistral),
    ("magistral", Template::Mistral),
    ("codestral", Template::Mistral),
    ("pixtral", Template::Mistral),
    ("mixtral", Template::Mistral),
    ("qwen", Template::Qwen),
    ("llama3.1", Template::Llama31),
    ("llama-3.1", Template::Llama31),
    ("llama-3_1", Template::Llama31),
];

/// Where a key comes from that was given.
const SETTINGS: &str = "the settings";
/// Whose models Chat Completions does not go all the way with.
const OPENAI: &str = "openai";
/// Keys of a request that Responses does not know: whoever sets one means Chat Completions.
const CHATS_OWN: [&str; 17] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "modalities",
    "n",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "verbosity",
];

/// A gateway to models that cache only what is marked, and what it calls them.
const GATEWAY: &str = "openrouter";
const WANTS_MARKS: &str = "anthropic/";

/// Puts an [`OpenAiChat`] together, or whichever provider speaks the wire of the model's vendor.
#[derive(Debug, Clone)]
#[must_use]
pub struct OpenAiChatBuilder {
    model: ModelRef,
    base_url: Option<String>,
    key: Option<Secret>,
    key_from: Option<String>,
    dialect: Option<Dialect>,
    profile: Option<Profile>,
    messages_profile: Option<anthropic::Profile>,
    headers: Vec<(String, Secret)>,
    timeouts: Timeouts,
    extra: Map<String, Value>,
    facts: Option<ModelFacts>,
}

impl OpenAiChat {
    /// A provider for a model.
    pub fn builder(model: ModelRef) -> OpenAiChatBuilder {
        OpenAiChatBuilder {
            model,
            base_url: None,
            key: None,
            key_from: None,
            dialect: None,
            profile: None,
            messages_profile: None,
            headers: Vec::new(),
            timeouts: Timeouts::default(),
            extra: Map::new(),
            facts: None,
        }
    }
}

impl OpenAiChatBuilder {
    /// Another address than the environment's or the vendor's usual one. A key is not needed
    /// there, but sent where there is one.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// A key in place of the environment's; an empty one sends none.
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self.key_from = None;
        self
    }

    /// The same, and the environment's variable that it comes from, for what is told of it.
    pub fn key_of(mut self, variable: impl Into<String>, key: Secret) -> Self {
        self = self.key(key);
        self.key_from = Some(variable.into());
        self
    }

    /// What the server wants of a Chat request, where it is not the vendor's usual.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// What the model wants of a Responses request, where its name does not tell.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// What the model wants of a Messages request, where its name does not tell.
    pub fn messages_profile(mut self, profile: anthropic::Profile) -> Self {
        self.messages_profile = Some(profile);
        self
    }

    /// A further header of every request; its value counts as secret.
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// How long silence is waited through.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Further keys of every request's body.
    pub fn extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = extra;
        self
    }

    /// What is known of the model, where that is not what this version knows. What the user says of
    /// it is enforced; the window stands where the server does not tell.
    pub fn facts(mut self, facts: ModelFacts) -> Self {
        self.facts = Some(facts);
        self
    }

    /// Makes the provider that speaks the wire of the model's vendor, with this process's
    /// environment. At OpenAI's own address that is Responses for models of theirs that Chat
    /// Completions does not serve, or not with tools and thinking at once, unless a dialect or a
    /// key of Chat's is given.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn provider(self) -> Result<Arc<dyn Provider>, ProviderError> {
        self.provider_with(&environment)
    }

    /// Makes the provider that speaks the wire of the model's vendor, with the variables given.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn provider_with(
        self,
        variables: Variables<'_>,
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(match self.wire(variables) {
            Wire::Chat => Arc::new(self.build_with(variables)?),
            Wire::Responses => Arc::new(self.responses_with(variables)?),
            Wire::Messages => Arc::new(self.messages_with(variables)?),
            Wire::Gemini | Wire::Vertex | Wire::Converse | Wire::Ollama => {
                return self.other_with(variables);
            }
        })
    }

    /// Makes a provider that speaks Chat Completions, with this process's environment.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn build(self) -> Result<OpenAiChat, ProviderError> {
        self.build_with(&environment)
    }

    /// Makes a provider that speaks Chat Completions, with the variables given.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn build_with(mut self, variables: Variables<'_>) -> Result<OpenAiChat, ProviderError> {
        let dialect = self.dialect.take();
        let dialect = dialect.unwrap_or_else(|| dialect_of(&self.model));
        let (line, _) = self.line(variables)?;
        let dialect = line.facts.dialect(dialect);
        Ok(OpenAiChat { line, dialect })
    }

    /// Makes a provider that speaks Responses, with the variables given.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn responses_with(
        mut self,
        variables: Variables<'_>,
    ) -> Result<OpenAiResponses, ProviderError> {
        let profile = self.profile.take();
        let (line, server) = self.line(variables)?;
        let profile =
            profile.unwrap_or_else(|| line.facts.responses(profile_of(&line.model, server)));
        Ok(OpenAiResponses {
            line,
            profile,
            unread: Unread::responses(),
        })
    }

    /// Makes a provider that speaks Messages, with the variables given.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    pub fn messages_with(
        mut self,
        variables: Variables<'_>,
    ) -> Result<AnthropicMessages, ProviderError> {
        let profile = self.messages_profile.take();
        let (line, _) = self.line(variables)?;
        let of_model = || anthropic::Profile::of_model(line.model.name());
        let profile = profile.unwrap_or_else(|| line.facts.messages(of_model()));
        Ok(AnthropicMessages {
            line,
            profile,
            unread: Unread::messages(),
        })
    }

    /// Makes a provider that speaks through the genai library, with the variables given.
    ///
    /// # Errors
    /// A [`ProviderError`] that says what is missing or wrong.
    #[cfg(feature = "genai")]
    pub fn genai_with(self, variables: Variables<'_>) -> Result<Genai, ProviderError> {
        let provider = self.model.vendor().name;
        let Some(api) = Api::of(&self.model)? else {
            let model = self.model.name().to_owned();
            return Err(ProviderError::NotServed {
                provider,
                model,
                served: "what another wire speaks",
            });
        };
        if !self.extra.is_empty() && !api.takes_extra() {
            return Err(ProviderError::NoExtra { provider });
        }
        let (line, _) = self.line(variables)?;
        Genai::new(line, api)
    }

    #[cfg(feature = "genai")]
    fn other_with(self, variables: Variables<'_>) -> Result<Arc<dyn Provider>, ProviderError> {
        Ok(Arc::new(self.genai_with(variables)?))
    }

    #[cfg(not(feature = "genai"))]
    fn other_with(self, _: Variables<'_>) -> Result<Arc<dyn Provider>, ProviderError> {
        Err(ProviderError::NotBuiltIn {
            provider: self.model.vendor().name,
        })
    }

    /// What is spoken with its server.
    pub(crate) fn wire(&self, variables: Variables<'_>) -> Wire {
        let vendor = self.model.vendor();
        let elsewhere = self.base_url.clone();
        let elsewhere = elsewhere.or_else(|| find_base_url(vendor, variables));
        let here = elsewhere.is_none_or(|url| is_usual(&url, vendor));
        let chat =
            self.dialect.is_some() || CHATS_OWN.iter().any(|key| self.extra.contains_key(*key));
        match vendor.wire {
            Wire::Chat if here && !chat && vendor.name == OPENAI => match goes(&self.model) {
                Reach::Whole => Wire::Chat,
                _ => Wire::Responses,
            },
            wire => wire,
        }
    }

    /// Whose model it is.
    pub(crate) fn vendor(&self) -> &'static Vendor {
        self.model.vendor()
    }

    /// What every provider has, and whose server it is.
    fn line(self, variables: Variables<'_>) -> Result<(Line, Server), ProviderError> {
        let vendor = self.model.vendor();
        let elsewhere = self.base_url.or_else(|| find_base_url(vendor, variables));
        let key = match (self.key, &elsewhere) {
            (Some(secret), _) => Some(Key {
                secret,
                variable: SETTINGS,
            }),
            (None, Some(_)) => find_key(vendor, variables),
            (None, None) => need_key(vendor, variables)?,
        };
        let key = key.filter(|key| !key.secret.is_empty());
        let (server, tells) = match &elsewhere {
            Some(url) if is_usual(url, vendor) => (Server::Vendors, vendor.tells),
            // It may be a proxy, or another server that speaks like the vendor's.
            Some(_) if vendor.tells == Tells::Nothing => (Server::Another, Tells::Perhaps),
            Some(_) if vendor.tells == Tells::Anthropic => (Server::Another, Tells::LikeAnthropic),
            Some(_) => (Server::Another, vendor.tells),
            None => (Server::Vendors, vendor.tells),
        };
        let base = match elsewhere {
            Some(elsewhere) => Some(elsewhere.into()),
            None => usual_base_url(vendor, variables)?,
        };
        let base = base.ok_or(ProviderError::NoBaseUrl {
            provider: vendor.name,
        })?;
        let base = BaseUrl::parse(&base, vendor.base_url)?;
        let headers = headers(&self.headers)?;
        let http = Http::new(base, key.as_ref(), &self.model, headers, self.timeouts)?;
        let headers = self.headers.iter();
        let keys = headers.filter_map(|(name, value)| Secret::of_header(name, value.expose()));
        let in_address = http.base.secrets().into_iter();
        let keys = keys.chain(in_address.filter(Secret::looks_like_a_key));
        let keys = keys
            .chain(key.iter().map(|key| key.secret.clone()))
            .collect();
        let secrets = self.headers.into_iter().map(|(_, value)| value);
        let secrets = secrets
            .chain(key.iter().map(|key| key.secret.clone()))
            .chain(http.base.secrets())
            .collect();
        let known = || ModelBook::built_in().facts(&self.model);
        let line = Line {
            facts: self.facts.unwrap_or_else(known),
            http,
            full_name: self.model.to_string(),
            model: self.model,
            key_from: key.as_ref().map(|key| match key.variable {
                SETTINGS => self.key_from.unwrap_or_else(|| SETTINGS.to_owned()),
                variable => variable.to_owned(),
            }),
            secrets,
            keys,
            tells,
            extra: self.extra,
            reported: OnceCell::new(),
            scales: Scales::default(),
        };
        Ok((line, server))
    }
}

/// Whether an address is the vendor's usual one, however it is written, or that of a region of
/// OpenAI's: `https://eu.api.openai.com/v1`.
fn is_usual(url: &str, vendor: &Vendor) -> bool {
    let read = |url: &str| BaseUrl::parse(url, vendor.base_url).ok();
    let (Some(given), Some(usual)) = (read(url), vendor.base_url.and_then(read)) else {
        return false;
    };
    given == usual || (vendor.name == OPENAI && given.is_within(&usual))
}

/// The vendor's dialect and, where the server runs a chat template, what the model's family
/// demands besides. Models of Mistral's demand it behind every gateway.
pub(crate) fn dialect_of(model: &ModelRef) -> Dialect {
    let dialect = model.vendor().dialect();
    if dialect.name == GATEWAY && model.name().starts_with(WANTS_MARKS) {
        return Dialect {
            cache: CacheMarks::Parts,
            ..dialect
        };
    }
    let name = model.name().to_ascii_lowercase();
    let family = TEMPLATES.iter().find(|(part, _)| name.contains(part));
    match (family, dialect.voice) {
        (Some((_, template)), Voice::Template)
        | (Some((_, template @ Template::Mistral)), Voice::OpenAi) => {
            dialect.with_template(*template)
        }
        _ => dialect,
    }
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
    use super::*;
    use plimsoll_wire::openai_chat::{SameRole, UserAfterTool};

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

    fn builder(model: &str) -> OpenAiChatBuilder {
        OpenAiChat::builder(model.parse().unwrap())
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
            assert_eq!(chat.line.key_from.is_some(), key, "{model}");
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

    #[cfg(not(feature = "genai"))]
    #[test]
    fn what_is_not_in_this_build_says_how_to_get_it() {
        for model in [
            "gemini/m",
            "vertex/gemini-3",
            "bedrock/m",
            "ollama-native/m",
        ] {
            let builder = builder(model).key(Secret::new(HUSH));
            let error = builder.provider_with(&env).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("--features genai"), "{error}");
        }
    }

    #[test]
    fn what_chat_does_not_go_all_the_way_with_goes_over_responses_at_openais_own_address() {
        let own = "https://api.openai.com/v1/";
        let wire = |builder: OpenAiChatBuilder| builder.wire(&env);
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
            let named = |key: &str| Map::from_iter([(key.to_owned(), Value::Null)]);
            assert_eq!(
                wire(builder(&model).extra(named("reasoning_effort"))),
                Wire::Chat
            );
            assert_eq!(
                wire(builder(&model).extra(named("service_tier"))),
                Wire::Responses
            );
            let provider = builder(&model).provider_with(&env).unwrap();
            assert_eq!(provider.model(), model);
        }
        let elsewhere = |name: &str| match name {
            "OPENAI_BASE_URL" => Some("https://proxy.example/v1".to_owned()),
            name => env(name),
        };
        assert_eq!(builder("openai/gpt-5.6").wire(&elsewhere), Wire::Chat);
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
            assert_eq!(builder(model).wire(&regional), over, "{address}");
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
            // Our own server has another port each time.
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
        assert!(chat.build_with(&env).unwrap().line.key_from.is_none());
    }

    #[test]
    fn a_gateway_is_told_what_to_cache_where_the_model_wants_to_be_told() {
        let cache = |model| dialect_of(&ModelRef::parse(model).unwrap()).cache;
        for (model, expected) in [
            ("openrouter/anthropic/claude-opus-4.8", CacheMarks::Parts),
            ("openrouter/openai/gpt-5", CacheMarks::Unasked),
            ("openai/gpt-5", CacheMarks::Key),
            ("groq/anthropic/claude", CacheMarks::Unasked),
        ] {
            assert_eq!(cache(model), expected, "{model}");
        }
    }

    #[test]
    fn a_family_of_templates_adds_its_demands_where_a_template_runs_and_mistrals_everywhere() {
        let after_tool = |model| dialect_of(&ModelRef::parse(model).unwrap()).user_after_tool;
        assert_eq!(after_tool("ollama/devstral:24b"), UserAfterTool::Bridge);
        assert_eq!(after_tool("ollama/qwen3"), UserAfterTool::Allowed);
        for mistral in [
            "openrouter/mistralai/devstral",
            "together/mistralai/Mixtral-8x7B",
        ] {
            assert_eq!(after_tool(mistral), UserAfterTool::Bridge);
        }
        let alternates = |model| dialect_of(&ModelRef::parse(model).unwrap()).same_role;
        assert_eq!(alternates("openrouter/qwen/qwen3"), SameRole::Keep);
        assert_eq!(alternates("vllm/qwen/qwen3"), SameRole::Merge);
        for (name, _) in TEMPLATES {
            assert_eq!(name, name.to_ascii_lowercase());
        }
    }
}
