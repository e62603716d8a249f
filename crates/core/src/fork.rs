//! Forking: creating a session that begins with the first entries of another one.

use std::sync::Arc;

use plimsoll_agent::{Entry, LOG_FORMAT, State};
use plimsoll_context::Chars4;

use crate::agent::Agent;
use crate::error::Error;
use crate::session::Session;
use crate::store::{Fork, ForkFault, Lease, SessionId, SessionStore, StoreError, idle};

impl Agent {
    /// Creates the session `to` as a fork of `from` and opens it.
    ///
    /// Its log consists of the first `at` entries of `from` (all if `None`), followed by its own.
    /// Nothing is copied, and neither session sees later changes of the other. A run in progress at
    /// that entry has ended in the fork, and its open calls are settled as after a crash.
    ///
    /// ```
    /// use plimsoll_core::testing::{ScriptedProvider, Turn};
    /// use plimsoll_core::{Agent, SessionId};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedProvider::new([
    ///     Turn::say("North."),
    ///     Turn::say("Then east."),
    ///     Turn::say("Then west."),
    /// ]);
    /// let agent = Agent::builder(model).build()?;
    /// let (one, other) = (SessionId::new("one")?, SessionId::new("other")?);
    /// let mut session = agent.session(one.clone()).await?;
    /// session.run("Where to?").await?;
    /// let mut fork = agent.fork(&one, None, other).await?;
    /// assert_eq!(session.run("And then?").await?.text, "Then east.");
    /// assert_eq!(fork.run("And then?").await?.text, "Then west.");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If `from` is unknown or has fewer entries, if `to` already exists or has a writer, or if the
    /// log cannot be read or written. In all cases no fork is created.
    pub async fn fork(
        &self,
        from: &SessionId,
        at: Option<u64>,
        to: SessionId,
    ) -> Result<Session, Error> {
        let store = &*self.parts.store;
        let lease = fork_session(store, from, at, &to).await?;
        // The provider's cache entries for the parent also serve the fork.
        let idle = idle(store, from).await;
        self.open(lease, idle).await
    }
}

/// Creates a fork without an agent; see [`Agent::fork`]. Returns the right to write to it.
///
/// # Errors
/// As for [`Agent::fork`].
pub async fn fork_session(
    store: &dyn SessionStore,
    from: &SessionId,
    at: Option<u64>,
    to: &SessionId,
) -> Result<Lease, Error> {
    if from == to {
        // The lease may belong to the caller, so acquiring it would blame another process.
        let (session, taken) = (from.clone(), to.clone());
        let why = ForkFault::Taken { session: taken };
        return Err(StoreError::CannotFork { session, why }.into());
    }
    let log = store.load(from).await?;
    // If the log has fewer entries, the store reports it.
    let entries = at.unwrap_or(log.len() as u64);
    let shared = usize::try_from(entries).unwrap_or(usize::MAX);
    // A damaged log is not forked. The counts are not used, so the fastest counter is enough.
    State::fold(Arc::new(Chars4), log.iter().take(shared))?;
    Ok(begin_fork(store, from, entries, to).await?)
}

/// Begins the log of a fork with a reference to its parent.
pub(crate) async fn begin_fork(
    store: &dyn SessionStore,
    from: &SessionId,
    entries: u64,
    to: &SessionId,
) -> Result<Lease, StoreError> {
    let lease = store.acquire(to).await?;
    let mut own = Vec::new();
    if entries == 0 {
        own.push(Entry::Opened { format: LOG_FORMAT });
    }
    own.push(Entry::Forked {
        from: from.to_string(),
        entries,
    });
    let from = from.clone();
    store.fork(&lease, &Fork { from, entries }, &own).await?;
    Ok(lease)
}
