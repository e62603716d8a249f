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

    /// Calls `each` for the entries after `after`, in order, until one call fails.
    async fn each_entry<E: From<StoreError>>(
        &self,
        session: &SessionId,
        mut after: u64,
        mut each: impl FnMut(&ExportedEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let page = self.page(session, after).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = last.n;
            page.iter().try_for_each(&mut each)?;
        }
    }

    /// Returns the list entry of one session.
    async fn info(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError>;

    /// Returns the settings of the sessions' last runs, as far as the store has them.
    async fn all_settings(&self) -> Result<BTreeMap<SessionId, String>, StoreError> {
        Ok(BTreeMap::new())
    }

    /// Returns the place of the store if it is damaged.
    fn damaged(&self) -> Option<String> {
        None
    }

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
    async fn shrink(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// The operations that the stores implement under the same names.
macro_rules! operations_of {
    ($store:ty) => {
        async fn page(&self, id: &SessionId, after: u64) -> Result<Vec<ExportedEntry>, StoreError> {
            <$store>::page(self, id, after).await
        }

        async fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
            <$store>::info(self, id).await
        }

        async fn export<W: Write + Send + 'static>(
            &self,
            sessions: &BTreeMap<SessionId, Option<String>>,
            out: W,
        ) -> Result<W, ExportError> {
            <$store>::export(self, sessions, out).await
        }

        async fn outdated(&self, retention: &Retention) -> Result<Vec<SessionInfo>, StoreError> {
            <$store>::outdated(self, retention).await
        }

        async fn delete_idle(&self, id: &SessionId) -> Result<bool, StoreError> {
            <$store>::delete_idle(self, id).await
        }
    };
}

impl SessionReader for SqliteStore {
    operations_of!(SqliteStore);

    async fn all_settings(&self) -> Result<BTreeMap<SessionId, String>, StoreError> {
        self.all_settings().await
    }

    fn damaged(&self) -> Option<String> {
        self.is_damaged().then(|| self.path().display().to_string())
    }

    async fn shrink(&self) -> Result<(), StoreError> {
        self.shrink().await
    }
}

#[cfg(feature = "restate")]
impl SessionReader for plimsoll::store::PostgresStore {
    operations_of!(plimsoll::store::PostgresStore);
}
