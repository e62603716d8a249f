//! Reads the archive: single items, searches, the list of a session, and damage checks. Changes
//! nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Seq};
use plimsoll_core::archive::{
    self, ArchiveRow, ArchivedKind, Hit, MatchedTerm, RecallError, RecallId, RecallKey,
    RecalledItem, SearchIndex, SearchItem, recall_text, resolve,
};
use plimsoll_core::{ArchiveBounds, StoreError};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::archive::ArchiveScopes;
use crate::checksum;
use crate::fault;
use crate::read::{ALTERED, from_column, to_column};

/// Matches examined in one session. More than the limit are needed only if the parent of a fork has
/// continued.
const LOOKED_AT: usize = 10_000;

/// The columns of [`row`].
const COLUMNS: &str = "seq, kind, tool, call, bytes, left_at, why, held IS NULL";

/// The part of the archive that belongs to one session.
struct SessionItems {
    key: i64,
    /// The highest forgotten number.
    forgotten: Option<Seq>,
    /// Only items below this number may be seen.
    below: Option<Seq>,
}

/// An item as stored in the file.
struct Body {
    json: String,
    sum: i64,
}

/// The data of one search: the shelves of a session and of the sessions that it was forked from.
struct View<'a> {
    moment: &'a Transaction<'a>,
    path: &'a Path,
    bounds: &'a ArchiveBounds,
    shelves: Vec<SessionItems>,
    now: u64,
}

impl SessionItems {
    fn end(&self) -> i64 {
        self.below.map_or(i64::MAX, |below| to_column(below.0))
    }

    /// Checks whether the item with this number may be seen.
    fn shows(&self, seq: Seq) -> bool {
        self.below.is_none_or(|below| seq < below)
    }
}

/// Checks whether the file is usable. If `whole` is true, every page is checked.
pub(super) fn check(connection: &Connection, path: &Path, whole: bool) -> Result<(), StoreError> {
    let fault = fault::sqlite(path);
    if whole {
        let report: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(&fault)?;
        if report != "ok" {
            return Err(fault::corrupt(path, "it is damaged inside"));
        }
    }
    // Everything that each use reads, including the word index.
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

/// Returns one complete item.
pub(super) fn recall(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    of: &ArchiveScopes,
    key: &RecallKey,
    now: u64,
) -> Result<RecalledItem, RecallError> {
    let fault = fault::sqlite(path);
    // Everything is read in one transaction.
    let moment = connection.transaction().map_err(&fault)?;
    let shelves = shelves(&moment, of).map_err(&fault)?;
    let id = match key {
        RecallKey::Id(id) => *id,
        RecallKey::Named(name) => {
            let mut calls: BTreeMap<RecallId, bool> = BTreeMap::new();
            let mut number = None;
            for shelf in &shelves {
                for (id, row_is_held) in
                    of_call(&moment, shelf, name, bounds, now).map_err(&fault)?
                {
                    *calls.entry(id).or_default() |= row_is_held;
                }
                if let Some(seq) = key.seq().filter(|seq| shelf.shows(*seq)) {
                    let id = RecallId(seq);
                    let is_known = shelf.forgotten.is_some_and(|last| seq <= last)
                        || item(&moment, shelf, id).map_err(&fault)?.is_some();
                    number = number.or(is_known.then_some(id));
                }
            }
            resolve(name, number, &calls)?
        }
    };
    let mut was_there = false;
    for shelf in &shelves {
        if !shelf.shows(id.0) {
            continue;
        }
        match item(&moment, shelf, id).map_err(&fault)? {
            Some((row, Some(body))) if !row.expired && !bounds.is_too_old(row.left, now) => {
                return Ok(RecalledItem {
                    id,
                    kind: row.kind,
                    tool: row.tool,
                    call: row.call,
                    left: row.left,
                    why: row.why,
                    message: Arc::new(body.message(path, id)?),
                });
            }
            Some(_) => was_there = true,
            None => was_there |= shelf.forgotten.is_some_and(|last| id.0 <= last),
        }
    }
    Err(if was_there {
        RecallError::Expired(id)
    } else {
        RecallError::Unknown(key.to_string())
    })
}

/// Searches the items of a session.
pub(super) fn search(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    of: &ArchiveScopes,
    query: &str,
    limit: usize,
    now: u64,
) -> Result<Vec<Hit>, RecallError> {
    let moment = connection.transaction().map_err(fault::sqlite(path))?;
    let view = View {
        moment: &moment,
        path,
        bounds,
        shelves: shelves(&moment, of).map_err(fault::sqlite(path))?,
        now,
    };
    archive::search(&view, query, limit)
}

/// Returns the present and expired items of a session, in the order of its log.
pub(super) fn rows(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    of: &ArchiveScopes,
    now: u64,
) -> Result<Vec<ArchiveRow>, StoreError> {
    let fault = fault::sqlite(path);
    let moment = connection.transaction().map_err(&fault)?;
    let mut statement = moment
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM items WHERE session = ?1 AND seq < ?2"
        ))
        .map_err(&fault)?;
    let mut all: BTreeMap<RecallId, ArchiveRow> = BTreeMap::new();
    for shelf in shelves(&moment, of).map_err(&fault)? {
        let rows = statement.query_map([shelf.key, shelf.end()], row);
        for row in rows.map_err(&fault)? {
            let mut row = row.map_err(&fault)?;
            row.expired |= bounds.is_too_old(row.left, now);
            // Prefer a shelf that still holds the item.
            match all.entry(row.id) {
                Entry::Vacant(place) => {
                    place.insert(row);
                }
                Entry::Occupied(mut place) if place.get().expired => {
                    place.insert(row);
                }
                Entry::Occupied(_) => {}
            }
        }
    }
    Ok(all.into_values().collect())
}

/// Returns the word that represents a session in the index.
pub(super) fn owner(session: i64) -> String {
    format!("s{session}")
}

/// Returns the existing shelves. The shelves of another log of the same name are excluded.
fn shelves(moment: &Transaction<'_>, of: &ArchiveScopes) -> rusqlite::Result<Vec<SessionItems>> {
    let mut statement = moment.prepare_cached(
        "SELECT key, forgotten FROM sessions WHERE id = ?1 AND (log IS NULL OR log = ?2)",
    )?;
    let mut shelves = Vec::new();
    for place in of.all() {
        let shelf = |row: &Row<'_>| {
            let forgotten: i64 = row.get(1)?;
            Ok(SessionItems {
                key: row.get(0)?,
                forgotten: u64::try_from(forgotten).ok().map(Seq),
                below: place.below,
            })
        };
        let found = statement.query_row(params![place.session.as_str(), place.born], shelf);
        shelves.extend(found.optional()?);
    }
    Ok(shelves)
}

fn item(
    moment: &Transaction<'_>,
    shelf: &SessionItems,
    id: RecallId,
) -> rusqlite::Result<Option<(ArchiveRow, Option<Body>)>> {
    moment
        .prepare_cached(&format!(
            "SELECT {COLUMNS}, message, sum FROM items LEFT JOIN bodies USING (row)
             WHERE session = ?1 AND seq = ?2"
        ))?
        .query_row(params![shelf.key, to_column(id.0.0)], |columns| {
            Ok((row(columns)?, body(columns)?))
        })
        .optional()
}

/// Returns the items with a call id and whether each is held, the newest held ones first. At most
/// eleven are returned, because eleven are already ambiguous.
fn of_call(
    moment: &Transaction<'_>,
    shelf: &SessionItems,
    call: &str,
    bounds: &ArchiveBounds,
    now: u64,
) -> rusqlite::Result<Vec<(RecallId, bool)>> {
    let mut statement = moment.prepare_cached(
        "SELECT seq, held IS NOT NULL, left_at FROM items
         WHERE session = ?1 AND call = ?2 AND seq < ?3
         ORDER BY held IS NULL, row DESC LIMIT 11",
    )?;
    let rows = statement.query_map(params![shelf.key, call, shelf.end()], |row| {
        let id = RecallId(Seq(from_column(row.get(0)?)));
        let is_too_old = bounds.is_too_old(from_column(row.get(2)?), now);
        Ok((id, row.get(1)? && !is_too_old))
    })?;
    rows.collect()
}

impl View<'_> {
    fn fault(&self, error: rusqlite::Error) -> RecallError {
        fault::sqlite(self.path)(error).into()
    }
}

impl SearchIndex for View<'_> {
    /// The row of the item.
    type Key = i64;

    fn words(&self, prefix: &str, most: usize) -> Result<Vec<String>, RecallError> {
        vocabulary(self.moment, prefix, most).map_err(|error| self.fault(error))
    }

    fn newest(&self, terms: &[MatchedTerm<'_>], most: usize) -> Result<Vec<i64>, RecallError> {
        let wanted: Vec<String> = terms.iter().map(phrases).collect();
        let wanted = wanted.join(" AND ");
        let mut rows = Vec::new();
        for shelf in &self.shelves {
            let of_shelf = newest(self.moment, shelf, &wanted, most);
            rows.extend(of_shelf.map_err(|error| self.fault(error))?);
        }
        rows.sort_unstable_by_key(|row| Reverse(*row));
        rows.truncate(most);
        Ok(rows)
    }

    fn item(&self, key: i64) -> Result<Option<SearchItem>, RecallError> {
        let mut statement = self
            .moment
            .prepare_cached(&format!(
                "SELECT {COLUMNS}, message, sum FROM items JOIN bodies USING (row) WHERE row = ?1"
            ))
            .map_err(|error| self.fault(error))?;
        let found = statement
            .query_row([key], |columns| Ok((row(columns)?, body(columns)?)))
            .optional();
        let found = found.map_err(|error| self.fault(error))?;
        let Some((row, Some(body))) = found else {
            return Ok(None);
        };
        if row.expired || self.bounds.is_too_old(row.left, self.now) {
            return Ok(None);
        }
        Ok(Some(SearchItem {
            text: recall_text(&body.message(self.path, row.id)?),
            id: row.id,
            kind: row.kind,
            tool: row.tool,
        }))
    }
}

/// Selects the matching rows of a shelf, newest first. The word index is the outer loop and yields
/// its rows in this order, so that no more rows are read than requested.
const NEWEST: &str =
    "SELECT words.rowid, seq FROM words CROSS JOIN items ON items.row = words.rowid
     WHERE words MATCH ?1 AND items.session = ?2 ORDER BY words.rowid DESC";

fn newest(
    moment: &Transaction<'_>,
    shelf: &SessionItems,
    wanted: &str,
    most: usize,
) -> rusqlite::Result<Vec<i64>> {
    let wanted = format!("owner : {} AND text : ({wanted})", owner(shelf.key));
    let mut statement = moment.prepare_cached(NEWEST)?;
    let mut found = statement.query(params![wanted, shelf.key])?;
    let mut rows = Vec::new();
    for _ in 0..LOOKED_AT {
        let Some(row) = found.next()? else {
            break;
        };
        if row.get::<_, i64>(1)? < shelf.end() {
            rows.push(row.get(0)?);
        }
        if rows.len() >= most {
            break;
        }
    }
    Ok(rows)
}

/// Returns the words of the index that begin with `prefix`. Words consist of letters and digits, so
/// the word that follows another is not below that word plus `0`.
fn vocabulary(
    moment: &Transaction<'_>,
    prefix: &str,
    most: usize,
) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        moment.prepare_cached("SELECT term FROM vocabulary WHERE term >= ?1 LIMIT 1")?;
    let mut words = Vec::new();
    let mut from = prefix.to_owned();
    while words.len() < most {
        let word = statement.query_row([&from], |row| row.get::<_, String>(0));
        let Some(word) = word.optional()?.filter(|word| word.starts_with(prefix)) else {
            break;
        };
        from = format!("{word}0");
        words.push(word);
    }
    Ok(words)
}

/// Returns a term in the query language of the index. The words can be quoted because they consist
/// of letters and digits only.
fn phrases(wanted: &MatchedTerm<'_>) -> String {
    let before = wanted
        .term
        .words
        .split_last()
        .map_or(&[][..], |(_, words)| words);
    let before = before.join(" ");
    let phrases: Vec<String> = wanted
        .last
        .iter()
        .map(|last| format!("\"{before} {last}\""))
        .collect();
    format!("({})", phrases.join(" OR "))
}

impl Body {
    fn message(&self, path: &Path, id: RecallId) -> Result<Message, StoreError> {
        let sum = checksum::of_item(to_column(id.0.0), self.json.as_bytes());
        if self.sum != sum {
            return Err(fault::corrupt(path, format!("item {id} in it: {ALTERED}")));
        }
        serde_json::from_str(&self.json)
            .map_err(|error| fault::corrupt(path, format!("{id} in it is no message: {error}")))
    }
}

/// Returns the columns `message` and `sum` after [`COLUMNS`], or `None` if the item has expired.
fn body(columns: &Row<'_>) -> rusqlite::Result<Option<Body>> {
    let json: Option<String> = columns.get(8)?;
    json.map(|json| {
        let sum = columns.get(9)?;
        Ok(Body { json, sum })
    })
    .transpose()
}

fn row(columns: &Row<'_>) -> rusqlite::Result<ArchiveRow> {
    let kind: String = columns.get(1)?;
    let kind = ArchivedKind::named(&kind).ok_or_else(|| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn the_index_of_words_is_the_outer_loop_and_nothing_is_sorted() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection, Path::new("a.db"), schema::ARCHIVE).unwrap();
        // Planned without statistics and with those of a large session.
        for statistics in [
            "",
            "ANALYZE; INSERT INTO sqlite_stat1 VALUES ('items', 'items_held', '1000000 1000000 1'); ANALYZE sqlite_schema",
        ] {
            connection.execute_batch(statistics).unwrap();
            let mut plan = connection
                .prepare(&format!("EXPLAIN QUERY PLAN {NEWEST}"))
                .unwrap();
            let steps = plan.query_map(params!["owner : s1", 1], |row| row.get::<_, String>(3));
            let steps: Vec<String> = steps.unwrap().map(Result::unwrap).collect();
            assert!(
                matches!(steps.as_slice(), [outer, inner]
                    if outer.starts_with("SCAN words VIRTUAL TABLE")
                        && inner == "SEARCH items USING INTEGER PRIMARY KEY (rowid=?)"),
                "{steps:?}"
            );
        }
    }
}
