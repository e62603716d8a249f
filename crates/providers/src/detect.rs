//! [`detect`]: which keys are set and which servers run on this machine. Says no key's value,
//! sends no key, loads no model and starts nothing; printing belongs to others.

use std::time::Duration;

use futures_util::future::join_all;
use plimsoll_context::Tokens;
use reqwest::header::HeaderMap;
use serde::Serialize;

use crate::base_url::BaseUrl;
use crate::discovery;
use crate::http::Http;
use crate::key::{Variables, find_base_url, find_key};
use crate::timeouts::Timeouts;
use crate::vendor::{Place, Tells, VENDORS, Vendor};

/// Servers whose models are used without being named, the best first.
const PREFERRED: [&str; 2] = ["llama.cpp", "ollama"];

/// A server on this machine answers a small question at once, even while it works.
pub const DETECT_TIMEOUT: Duration = Duration::from_millis(1500);

/// What is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detected {
    /// The keys, in the order of [`VENDORS`].
    pub keys: Vec<KeyFound>,
    /// The servers that were looked for.
    pub servers: Vec<ServerFound>,
}

/// A hosted provider's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyFound {
    /// The provider.
    pub provider: &'static str,
    /// The variable that it is in, or should be.
    pub variable: &'static str,
    /// Whether it is there.
    pub state: KeyState,
}

impl Detected {
    /// Returns a server on this machine that answers, and the first of its models: the one to use if nobody
    /// names a model.
    #[must_use]
    pub fn preferred(&self) -> Option<(&ServerFound, &str)> {
        let first = |wanted: &&str| {
            self.servers.iter().find_map(|server| match &server.state {
                ServerState::Up { models } if server.provider == *wanted => {
                    Some((server, models.first()?.name.as_str()))
                }
                _ => None,
            })
        };
        PREFERRED.iter().find_map(first)
    }
}

/// Whether a key is there. Whether it is a good one, only its provider knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It is set.
    Set,
    /// It is not.
    Missing,
}

/// A place where a server may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerFound {
    /// Whose server it is; where another one answers, whose that is.
    pub provider: &'static str,
    /// Where.
    pub base_url: String,
    /// What it says.
    pub state: ServerState,
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// It answers.
    Up {
        /// Its models.
        models: Vec<ModelFound>,
    },
    /// It refuses: 401 wants a key, 503 still loads.
    Refuses {
        /// The HTTP status.
        status: u16,
    },
    /// Something listens that is no server of models.
    Stranger,
    /// Nothing answers.
    Down,
}

/// A model of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelFound {
    /// Its name at that server.
    pub name: String,
    /// Its window, where the server tells it; where models are loaded when needed, only that of
    /// a loaded one.
    pub window: Option<Tokens>,
}

/// Looks for keys in the environment, and for servers at their usual ports on this machine or
/// where the environment says they are.
pub async fn detect(variables: Variables<'_>) -> Detected {
    let here = VENDORS
        .iter()
        .filter(|vendor| vendor.place == Place::ThisMachine && vendor.same_as.is_none());
    let places: Vec<_> = here
        .filter_map(|vendor| {
            let elsewhere = find_base_url(vendor, variables);
            let base = elsewhere.as_deref().or(vendor.base_url)?;
            let base = BaseUrl::parse(base, vendor.base_url).ok()?;
            Some((vendor, base))
        })
        .collect();
    Detected {
        keys: detect_keys(variables),
        servers: detect_servers(places).await,
    }
}

/// The keys of hosted providers.
#[must_use]
pub fn detect_keys(variables: Variables<'_>) -> Vec<KeyFound> {
    let hosted = VENDORS
        .iter()
        .filter(|vendor| vendor.place == Place::Hosted && has_own_key(vendor));
    let found = hosted.filter_map(|vendor| {
        let key = find_key(vendor, variables);
        let (variable, state) = match key {
            Some(key) => (key.variable, KeyState::Set),
            None => (*vendor.key_variables.first()?, KeyState::Missing),
        };
        Some(KeyFound {
            provider: vendor.name,
            variable,
            state,
        })
    });
    found.collect()
}

/// Whether its key is not that of the vendor which it is by another wire.
fn has_own_key(vendor: &Vendor) -> bool {
    let same = vendor.same_as.and_then(|same| Vendor::named(same).ok());
    same.is_none_or(|same| same.key_variables != vendor.key_variables)
}

/// Asks all places at once; as slow as the slowest, and bounded by a few [`DETECT_TIMEOUT`]s.
pub async fn detect_servers(
    places: impl IntoIterator<Item = (&'static Vendor, BaseUrl)>,
) -> Vec<ServerFound> {
    let asked = places.into_iter().map(|(vendor, base)| async move {
        let base_url = base.to_string();
        let (provider, state) = look(vendor, base).await;
        ServerFound {
            provider,
            base_url,
            state,
        }
    });
    join_all(asked).await
}

async fn look(vendor: &'static Vendor, base: BaseUrl) -> (&'static str, ServerState) {
    let timeouts = Timeouts {
        connect: DETECT_TIMEOUT,
        idle: DETECT_TIMEOUT,
        probe: DETECT_TIMEOUT,
    };
    let down = (vendor.name, ServerState::Down);
    let Ok(http) = Http::new(base, HeaderMap::new(), timeouts) else {
        return down;
    };
    let list = http.base.endpoint("models");
    match http.question(list, None, DETECT_TIMEOUT).await {
        None => return down,
        Some((status @ (401 | 403 | 503), _)) => {
            return (vendor.name, ServerState::Refuses { status });
        }
        Some(_) => {}
    }
    // Ports are shared: what speaks like llama.cpp is llama.cpp, wherever it listens.
    let vendor = match vendor.tells {
        Tells::Ollama | Tells::LmStudio => vendor,
        _ if discovery::is_llama_cpp(&http).await => Vendor::named("llama.cpp").unwrap_or(vendor),
        Tells::Props => Vendor::named("openai-compatible").unwrap_or(vendor),
        _ => vendor,
    };
    let state = match discovery::models(&http, vendor.tells).await {
        Some(models) => ServerState::Up { models },
        None => ServerState::Stranger,
    };
    (vendor.name, state)
}
