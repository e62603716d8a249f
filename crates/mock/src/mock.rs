//! [`Mock`]: the configuration of a server: its API, its script and its limits.
//! [`Server::start`](crate::Server::start) starts the server.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use plimsoll_context::Tokens;
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::Value;

use crate::api::Api;
use crate::chat::Chat;
use crate::error::MockError;
use crate::gemini::Gemini;
use crate::messages::Messages;
use crate::responses::Responses;
use crate::script::Script;
use crate::turn::Turn;

/// The default model name.
const MODEL: &str = "mock";

/// The configuration of a server.
#[derive(Clone)]
pub struct Mock {
    pub(crate) api: Arc<dyn Api>,
    pub(crate) script: Script,
    pub(crate) then: Option<Arc<Then>>,
    pub(crate) scales: Option<Arc<Scales>>,
    pub(crate) models: Vec<String>,
    pub(crate) pages: Pages,
    pub(crate) window: Option<Tokens>,
    pub(crate) over: Over,
    pub(crate) per_minute: Option<Tokens>,
    pub(crate) busy_every: Option<u64>,
    pub(crate) address: SocketAddr,
}

/// A function that returns the turn for a request and its number, from 0.
pub(crate) type Then = dyn Fn(&Value, u64) -> Turn + Send + Sync;

/// A function that returns the size of a request in tokens.
pub(crate) type Scales = dyn Fn(&Value) -> u64 + Send + Sync;

/// Fixed answers: a status and a body for each path.
pub(crate) type Pages = BTreeMap<String, (u16, Value)>;

/// The reaction to a request that exceeds the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Refused,
    /// Silently drops the beginning of the request, as some local servers do.
    Cut,
    /// Begins the answer and reports the overflow in the stream.
    InStream,
}

impl Mock {
    /// Creates a server of OpenAI Chat Completions with the strictness of this dialect.
    ///
    /// # Errors
    /// If the dialect is unknown.
    pub fn chat(dialect: &str) -> Result<Self, MockError> {
        let dialect =
            Dialect::named(dialect).ok_or_else(|| MockError::Dialect(dialect.to_owned()))?;
        Ok(Self::of(Chat(dialect)))
    }

    /// Creates a server of Anthropic Messages. It validates each request by the rules for the named
    /// model, signs its thinking, and verifies thinking that is sent back.
    #[must_use]
    pub fn messages() -> Self {
        Self::of(Messages { needs_key: true })
    }

    /// Creates a server of Anthropic Messages without API keys, like compatible servers of other
    /// makers.
    #[must_use]
    pub fn messages_without_keys() -> Self {
        Self::of(Messages { needs_key: false })
    }

    /// Creates a server of Gemini's `generateContent`. It validates each request by the rules for the
    /// model in its path.
    #[must_use]
    pub fn gemini() -> Self {
        Self::of(Gemini)
    }

    /// Creates a server of OpenAI Responses with OpenAI's reasoning models. It encrypts its
    /// reasoning, and decrypts reasoning that is sent back.
    #[must_use]
    pub fn responses() -> Self {
        Self::responses_by(|_| ResponsesProfile::openai())
    }

    /// Creates a server of OpenAI Responses whose models have the profile that `profile` returns
    /// for their name.
    #[must_use]
    pub fn responses_by(
        profile: impl Fn(&str) -> ResponsesProfile + Send + Sync + 'static,
    ) -> Self {
        Self::of(Responses::new(Arc::new(profile)))
    }

    fn of(api: impl Api + 'static) -> Self {
        Self {
            api: Arc::new(api),
            script: Script::default(),
            then: None,
            scales: None,
            models: vec![MODEL.to_owned()],
            pages: Pages::new(),
            window: None,
            over: Over::Refused,
            per_minute: None,
            busy_every: None,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        }
    }

    /// Returns the protocol: `openai`, `openai-responses`, `anthropic` or `gemini`.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        &self.api.facts().name
    }

    /// Sets the script. Default: an empty script, so every request fails.
    #[must_use]
    pub fn script(mut self, script: Script) -> Self {
        self.script = script;
        self
    }

    /// Sets the answers after the end of the script, by request and request number, from 0.
    /// Default: none.
    #[must_use]
    pub fn then(mut self, then: impl Fn(&Value, u64) -> Turn + Send + Sync + 'static) -> Self {
        self.then = Some(Arc::new(then));
        self
    }

    /// Sets the token count of requests. Default: the number of o200k tokens in their texts.
    #[must_use]
    pub fn weighing(mut self, scales: impl Fn(&Value) -> u64 + Send + Sync + 'static) -> Self {
        self.scales = Some(Arc::new(scales));
        self
    }

    /// Sets the listed model names. Default: `mock`. Requests with other names are answered too.
    #[must_use]
    pub fn models<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.models = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a fixed answer for a path. It takes precedence over other answers.
    #[must_use]
    pub fn page(mut self, path: impl Into<String>, status: u16, body: Value) -> Self {
        self.pages.insert(path.into(), (status, body));
        self
    }

    /// Sets the window in tokens (o200k). Longer requests are refused. Default: none.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(Tokens(tokens));
        self
    }

    /// Silently drops the beginning of a request that exceeds the window, instead of refusing it.
    #[must_use]
    pub fn cuts_silently(mut self) -> Self {
        self.over = Over::Cut;
        self
    }

    /// Reports an exceeded window in the stream: as an error or, for Anthropic Messages, by ending
    /// the reply at the end of the window.
    #[must_use]
    pub fn overflows_in_stream(mut self) -> Self {
        self.over = Over::InStream;
        self
    }

    /// Refuses requests of more than this many tokens as too many per minute. Default: no limit.
    #[must_use]
    pub fn tokens_per_minute(mut self, tokens: u64) -> Self {
        self.per_minute = Some(Tokens(tokens));
        self
    }

    /// Refuses every n-th request with status 429. Default: none.
    #[must_use]
    pub fn busy_every(mut self, requests: u64) -> Self {
        self.busy_every = Some(requests.max(1));
        self
    }

    /// Sets the listening address. Default: a free port on loopback.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }
}

impl fmt::Debug for Mock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mock")
            .field("api", &self.api)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
