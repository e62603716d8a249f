//! Deletes sessions by age and size. Which ones is decided here; how one is deleted, in `delete`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_core::{
    Lease, MAX_FORK_DEPTH, Retention, SessionId, SessionInfo, SessionStore, StoreError,
};

use crate::connection::blocking;
use crate::read::from_column;
use crate::sqlite::SqliteStore;
use crate::write;

/// What [`SqliteStore::prune`] has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The sessions that were deleted, forks before what they are forks of.
    pub deleted: Vec<SessionInfo>,
    /// The sessions that were to be deleted and are still there, with the reason:
    /// [`StoreError::Busy`] if somebody writes to one, [`StoreError::HasForks`] if such a session is a fork
    /// of it.
    pub kept: Vec<(SessionInfo, StoreError)>,
}

impl SqliteStore {
    /// Returns the sessions that [`Self::prune`] would delete, the one written last first. A session whose
    /// entries a fork needs that is kept is not among them. Nothing is changed.
    ///
    /// # Errors
    /// If the sessions cannot be read.
    pub async fn outdated(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(outdated(&self.list().await?, retention))
    }

    /// Deletes the sessions that are not to be kept, as [`SessionStore::delete`] does, and gives their space
    /// back as [`Self::shrink`] does. A session that somebody writes to, or has written to since it was
    /// chosen, is not deleted; nobody is waited for.
    ///
    /// # Errors
    /// If the sessions cannot be read. What goes wrong with one of them is in [`Pruned::kept`].
    pub async fn prune(&self, retention: &Retention) -> Result<Pruned, StoreError> {
        let outdated = self.outdated(retention).await?;
        let mut pruned = Pruned::default();
        for info in forks_first(&outdated) {
            match self.delete_unchanged(info).await {
                Ok(true) => pruned.deleted.push(info.clone()),
                Ok(false) => {}
                Err(error) => pruned.kept.push((info.clone(), error)),
            }
        }
        if !pruned.deleted.is_empty() {
            self.shrink().await?;
        }
        Ok(pruned)
    }

    /// Deletes a session as [`SessionStore::delete`] does. Returns `false` if there is no such session.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if somebody writes to it, at once: also if that process stands still, which
    /// [`SessionStore::acquire`] would take the session from. As [`SessionStore::delete`] otherwise.
    pub async fn delete_idle(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.delete(&self.acquire_idle(session).await?).await
    }

    /// Deletes a session if it is as it was when it was listed.
    async fn delete_unchanged(&self, info: &SessionInfo) -> Result<bool, StoreError> {
        let lease = self.acquire_idle(&info.id).await?;
        match self.info(&info.id).await? {
            Some(now) if now.entries == info.entries && now.updated == info.updated => {
                self.delete(&lease).await
            }
            _ => Ok(false),
        }
    }

    /// Acquires a session that nobody holds.
    async fn acquire_idle(&self, session: &SessionId) -> Result<Lease, StoreError> {
        let writer = self.writer().await?.clone();
        let (leases, wanted) = (self.leases().clone(), session.clone());
        let held = blocking(self.path(), move || leases.acquire_idle(&writer, &wanted)).await?;
        Ok(Lease::new(session.clone(), Box::new(held)))
    }
}

/// The sessions of a list that need not be kept, and that no fork needs which is kept.
pub(crate) fn outdated(sessions: &[SessionInfo], retention: &Retention) -> Vec<SessionInfo> {
    let now = from_column(write::now());
    let (mut bytes, mut old) = (0_u64, BTreeSet::new());
    for info in sessions {
        bytes = bytes.saturating_add(info.bytes.0);
        let age = Duration::from_secs(now.saturating_sub(info.updated));
        let is_old = retention.max_age.is_some_and(|max| age > max);
        if is_old || retention.max_bytes.is_some_and(|max| bytes > max.0) {
            old.insert(&info.id);
        }
    }
    // Each is seen after all forks of it, which may need it.
    for info in forks_first(sessions) {
        if let (Some(fork), false) = (&info.fork, old.contains(&info.id)) {
            old.remove(&fork.from);
        }
    }
    let old = sessions.iter().filter(|info| old.contains(&info.id));
    old.cloned().collect()
}

/// The sessions, each behind those that are forks of it.
pub(crate) fn forks_first(sessions: &[SessionInfo]) -> Vec<&SessionInfo> {
    let by_id: BTreeMap<&SessionId, &SessionInfo> =
        sessions.iter().map(|info| (&info.id, info)).collect();
    let parent = |info: &SessionInfo| by_id.get(&info.fork.as_ref()?.from).copied();
    let mut sorted: Vec<&SessionInfo> = sessions.iter().collect();
    sorted.sort_by_cached_key(|info| {
        let ancestors = std::iter::successors(parent(info), |info| parent(info));
        // In a damaged file they may go round in a circle.
        Reverse(ancestors.take(MAX_FORK_DEPTH as usize).count())
    });
    sorted
}
