//! Reads logs and the list of sessions in the file, page by page. Changes nothing.

use std::path::Path;

use plimsoll_core::{MAX_FORK_DEPTH, SessionId, SessionInfo};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, ErrorCode, OptionalExtension, Row, params};

use crate::columns::{self, INFO, from_column, to_column};
use crate::fault::WorkError;
use crate::log::{LogAncestor, PAGE_BYTES, Range, Raw, bad_entry, checked, ranges};

/// Returns the session and its ancestors, beginning with the session. Empty if the session has no
/// log.
pub(crate) fn lineage(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Vec<LogAncestor>> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE kin (depth, key, shared, entries, parent) AS (
           SELECT 0, key, shared, entries, parent FROM sessions WHERE id = ?1
           UNION ALL
           SELECT depth + 1, own.key, own.shared, min(kin.entries, kin.shared), own.parent
           FROM kin JOIN sessions AS own ON own.key = kin.parent WHERE depth < ?2
         ) SELECT key, shared, entries FROM kin ORDER BY depth",
    )?;
    let rows = statement.query_map(params![session.as_str(), to_column(MAX_FORK_DEPTH)], kin)?;
    rows.collect()
}

/// Returns the entries after number `after`, at most `limit` and about [`PAGE_BYTES`]. Empty at the end of
/// the log.
pub(crate) fn page(
    connection: &mut Connection,
    path: &Path,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Raw>, WorkError> {
    let bad = |entry: u64, why: &str| bad_entry(path, session, entry, why).into();
    // One transaction, so that the counts and the entries are consistent.
    let transaction = connection.transaction()?;
    let kin = lineage(&transaction, session)?;
    let mut page: Vec<Raw> = Vec::new();
    let mut bytes = 0;
    let mut statement = transaction.prepare_cached(
        "SELECT n, at, json, sum FROM entries WHERE session = ?1 AND n > ?2 AND n <= ?3 ORDER BY n",
    )?;
    if let Some(own) = kin.first() {
        let (key, entries) = (own.key, to_column(own.entries));
        let goes_on = transaction
            .prepare_cached("SELECT 1 FROM entries WHERE session = ?1 AND n > ?2")?
            .exists(params![key, entries])?;
        if goes_on {
            let entry = own.entries.saturating_add(1);
            return Err(bad(entry, "the session ends before it"));
        }
    }
    for Range { key, before, last } in ranges(&kin, after, limit) {
        let mut rows = statement.query(params![key, to_column(before), to_column(last)])?;
        for number in before.saturating_add(1)..=last {
            let next = rows
                .next()
                .and_then(|row| row.map(|row| raw(row, 0)).transpose());
            let read = match next {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                    if page.is_empty() {
                        return Err(bad(number, "its page is damaged"));
                    }
                    return Ok(page);
                }
                next => next?,
            };
            let raw = checked(read, number).map_err(|why| bad(number, why))?;
            let size = raw.json.len() as u64;
            if !page.is_empty() && size.saturating_add(bytes) > PAGE_BYTES.0 {
                return Ok(page);
            }
            bytes += size;
            page.push(raw);
        }
    }
    Ok(page)
}

/// Returns the sessions, most recently written first.
pub(crate) fn list(connection: &Connection) -> rusqlite::Result<Vec<SessionInfo>> {
    // A fork that has no entries of its own yet is ordered by the last write before its creation.
    let sql = format!("{INFO} ORDER BY own.newest DESC, own.key DESC");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map([], info_of)?.collect()
}

/// Returns the list entry of one session, or `None` if the session has no log.
pub(crate) fn info(
    connection: &Connection,
    session: &SessionId,
) -> rusqlite::Result<Option<SessionInfo>> {
    connection
        .prepare_cached(&format!("{INFO} WHERE own.id = ?1"))?
        .query_row([session.as_str()], info_of)
        .optional()
}

/// Reads an entry and its checksum from the columns from `first` on.
pub(crate) fn raw(row: &Row<'_>, first: usize) -> rusqlite::Result<(Raw, i64)> {
    let raw = Raw {
        n: from_column(row.get(first)?),
        at: from_column(row.get(first + 1)?),
        // As bytes: an invalid text is detected by the parser.
        json: row.get_ref(first + 2)?.as_bytes()?.to_vec(),
    };
    Ok((raw, row.get(first + 3)?))
}

fn info_of(row: &Row<'_>) -> rusqlite::Result<SessionInfo> {
    let info = columns::info(row.try_into()?);
    info.map_err(|error| Error::FromSqlConversionFailure(0, Type::Text, error))
}

fn kin(row: &Row<'_>) -> rusqlite::Result<LogAncestor> {
    Ok(LogAncestor {
        key: row.get(0)?,
        shared: from_column(row.get(1)?),
        entries: from_column(row.get(2)?),
    })
}
