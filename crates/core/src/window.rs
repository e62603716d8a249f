//! [`Window`]: the source of a model's context window. If the window is smaller than assumed, the
//! machine learns it from a refusal, for this session.

use std::time::Duration;

use plimsoll_context::{FALLBACK_WINDOW, Tokens};
use serde::{Deserialize, Serialize};

use crate::error::contained;
use crate::provider::Provider;

/// How long a provider may take to report its window.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(10);

/// The source of the model's window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// The server. If it reports none, the size known for the model, else [`FALLBACK_WINDOW`].
    #[default]
    Discover,
    /// This size.
    Known(Tokens),
    /// Unknown: it is learned from an overflow, in each session anew.
    Unknown,
}

impl Window {
    /// Returns the window that a session begins with, or `None` if it is unknown.
    pub(crate) async fn find(
        self,
        provider: &dyn Provider,
        limit: Option<Duration>,
    ) -> Option<Tokens> {
        match self {
            Self::Known(tokens) => Some(tokens),
            Self::Unknown => None,
            Self::Discover => Some(reported(provider, limit).await.unwrap_or(FALLBACK_WINDOW)),
        }
    }
}

/// Returns the window that the provider reports or knows. A panic counts as no answer, and so does an
/// answer that takes longer than [`WINDOW_TIMEOUT`] or this limit.
pub(crate) async fn reported(provider: &dyn Provider, limit: Option<Duration>) -> Option<Tokens> {
    let asking = contained(async { provider.window().await });
    let limit = limit.map_or(WINDOW_TIMEOUT, |limit| limit.min(WINDOW_TIMEOUT));
    let asking = tokio::time::timeout(limit, asking);
    let reported = asking.await.ok().and_then(Result::ok).flatten();
    reported.or_else(|| provider.known_window())
}
