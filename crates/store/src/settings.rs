//! The settings of the last run of each session, as text from the program. They are not part of any
//! log, and an export does not contain them.

use std::collections::BTreeMap;

use plimsoll_core::{SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension, params};

use crate::columns;
use crate::sqlite::SqliteStore;

/// The largest text that is stored for a session, in characters.
pub const MAX_SETTINGS: usize = 64 * 1024;

/// How long settings are kept for a session that has no entry yet, in seconds.
const UNUSED: i64 = 24 * 60 * 60;

impl SqliteStore {
    /// Stores the settings of a session's run in place of earlier ones. They are a text of the
    /// program and not part of the log. A text longer than [`MAX_SETTINGS`]
    /// characters is not stored, and earlier settings are forgotten.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub async fn save_settings(&self, session: &SessionId, text: &str) -> Result<(), StoreError> {
        let (session, text) = (session.clone(), text.to_owned());
        self.writer()
            .await?
            .with(move |connection, _| save(connection, &session, &text, crate::write::now()))
            .await
    }

    /// Returns the settings of a session's last run. If it has none of its own, returns those of
    /// the session that it was forked from. `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn settings(&self, session: &SessionId) -> Result<Option<String>, StoreError> {
        let session = session.clone();
        self.reader()
            .with(move |connection, _| find(connection, &session))
            .await
    }
}

/// Stores the settings of a session in place of earlier ones. A text longer than [`MAX_SETTINGS`] is
/// not stored, and earlier settings are forgotten.
fn save(
    connection: &mut Connection,
    session: &SessionId,
    text: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute(
        "DELETE FROM settings WHERE session = ?1
         OR (at < ?2 AND session NOT IN (SELECT id FROM sessions))",
        params![session.as_str(), now.saturating_sub(UNUSED)],
    )?;
    if text.chars().count() <= MAX_SETTINGS {
        transaction.execute(
            "INSERT INTO settings (session, text, at) VALUES (?1, ?2, ?3)",
            params![session.as_str(), text, now],
        )?;
    }
    transaction.commit()
}

/// Returns the settings of all sessions that have settings of their own.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<BTreeMap<SessionId, String>> {
    let mut statement = connection.prepare_cached("SELECT session, text FROM settings")?;
    let rows = statement.query_map([], |row| Ok((columns::name(row, 0)?, row.get(1)?)))?;
    rows.collect()
}

/// Returns the settings of a session, or of its nearest ancestor that has some.
fn find(connection: &Connection, session: &SessionId) -> rusqlite::Result<Option<String>> {
    connection
        .query_row(
            "WITH RECURSIVE kin (id, parent, depth) AS (
                 SELECT ?1, (SELECT parent FROM sessions WHERE id = ?1), 0
                 UNION ALL
                 SELECT sessions.id, sessions.parent, depth + 1
                 FROM kin JOIN sessions ON sessions.key = kin.parent
             )
             SELECT text FROM kin JOIN settings ON settings.session = kin.id
             ORDER BY depth LIMIT 1",
            [session.as_str()],
            |row| row.get(0),
        )
        .optional()
}
