//! Views of a session for tests: its warnings and its messages.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_agent::{Event, SessionEvent};
use plimsoll_core::{Session, SessionId};

/// The warnings that an observer received, in order. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Returns an observer that records into this list.
    pub fn observer(&self) -> impl Fn(&SessionEvent) + Send + Sync + 'static {
        let all = Arc::clone(&self.0);
        move |told: &SessionEvent| {
            if let Event::Warning { text } = &told.event {
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(text.clone());
            }
        }
    }

    /// Returns a copy of the warnings.
    pub fn all(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

/// Returns the id of a session with this name.
///
/// # Panics
/// If the name is not a valid id.
pub fn session_id(name: &str) -> SessionId {
    SessionId::new(name).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the view, an item a text, to compare it byte for byte.
pub fn view_items(session: &Session) -> Vec<String> {
    let items = session.view().transcript().items().iter();
    items.map(|item| format!("{item:?}")).collect()
}
