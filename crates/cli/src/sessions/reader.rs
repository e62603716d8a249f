//! [`SessionReader`]: the operations on a store that `plimsoll sessions` and `usage` need in
//! addition to those of runs. The files of this machine support all of them, a database most.

use std::collections::BTreeMap;
use std::io::Write;

use plimsoll::store::{
    ExportError, ExportedEntry, Retention, SessionInfo, SqliteStore, StoreError,
};
use plimsoll::{SessionId, SessionStore};

/// A store whose sessions can be listed, shown, exported and deleted.
pub(crate) trait SessionReader: SessionStore + Sized {
    /// Returns the entries after `after`, one page per call; none at the end of the log.
    async fn page(&self, session: &SessionId, after: u64)
    -> Result<Vec<ExportedEntry>, StoreError>;

    /// Returns the list entry of one session.
    async fn info(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError>;

    /// Returns the settings of the sessions' last runs, as far as the store has them.
    async fn all_settings(&self) -> Result<BTreeMap<SessionId, String>, StoreError>;

    /// Returns the place of the store if it is damaged.
    fn damaged(&self) -> Option<String>;

    /// Writes sessions as JSON lines.
    async fn export<W: Write + Send + 'static>(
        &self,
        sessions: &BTreeMap<SessionId, Option<String>>,
        out: W,
    ) -> Result<W, ExportError>;

    /// Returns the outdated sessions.
    async fn outdated(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError>;

    /// Deletes a session that nobody writes to.
    async fn delete_idle(&self, session: &SessionId) -> Result<bool, StoreError>;

    /// Returns the space of deleted data to the system.
    async fn shrink(&self) -> Result<(), StoreError>;
}

impl SessionReader for SqliteStore {
    async fn page(
        &self,
        session: &SessionId,
        after: u64,
    ) -> Result<Vec<ExportedEntry>, StoreError> {
        self.page(session, after).await
    }

    async fn info(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        self.info(session).await
    }

    async fn all_settings(&self) -> Result<BTreeMap<SessionId, String>, StoreError> {
        self.all_settings().await
    }

    fn damaged(&self) -> Option<String> {
        self.is_damaged().then(|| self.path().display().to_string())
    }

    async fn export<W: Write + Send + 'static>(
        &self,
        sessions: &BTreeMap<SessionId, Option<String>>,
        out: W,
    ) -> Result<W, ExportError> {
        self.export(sessions, out).await
    }

    async fn outdated(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError> {
        self.outdated(retention).await
    }

    async fn delete_idle(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.delete_idle(session).await
    }

    async fn shrink(&self) -> Result<(), StoreError> {
        self.shrink().await
    }
}

#[cfg(feature = "restate")]
impl SessionReader for plimsoll::store::PostgresStore {
    async fn page(
        &self,
        session: &SessionId,
        after: u64,
    ) -> Result<Vec<ExportedEntry>, StoreError> {
        self.page(session, after).await
    }

    async fn info(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        self.info(session).await
    }

    /// Runs of workers use the settings of their worker.
    async fn all_settings(&self) -> Result<BTreeMap<SessionId, String>, StoreError> {
        Ok(BTreeMap::new())
    }

    fn damaged(&self) -> Option<String> {
        None
    }

    async fn export<W: Write + Send + 'static>(
        &self,
        sessions: &BTreeMap<SessionId, Option<String>>,
        out: W,
    ) -> Result<W, ExportError> {
        self.export(sessions, out).await
    }

    async fn outdated(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError> {
        self.outdated(retention).await
    }

    async fn delete_idle(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.delete_idle(session).await
    }

    /// Does nothing, because the server does so by itself.
    async fn shrink(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
