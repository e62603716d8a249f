//! [`detect`]: finds the keys that are set and the servers that run on this machine. It never
//! reports or sends a key, loads no model and starts nothing.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::header::HeaderMap;
use serde::Serialize;

use crate::api_key::{Variables, find_base_url, find_key};
use crate::base_url::BaseUrl;
use crate::discovery;
use crate::http::{Http, Timeouts};
use crate::vendor::{ServerLocation, VENDORS, Vendor, WindowReport};

/// Servers whose models are used without being named, the best first.
const PREFERRED: [&str; 2] = ["llama.cpp", "ollama"];

/// A server on this machine answers a small question at once, even while it works.
pub const DETECT_TIMEOUT: Duration = Duration::from_millis(1500);

/// The detected keys and servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// The keys, in the order of [`VENDORS`].
    pub keys: Vec<KeyFound>,
    /// The servers that were looked for, running or not.
    pub servers: Vec<ServerFound>,
}

/// A hosted provider's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyFound {
    /// The provider.
    pub provider: &'static str,
    /// The variable that contains the key, or should contain it.
    pub variable: &'static str,
    /// Whether it is set. Whether it is a good one, only its provider knows.
    pub is_set: bool,
}

impl Detection {
    /// Returns a server on this machine that answers, and the first of its models: the one to use if nobody
    /// names a model.
    #[must_use]
    pub fn preferred(&self) -> Option<(&ServerFound, &str)> {
        let first = |wanted: &&str| {
            self.servers.iter().find_map(|server| match &server.state {
                ServerState::Up { models } if server.provider == *wanted => {
                    Some((server, models.first()?.as_str()))
                }
                _ => None,
            })
        };
        PREFERRED.iter().find_map(first)
    }
}

/// A possible address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerFound {
    /// The provider. If another provider's server answers, that provider.
    pub provider: &'static str,
    /// The address.
    pub base_url: String,
    /// The result of the request.
    pub state: ServerState,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// It answers.
    Up {
        /// The names of its models.
        models: Vec<String>,
    },
    /// It refuses the request: 401 requires a key, 503 means that it is still loading.
    Refuses {
        /// The HTTP status.
        status: u16,
    },
    /// Something answers that is not a model server.
    Stranger,
    /// Nothing answers.
    Down,
}

/// Looks for keys in the environment, and for servers at their usual ports on this machine or at
/// the addresses in the environment.
pub async fn detect(variables: Variables<'_>) -> Detection {
    let here = VENDORS
        .iter()
        .filter(|vendor| vendor.place == ServerLocation::ThisMachine && vendor.same_as.is_none());
    let places: Vec<_> = here
        .filter_map(|vendor| {
            let elsewhere = find_base_url(vendor, variables);
            let base = elsewhere.as_deref().or(vendor.base_url)?;
            let base = BaseUrl::parse(base, vendor.base_url).ok()?;
            Some((vendor, base))
        })
        .collect();
    Detection {
        keys: detect_keys(variables),
        servers: detect_servers(places).await,
    }
}

/// Returns the keys of hosted providers.
#[must_use]
pub fn detect_keys(variables: Variables<'_>) -> Vec<KeyFound> {
    let hosted = VENDORS
        .iter()
        .filter(|vendor| vendor.place == ServerLocation::Hosted && has_own_key(vendor));
    let found = hosted.filter_map(|vendor| {
        let key = find_key(vendor, variables);
        let first = vendor.key_variables.first();
        Some(KeyFound {
            provider: vendor.name,
            variable: key.as_ref().map(|key| key.variable).or(first.copied())?,
            is_set: key.is_some(),
        })
    });
    found.collect()
}

/// Checks whether the vendor's key differs from that of the vendor with the same models.
fn has_own_key(vendor: &Vendor) -> bool {
    let same = vendor.same_as.and_then(|same| Vendor::named(same).ok());
    same.is_none_or(|same| same.key_variables != vendor.key_variables)
}

/// Asks all addresses concurrently. Takes a few [`DETECT_TIMEOUT`]s at most.
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
    let models = match discovery::models(&http).await {
        None => return down,
        Some((status @ (401 | 403 | 503), _)) => {
            return (vendor.name, ServerState::Refuses { status });
        }
        Some((_, models)) => models,
    };
    // Several servers use the same ports. A server that answers like llama.cpp is llama.cpp.
    let vendor = match vendor.tells {
        WindowReport::Ollama | WindowReport::LmStudio => vendor,
        _ if discovery::is_llama_cpp(&http).await => Vendor::named("llama.cpp").unwrap_or(vendor),
        WindowReport::Props => Vendor::named("openai-compatible").unwrap_or(vendor),
        _ => vendor,
    };
    let state = models.map_or(ServerState::Stranger, |models| ServerState::Up { models });
    (vendor.name, state)
}
