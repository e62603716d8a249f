//! [`Kin`]: a session or one of its ancestors, with the part of its entries that belongs to the
//! log.

use plimsoll_context::Seq;
use plimsoll_core::{MAX_FORK_DEPTH, SessionId};
use rusqlite::{Connection, Row, params};

use crate::columns::{from_column, name, to_column};

/// A session whose log, or the beginning of it, belongs to the log of a session.
#[derive(Debug, Clone)]
pub(crate) struct Kin {
    pub(crate) key: i64,
    pub(crate) id: SessionId,
    /// The number of shared entries. The session's own entries follow them.
    pub(crate) shared: u64,
    /// The number of its entries that belong to the log, including those that it shares itself.
    pub(crate) entries: u64,
    /// Only items below this number belong to the log. `None` for the session itself.
    pub(crate) below: Option<Seq>,
    /// Distinguishes its log from other logs of the same name.
    pub(crate) born: Vec<u8>,
}

/// Returns the session and its ancestors, beginning with the session. Empty if the session has no
/// log.
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
