//! [`Window`]: the source of a model's context window, and the window that a session begins with.
//!
//! A smaller window that the provider reported in another session takes precedence. The machine
//! learns windows during a run.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::Entry;
use plimsoll_context::{FALLBACK_WINDOW, Tokens};

use crate::provider::Provider;
use crate::store::SessionStore;

/// How long a learned window is stored. Providers sometimes enlarge their windows, and learning it
/// again costs only one rejected request.
pub const WINDOW_REMEMBERED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How long a provider may take to report its window.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(10);

/// Smaller windows are learned for the current session only. No hosted model has one, and a misread
/// number would do harm for a month.
const LEAST_REMEMBERED: Tokens = Tokens(2_048);

/// The source of the model's window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Window {
    /// The server. If it reports none, the size known for the model, else [`FALLBACK_WINDOW`]. A
    /// smaller window learned in another session takes precedence.
    #[default]
    Discover,
    /// This size, regardless of windows learned in other sessions.
    Known(Tokens),
    /// This size, unless a smaller window was learned in another session.
    Assumed(Tokens),
    /// Unknown: it is learned from an overflow, in this session or another.
    Unknown,
}

/// The window that a session begins with.
pub(crate) struct InitialWindow {
    pub(crate) window: Option<Tokens>,
    /// The name under which a learned window is stored.
    pub(crate) endpoint: String,
    /// A warning for the user.
    pub(crate) note: Option<String>,
}

impl Window {
    /// Returns the name under which a learned window of an endpoint is stored.
    ///
    /// It includes the window that the server reports. If that changes, earlier learned windows no
    /// longer apply.
    #[must_use]
    pub fn remembered_as(endpoint: String, reported: Option<Tokens>) -> String {
        match reported {
            Some(reported) => format!("{endpoint} (reported as {})", reported.0),
            None => endpoint,
        }
    }

    pub(crate) async fn find(
        self,
        provider: &dyn Provider,
        store: &dyn SessionStore,
        limit: Option<Duration>,
    ) -> InitialWindow {
        let (known, reported) = match self {
            Self::Known(tokens) => (Some(tokens), None),
            Self::Assumed(tokens) => (Some(tokens), Some(tokens)),
            Self::Unknown => (None, None),
            Self::Discover => {
                let reported = reported(provider, limit).await;
                (Some(reported.unwrap_or(FALLBACK_WINDOW)), reported)
            }
        };
        let endpoint = Self::remembered_as(provider.endpoint(), reported);
        let mut found = InitialWindow {
            window: known,
            endpoint,
            note: None,
        };
        if matches!(self, Self::Known(_)) {
            return found;
        }
        match store.learned_window(&found.endpoint).await {
            Ok(Some(learned)) if known.is_none_or(|known| learned < known) => {
                found.window = Some(learned);
                found.note = Some(format!(
                    "the window is assumed to be {learned} tokens, from an error of the provider in an earlier session; set it yourself if it has grown"
                ));
            }
            Ok(_) => {}
            Err(error) => found.note = Some(error.to_string()),
        }
        found
    }
}

/// Returns the window that the provider reports or knows. A panic counts as no answer, and so does an
/// answer that takes longer than [`WINDOW_TIMEOUT`] or this limit.
pub(crate) async fn reported(provider: &dyn Provider, limit: Option<Duration>) -> Option<Tokens> {
    let asking = AssertUnwindSafe(async { provider.window().await }).catch_unwind();
    let limit = limit.map_or(WINDOW_TIMEOUT, |limit| limit.min(WINDOW_TIMEOUT));
    let asking = tokio::time::timeout(limit, asking);
    let reported = asking.await.ok().and_then(Result::ok).flatten();
    reported.or_else(|| provider.known_window())
}

/// Returns the last window in these entries that was reported by the provider, unless it is too
/// small to store.
pub(crate) fn last_reported(entries: &[Entry]) -> Option<Tokens> {
    let told = entries.iter().rev().find_map(|entry| match entry {
        Entry::WindowLearned { window, lesson, .. } if lesson.is_reported() => Some(*window),
        _ => None,
    });
    told.filter(|window| *window >= LEAST_REMEMBERED)
}
