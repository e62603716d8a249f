//! Forking a session: a new one that begins as the first entries of another. Not how a store shares
//! them; that is a store's business.

use std::sync::Arc;

use plimsoll_agent::{Entry, LOG_FORMAT, State};
use plimsoll_context::Chars4;

use crate::agent::Agent;
use crate::error::Error;
use crate::session::Session;
use crate::store::{Fork, Lease, SessionId, SessionStore};

impl Agent {
    /// Begins the session `to` as a fork of another and opens it: its log is the other's first `at`
    /// entries, or all there are, and then its own. Nothing is copied, and neither sees what the
    /// other does from then on. A run that was under way at that entry has ended in the fork, and
    /// calls that it had open are settled as after a crash.
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
    /// Where the other session is unknown or has fewer entries, where `to` exists already or has a
    /// writer, or where the log cannot be read or written; then there is no fork.
    pub async fn fork(
        &self,
        from: &SessionId,
        at: Option<u64>,
        to: SessionId,
    ) -> Result<Session, Error> {
        let store = &*self.parts.store;
        let (lease, log) = fork_session(store, from, at, &to).await?;
        // What the other was last answered is what a provider still has of both.
        let idle = store.idle(from).await;
        self.open(lease, &log, idle).await
    }
}

/// Begins a session as a fork of another, where no agent is at hand: see [`Agent::fork`]. Gives the
/// right to write to it, and its log.
///
/// # Errors
/// As [`Agent::fork`].
pub async fn fork_session(
    store: &dyn SessionStore,
    from: &SessionId,
    at: Option<u64>,
    to: &SessionId,
) -> Result<(Lease, Vec<Entry>), Error> {
    let lease = store.acquire(to).await?;
    let mut log = store.load(from).await?;
    let entries = at.unwrap_or(log.len() as u64);
    // Where there are fewer, the store says so.
    log.truncate(usize::try_from(entries).unwrap_or(usize::MAX));
    // What it weighs is of no interest, so it is weighed the quickest way.
    let state = State::fold(Arc::new(Chars4), &log)?;
    let of = Fork {
        from: from.clone(),
        entries,
        items: state.transcript().next_seq(),
    };
    let format = log.iter().rev().find_map(|entry| match entry {
        Entry::Opened { format } => Some(*format),
        _ => None,
    });
    let mut own = Vec::new();
    if format.is_none_or(|format| format < LOG_FORMAT) {
        own.push(Entry::Opened { format: LOG_FORMAT });
    }
    own.push(Entry::Forked {
        from: from.to_string(),
        entries,
    });
    store.fork(&lease, &of, &own).await?;
    log.extend(own);
    Ok((lease, log))
}
