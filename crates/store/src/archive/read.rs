//! Reading the archive: one item, a search, the list of a session, and whether the file is whole.
//! It changes nothing.

use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Seq};
use plimsoll_core::archive::{
    ArchiveRow, Forgotten, Found, Hit, Kind, RecallError, RecallId, RecallKey, Recalled,
    SearchQuery, Term, recall_text, resolve,
};
use plimsoll_core::{ArchiveBounds, SessionId, StoreError};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::fault;
use crate::read::{from_column, to_column};

/// The columns of [`row`].
const COLUMNS: &str = "seq, kind, tool, call, bytes, left_at, why, held IS NULL";

/// Looks whether the file can be used; `whole` says to look at every page of it.
pub(super) fn check(connection: &Connection, path: &Path, whole: bool) -> Result<(), StoreError> {
    let fault = fault::sqlite(path);
    if whole {
        let said: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(&fault)?;
        if said != "ok" {
            return Err(fault::corrupt(path, "it is damaged inside"));
        }
    }
    // What every use reads, the index of words included.
    let probes = [
        "SELECT count(*) FROM sessions",
        "SELECT count(*) FROM (SELECT * FROM items ORDER BY row DESC LIMIT 16)",
        "SELECT count(*) FROM (SELECT rowid FROM words WHERE words MATCH 'owner:s1' LIMIT 1)",
    ];
    for probe in probes {
        let count = connection.query_row(probe, [], |row| row.get::<_, i64>(0));
        count.map_err(&fault)?;
    }
    Ok(())
}

/// One item, whole.
pub(super) fn recall(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    session: &SessionId,
    key: &RecallKey,
    now: u64,
) -> Result<Recalled, RecallError> {
    let fault = fault::sqlite(path);
    let unknown = || RecallError::Unknown(key.to_string());
    // All of one moment.
    let moment = connection.transaction().map_err(&fault)?;
    let (session, forgotten) = head(&moment, session)
        .map_err(&fault)?
        .ok_or_else(unknown)?;
    let id = match key {
        RecallKey::Id(id) => *id,
        RecallKey::Named(name) => {
            let fits = candidates(&moment, session, name, key.seq()).map_err(&fault)?;
            let lost = forgotten.map_or(Forgotten::None, |_| Forgotten::Some);
            resolve(name, &fits, lost)?
        }
    };
    let found = moment
        .prepare_cached(&format!(
            "SELECT {COLUMNS}, (SELECT message FROM bodies WHERE bodies.row = items.row)
             FROM items WHERE session = ?1 AND seq = ?2"
        ))
        .and_then(|mut statement| {
            statement
                .query_row(params![session, to_column(id.0.0)], |columns| {
                    Ok((row(columns)?, columns.get::<_, Option<String>>(8)?))
                })
                .optional()
        })
        .map_err(&fault)?;
    match found {
        Some((row, Some(json))) if !row.expired && !bounds.is_too_old(row.left, now) => {
            Ok(Recalled {
                id,
                kind: row.kind,
                tool: row.tool,
                call: row.call,
                left: row.left,
                why: row.why,
                message: Arc::new(message(&json, path, id)?),
            })
        }
        Some(_) => Err(RecallError::Expired(id)),
        None => Err(match forgotten {
            Some(last) if id.0 <= last => RecallError::Expired(id),
            _ => unknown(),
        }),
    }
}

/// The items that have all terms of the query, the best first; where there is none, those that
/// have some.
pub(super) fn search(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    session: &SessionId,
    query: &str,
    limit: usize,
    now: u64,
) -> Result<Vec<Hit>, RecallError> {
    let query = SearchQuery::parse(query).ok_or(RecallError::NoWords)?;
    let fault = fault::sqlite(path);
    let moment = connection.transaction().map_err(&fault)?;
    let Some((session, _)) = head(&moment, session).map_err(&fault)? else {
        return Ok(Vec::new());
    };
    let mut hits = Vec::new();
    for between in [" AND ", " OR "] {
        let terms: Vec<String> = query.terms().iter().map(phrase).collect();
        let wanted = format!(
            "owner : {} AND text : ({})",
            owner(session),
            terms.join(between)
        );
        let rows = matching(&moment, session, &wanted, limit).map_err(&fault)?;
        for (row, json) in rows {
            if row.expired || bounds.is_too_old(row.left, now) {
                continue;
            }
            let text = recall_text(&message(&json, path, row.id)?);
            // Where the index folds letters that we do not, the text is shown from its beginning.
            let found = query.find(&text).unwrap_or(Found { terms: 0, at: 0 });
            hits.push(Hit::new(row.id, row.kind, row.tool, &text, found));
        }
        if !hits.is_empty() {
            break;
        }
    }
    Ok(hits)
}

/// What is or was there of a session, in the order of its log.
pub(super) fn rows(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    session: &SessionId,
    now: u64,
) -> Result<Vec<ArchiveRow>, StoreError> {
    let fault = fault::sqlite(path);
    let moment = connection.transaction().map_err(&fault)?;
    let Some((session, _)) = head(&moment, session).map_err(&fault)? else {
        return Ok(Vec::new());
    };
    let mut statement = moment
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM items WHERE session = ?1 ORDER BY seq"
        ))
        .map_err(&fault)?;
    let rows = statement.query_map([session], row).map_err(&fault)?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<_>>>().map_err(&fault)?;
    for row in &mut rows {
        row.expired |= bounds.is_too_old(row.left, now);
    }
    Ok(rows)
}

/// The word that stands for a session in the index.
pub(super) fn owner(session: i64) -> String {
    format!("s{session}")
}

/// A session's key, and the highest number that is forgotten.
fn head(
    moment: &Transaction<'_>,
    session: &SessionId,
) -> rusqlite::Result<Option<(i64, Option<Seq>)>> {
    moment
        .prepare_cached("SELECT key, forgotten FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| {
            let forgotten: i64 = row.get(1)?;
            Ok((row.get(0)?, u64::try_from(forgotten).ok().map(Seq)))
        })
        .optional()
}

/// The items that a name may mean: the call's of that id, and the one of that number. More than
/// two kinds of refusal are not told apart by more than eleven of them.
fn candidates(
    moment: &Transaction<'_>,
    session: i64,
    name: &str,
    seq: Option<Seq>,
) -> rusqlite::Result<Vec<RecallId>> {
    let number = seq.and_then(|seq| i64::try_from(seq.0).ok()).unwrap_or(-1);
    let mut statement = moment.prepare_cached(
        "SELECT seq FROM items WHERE session = ?1 AND call = ?2
         UNION SELECT seq FROM items WHERE session = ?1 AND seq = ?3 ORDER BY seq LIMIT 11",
    )?;
    let rows = statement.query_map(params![session, name, number], |row| {
        Ok(RecallId(Seq(from_column(row.get(0)?))))
    })?;
    rows.collect()
}

fn matching(
    moment: &Transaction<'_>,
    session: i64,
    wanted: &str,
    limit: usize,
) -> rusqlite::Result<Vec<(ArchiveRow, String)>> {
    let mut statement = moment.prepare_cached(&format!(
        "SELECT {COLUMNS}, message FROM
           (SELECT rowid AS hit, bm25(words, 0.0, 1.0) AS score FROM words WHERE words MATCH ?1
            ORDER BY score LIMIT ?3)
         JOIN items ON items.row = hit JOIN bodies ON bodies.row = hit
         WHERE session = ?2 ORDER BY score, items.row DESC"
    ))?;
    let limit = to_column(limit as u64);
    let rows = statement.query_map(params![wanted, session, limit], |columns| {
        Ok((row(columns)?, columns.get(8)?))
    })?;
    rows.collect()
}

/// A term in the index's language: words in quotes, and they are letters and digits only.
fn phrase(term: &Term) -> String {
    let star = if term.open { " *" } else { "" };
    format!("\"{}\"{star}", term.words.join(" "))
}

fn message(json: &str, path: &Path, id: RecallId) -> Result<Message, StoreError> {
    serde_json::from_str(json)
        .map_err(|error| fault::corrupt(path, format!("{id} in it is no message: {error}")))
}

fn row(columns: &Row<'_>) -> rusqlite::Result<ArchiveRow> {
    let kind: String = columns.get(1)?;
    let kind = Kind::named(&kind).ok_or_else(|| {
        let why = format!("`{kind}` is no kind of item");
        rusqlite::Error::FromSqlConversionFailure(1, Type::Text, why.into())
    })?;
    Ok(ArchiveRow {
        id: RecallId(Seq(from_column(columns.get(0)?))),
        kind,
        tool: columns.get(2)?,
        call: columns.get::<_, Option<String>>(3)?.map(CallId),
        bytes: Bytes(from_column(columns.get(4)?)),
        left: from_column(columns.get(5)?),
        why: columns.get(6)?,
        expired: columns.get(7)?,
    })
}
