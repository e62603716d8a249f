//! [`Window`]: where a model's window comes from, and what a session begins with: what is known of
//! it, or what its provider has taught in another session, where that is less. Not the learning;
//! that is the machine's.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::Entry;
use plimsoll_context::{FALLBACK_WINDOW, Tokens};

use crate::provider::Provider;
use crate::store::SessionStore;

/// How long a window is remembered that a provider has told: they raise them now and then, and one
/// refused request teaches it anew.
pub const WINDOW_REMEMBERED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A smaller window is learned for one session only: no hosted model has one, and a number that was
/// misread would stand in the way for a month.
const LEAST_REMEMBERED: Tokens = Tokens(2_048);

/// Where the model's window comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Window {
    /// From the server; where it does not say, what is known of the model, else [`FALLBACK_WINDOW`]. What its refusals have taught in
    /// another session is believed over that.
    #[default]
    Discover,
    /// As said here, whatever was learned in other sessions.
    Known(Tokens),
    /// As assumed here; what refusals have taught in another session is believed over it.
    Assumed(Tokens),
    /// From nowhere: only an overflow teaches it, in this session or in another.
    Unknown,
}

/// What a session begins with.
pub(crate) struct Found {
    pub(crate) window: Option<Tokens>,
    /// Under what name a window is remembered that is learned.
    pub(crate) endpoint: String,
    /// What a person should know of it.
    pub(crate) note: Option<String>,
}

impl Window {
    /// Under what name a window is remembered that an endpoint tells in a refusal. Where something
    /// else is said of its window now, what was learned then is of another one.
    #[must_use]
    pub fn remembered_as(endpoint: String, said: Option<Tokens>) -> String {
        match said {
            Some(said) => format!("{endpoint} (said to be {})", said.0),
            None => endpoint,
        }
    }

    pub(crate) async fn find(self, provider: &dyn Provider, store: &dyn SessionStore) -> Found {
        let (known, said) = match self {
            Self::Known(tokens) => (Some(tokens), None),
            Self::Assumed(tokens) => (Some(tokens), Some(tokens)),
            Self::Unknown => (None, None),
            Self::Discover => {
                let said = said(provider).await;
                (Some(said.unwrap_or(FALLBACK_WINDOW)), said)
            }
        };
        let endpoint = Self::remembered_as(provider.endpoint(), said);
        let mut found = Found {
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
                    "the window is taken to be {learned} tokens, as the provider said when it \
                     refused a request in an earlier session; say it yourself if it has grown"
                ));
            }
            Ok(_) => {}
            Err(error) => found.note = Some(error.to_string()),
        }
        found
    }
}

/// What the provider says of its window, or what is known of it; one that panics says nothing.
pub(crate) async fn said(provider: &dyn Provider) -> Option<Tokens> {
    let asked = AssertUnwindSafe(async { provider.window().await }).catch_unwind();
    let said = asked.await.unwrap_or_default();
    said.or_else(|| provider.known_window())
}

/// The window that entries tell last, in the provider's own words, where it is worth remembering.
pub(crate) fn told(entries: &[Entry]) -> Option<Tokens> {
    let told = entries.iter().rev().find_map(|entry| match entry {
        Entry::Learned { window, lesson, .. } if lesson.is_told() => Some(*window),
        _ => None,
    });
    told.filter(|window| *window >= LEAST_REMEMBERED)
}
