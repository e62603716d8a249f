//! [`Kin`]: a session and those that it is a fork of, and how much of each belongs to its log. Not
//! the reading of the logs themselves.

use plimsoll_context::Seq;
use plimsoll_core::{MAX_FORK_DEPTH, SessionId};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, Row, params};

use crate::read::{from_column, to_column};

/// A session whose log, or the beginning of it, belongs to another's log.
#[derive(Debug, Clone)]
pub(crate) struct Kin {
    pub(crate) key: i64,
    pub(crate) id: SessionId,
    /// Its own entries are those after this number.
    pub(crate) shared: u64,
    /// The entries of it that belong to the log, those that it shares itself included.
    pub(crate) entries: u64,
    /// Only items below this number belong to it; `None` of the session itself.
    pub(crate) below: Option<Seq>,
    /// What tells its log from any other of its name.
    pub(crate) born: Option<Vec<u8>>,
}

/// The session and those that it is a fork of, itself first; none where nothing was written to it.
pub(crate) fn lineage(connection: &Connection, session: &SessionId) -> rusqlite::Result<Vec<Kin>> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE kin (depth, key, id, shared, entries, below, born, parent, items) AS (
           SELECT 0, key, id, shared, entries, NULL, born, parent, items FROM sessions WHERE id = ?1
           UNION ALL
           SELECT depth + 1, own.key, own.id, own.shared, min(kin.entries, kin.shared),
                  min(ifnull(kin.below, kin.items), kin.items), own.born, own.parent, own.items
           FROM kin JOIN sessions AS own ON own.key = kin.parent WHERE depth < ?2
         ) SELECT key, id, shared, entries, below, born FROM kin ORDER BY depth",
    )?;
    let rows = statement.query_map(params![session.as_str(), to_column(MAX_FORK_DEPTH)], kin)?;
    rows.collect()
}

/// A session's name, from its column.
pub(crate) fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<SessionId> {
    SessionId::new(row.get::<_, String>(column)?)
        .map_err(|error| Error::FromSqlConversionFailure(column, Type::Text, error.into()))
}

fn kin(row: &Row<'_>) -> rusqlite::Result<Kin> {
    Ok(Kin {
        key: row.get(0)?,
        id: name(row, 1)?,
        shared: from_column(row.get(2)?),
        entries: from_column(row.get(3)?),
        below: row.get::<_, Option<i64>>(4)?.map(|it| Seq(from_column(it))),
        born: row.get(5)?,
    })
}
