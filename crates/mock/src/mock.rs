//! [`Mock`]: what a server is to be: whose rules it judges by, what it says, and what it cannot take.
//! Not a server yet; [`Server::start`](crate::Server::start) makes it one.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use plimsoll_context::Tokens;
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_responses::Profile;
use serde_json::Value;

use crate::api::Api;
use crate::chat::Chat;
use crate::error::MockError;
use crate::messages::{Keys, Messages};
use crate::record::Keep;
use crate::responses::Responses;
use crate::script::Script;
use crate::turn::Turn;

/// The name of the model where nobody gives one.
const MODEL: &str = "mock";

/// What a server is to be.
#[derive(Clone)]
pub struct Mock {
    pub(crate) api: Arc<dyn Api>,
    pub(crate) script: Script,
    pub(crate) then: Option<Arc<Then>>,
    pub(crate) scales: Option<Arc<Scales>>,
    pub(crate) models: Vec<String>,
    pub(crate) pages: Vec<Page>,
    pub(crate) window: Option<Tokens>,
    pub(crate) over: Over,
    pub(crate) per_minute: Option<Tokens>,
    pub(crate) busy_every: Option<u64>,
    pub(crate) keep: Keep,
    pub(crate) address: SocketAddr,
}

/// What a request is answered with, by what it says and by its number, from 0.
pub(crate) type Then = dyn Fn(&Value, u64) -> Turn + Send + Sync;

/// What a request weighs.
pub(crate) type Scales = dyn Fn(&Value) -> u64 + Send + Sync;

/// A fixed answer at a path.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// What happens to a request over the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Refused,
    /// The beginning is dropped without a word, as some local servers do.
    Cut,
    /// The answer begins and then says so.
    InStream,
}

impl Mock {
    /// A server of OpenAI Chat Completions that is as strict as this dialect's.
    ///
    /// # Errors
    /// Where there is no such dialect.
    pub fn chat(dialect: &str) -> Result<Self, MockError> {
        let dialect =
            Dialect::named(dialect).ok_or_else(|| MockError::Dialect(dialect.to_owned()))?;
        Ok(Self::of(Chat(dialect)))
    }

    /// A server of Anthropic Messages. It judges each request by the rules for the model that the
    /// request names, signs the thinking that it sends, and verifies what comes back of it.
    #[must_use]
    pub fn messages() -> Self {
        Self::of(Messages { keys: Keys::Needed })
    }

    /// The same without keys, as servers have it that only speak like Anthropic's.
    #[must_use]
    pub fn messages_without_keys() -> Self {
        Self::of(Messages {
            keys: Keys::Unneeded,
        })
    }

    /// A server of OpenAI Responses with reasoning models, as OpenAI serves them. It encrypts the
    /// reasoning that it sends and decrypts what comes back of it.
    #[must_use]
    pub fn responses() -> Self {
        Self::responses_by(|_| Profile::openai())
    }

    /// The same with models that want what this says for the name in each request.
    #[must_use]
    pub fn responses_by(profile: impl Fn(&str) -> Profile + Send + Sync + 'static) -> Self {
        Self::of(Responses::new(Arc::new(profile)))
    }

    fn of(api: impl Api + 'static) -> Self {
        Self {
            api: Arc::new(api),
            script: Script::default(),
            then: None,
            scales: None,
            models: vec![MODEL.to_owned()],
            pages: Vec::new(),
            window: None,
            over: Over::Refused,
            per_minute: None,
            busy_every: None,
            keep: Keep::default(),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        }
    }

    /// Which wire it speaks: `openai`, `openai-responses` or `anthropic`.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        self.api.name()
    }

    /// What it says. Default: nothing, so that every request fails.
    #[must_use]
    pub fn script(mut self, script: Script) -> Self {
        self.script = script;
        self
    }

    /// What it says once its script has ended, by what it is asked and by which request it is, from
    /// 0. Default: nothing.
    #[must_use]
    pub fn then(mut self, then: impl Fn(&Value, u64) -> Turn + Send + Sync + 'static) -> Self {
        self.then = Some(Arc::new(then));
        self
    }

    /// What requests weigh. Default: as many tokens as their texts have in the o200k vocabulary.
    #[must_use]
    pub fn weighing(mut self, scales: impl Fn(&Value) -> u64 + Send + Sync + 'static) -> Self {
        self.scales = Some(Arc::new(scales));
        self
    }

    /// The names of its models, as it lists them. Default: `mock`. Any other name is answered too.
    #[must_use]
    pub fn models<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.models = names.into_iter().map(Into::into).collect();
        self
    }

    /// A fixed answer at a path, before all others there.
    #[must_use]
    pub fn page(mut self, path: impl Into<String>, status: u16, body: Value) -> Self {
        let path = path.into();
        self.pages.retain(|page| page.path != path);
        self.pages.push(Page { path, status, body });
        self
    }

    /// Its window in tokens (o200k): what is longer is refused. Default: none.
    #[must_use]
    pub fn window(mut self, tokens: u64) -> Self {
        self.window = Some(Tokens(tokens));
        self
    }

    /// What does not fit the window is cut off at its beginning without a word.
    #[must_use]
    pub fn cuts_silently(mut self) -> Self {
        self.over = Over::Cut;
        self
    }

    /// What does not fit the window is said in the stream: as an error in it or, on Anthropic
    /// Messages, by the reply ending where the window does.
    #[must_use]
    pub fn overflows_in_stream(mut self) -> Self {
        self.over = Over::InStream;
        self
    }

    /// A request of more tokens than this is refused as too many for a minute.
    #[must_use]
    pub fn tokens_per_minute(mut self, tokens: u64) -> Self {
        self.per_minute = Some(Tokens(tokens));
        self
    }

    /// Every so many requests one is refused with a 429.
    #[must_use]
    pub fn busy_every(mut self, requests: u64) -> Self {
        self.busy_every = Some(requests.max(1));
        self
    }

    /// Of what it is asked neither bodies nor headers are kept to be looked at. Default: as much of
    /// them as [`MAX_RECORDED_BYTES`](crate::MAX_RECORDED_BYTES) lets it.
    #[must_use]
    pub fn keeps_outlines(mut self) -> Self {
        self.keep = Keep::Outline;
        self
    }

    /// Where it listens. Default: a free port on loopback.
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
            .field("window", &self.window)
            .field("over", &self.over)
            .field("per_minute", &self.per_minute)
            .field("busy_every", &self.busy_every)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
