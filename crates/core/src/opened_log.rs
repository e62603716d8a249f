//! [`OpenedLog`]: the state of a stored session, folded from its log.

use plimsoll_agent::{Entry, Setup, State};

use crate::error::Error;
use crate::store::{SessionId, SessionStore};

/// The log of a stored session, with the state that it leads to.
pub(crate) struct OpenedLog {
    pub(crate) state: State,
    /// Number of folded entries.
    pub(crate) entries: u64,
    pub(crate) log: Vec<Entry>,
}

impl OpenedLog {
    /// Reads a session for runs with this setup: its state after the first `at` entries, or after all.
    pub(crate) async fn read(
        store: &dyn SessionStore,
        session: &SessionId,
        at: Option<u64>,
        setup: &Setup,
    ) -> Result<Self, Error> {
        let log = store.load(session).await?;
        let at = at.and_then(|at| usize::try_from(at).ok());
        let folded = at.and_then(|at| log.get(..at)).unwrap_or(&log);
        let mut state = State::for_setup(setup);
        folded.iter().try_for_each(|entry| state.absorb(entry))?;
        let entries = folded.len() as u64;
        Ok(Self {
            state,
            entries,
            log,
        })
    }
}
