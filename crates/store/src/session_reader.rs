//! [`SessionReader`]: the operations on a store that no run needs: export sessions and delete them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use async_trait::async_trait;
use plimsoll_core::{Retention, SessionId, SessionInfo, SessionStore, StoreError};

use crate::delete::{self, PruneReport, forks_first};
use crate::export::ExportError;

/// A store whose sessions can be exported, and deleted by age and size.
#[async_trait]
pub trait SessionReader: SessionStore {
    /// Writes sessions as JSON lines and returns the writer.
    ///
    /// Each session begins with a line with its name, title and times,
    /// `{"session":"tour","version":1,…}`. A line for each entry follows,
    /// `{"n":1,"at":1767225600,"entry":{…},"sum":"…"}`, byte for byte as stored.
    /// [Settings](Self::all_settings) are not written.
    ///
    /// A fork is written with its own entries only, after the session that it was forked from, if
    /// that session is among `sessions`. Otherwise it is written with all entries, as a session of
    /// its own. Entries that are appended during the export are left out, and so are sessions
    /// without entries. At most one page of a log is held in memory.
    ///
    /// # Errors
    /// If a log cannot be read, after everything before it was written; or if `out` returns an
    /// error.
    async fn export<W>(&self, sessions: &BTreeSet<SessionId>, out: W) -> Result<W, ExportError>
    where
        W: Write + Send + 'static;

    /// Deletes sessions as [`SessionStore::delete`] does: all of them, or none if one cannot be deleted.
    /// Returns `false` if there is none of them.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if another process writes to one of them. [`StoreError::HasForks`] if a fork
    /// that is not among them shares entries.
    async fn delete_all(&self, sessions: &BTreeSet<SessionId>) -> Result<bool, StoreError>;

    /// Deletes listed sessions one by one, forks first. A session that another process writes to, or has
    /// written to since it was listed, is not deleted.
    async fn prune(&self, listed: &[SessionInfo]) -> PruneReport {
        let mut pruned = PruneReport::default();
        for info in forks_first(listed) {
            let deleted = match self.head(&info.id).await {
                Ok(Some(now)) if now.entries != info.entries => continue,
                Ok(_) => self.delete_all(&[info.id.clone()].into()).await,
                Err(error) => Err(error),
            };
            match deleted {
                Ok(true) => pruned.deleted.push(info.clone()),
                Ok(false) => {}
                Err(error) => pruned.kept.push((info.clone(), error)),
            }
        }
        pruned
    }

    /// Returns the outdated sessions, most recently written first. A session that a retained fork
    /// needs is not among them. Changes nothing.
    ///
    /// # Errors
    /// If the sessions cannot be read.
    async fn outdated(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(delete::outdated(&self.list().await?, retention))
    }

    /// Returns the settings of all sessions that have settings of their own; inherited settings are
    /// not included. None by default: runs of workers use the settings of their worker.
    ///
    /// # Errors
    /// If they cannot be read.
    async fn all_settings(&self) -> Result<BTreeMap<SessionId, String>, StoreError> {
        Ok(BTreeMap::new())
    }

    /// Returns the space of deleted sessions to the system. A file
    /// is rewritten if more than a quarter of it is free and nobody else reads it. Rewriting
    /// temporarily needs as much space again. A database does all of this by itself.
    ///
    /// # Errors
    /// If a file cannot be written.
    async fn shrink(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
