//! [`SessionReader`]: the operations on a store that no run needs: export sessions and delete them.

use std::collections::BTreeMap;
use std::io::Write;

use async_trait::async_trait;
use plimsoll_core::{Retention, SessionId, SessionInfo, SessionStore, StoreError};

use crate::delete;
use crate::export::ExportError;

/// A store whose sessions can be exported, and deleted by age and size.
#[async_trait]
pub trait SessionReader: SessionStore {
    /// Writes sessions as JSON lines and returns the writer.
    ///
    /// Each session begins with a line with its name, title and times,
    /// `{"session":"tour","version":1,…}`. A line for each entry follows,
    /// `{"n":1,"at":1767225600,"entry":{…},"sum":"…"}`, byte for byte as stored. The values of
    /// `sessions` are the settings that [`import`](crate::SqliteStore::import) will store, if any;
    /// other [settings](Self::all_settings) are not written.
    ///
    /// A fork is written with its own entries only, after the session that it was forked from, if
    /// that session is among `sessions`. Otherwise it is written with all entries, as a session of
    /// its own. Entries that are appended during the export are left out, and so are sessions
    /// without entries. At most one page of a log is held in memory.
    ///
    /// # Errors
    /// If a log cannot be read, after everything before it was written; or if `out` returns an
    /// error.
    async fn export<W>(
        &self,
        sessions: &BTreeMap<SessionId, Option<String>>,
        out: W,
    ) -> Result<W, ExportError>
    where
        W: Write + Send + 'static;

    /// Deletes a session, like [`SessionStore::delete`]. Returns `false` if there is no such
    /// session.
    ///
    /// # Errors
    /// [`StoreError::Busy`], at once, if another process writes to it, even if that process stands
    /// still and [`SessionStore::acquire`] would take the session over. Otherwise as
    /// [`SessionStore::delete`].
    async fn delete_idle(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.delete(&self.acquire(session).await?).await
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
