//! Reads the archive: single items, searches, the list of a session, and damage checks. Changes
//! nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Seq};
use plimsoll_core::archive::{
    self, ArchiveRow, ArchivedKind, Hit, MatchedTerm, RecallError, RecallId, RecallKey,
    RecalledItem, SearchIndex, SearchItem, recall_text, recalled, resolve,
};
use plimsoll_core::{ArchiveBounds, StoreError};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::archive::{Archive, ArchiveScopes, Body, as_archive};
use crate::columns::{from_column, to_column};
use crate::fault;

/// Matches examined in one session. More than the limit are needed only if the parent of a fork has
/// continued.
const LOOKED_AT: usize = 10_000;

/// The columns of [`View::row`].
const COLUMNS: &str = "seq, kind, tool, call, bytes, left_at, why, held IS NULL";

/// The part of the archive that belongs to one session.
struct SessionItems {
    key: i64,
    /// The highest forgotten number.
    forgotten: Option<Seq>,
    /// Only items below this number may be seen.
    below: Option<Seq>,
}

/// The part of the archive that one session sees: its own shelf and those of the sessions that it was forked
/// from. Everything is read in one transaction.
pub(super) struct View<'a> {
    moment: Transaction<'a>,
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

impl Archive {
    /// Returns one complete item.
    pub(crate) async fn recall(
        &self,
        of: ArchiveScopes,
        key: &RecallKey,
    ) -> Result<RecalledItem, RecallError> {
        let key = key.clone();
        self.read(of, move |view| view.recall(&key)).await
    }

    /// Searches the items of a session.
    pub(crate) async fn search(
        &self,
        of: ArchiveScopes,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, RecallError> {
        let query = query.to_owned();
        self.read(of, move |view| archive::search(view, &query, limit))
            .await
    }

    /// Returns the present and expired items of a session, in the order of its log.
    pub(crate) async fn rows(&self, of: ArchiveScopes) -> Result<Vec<ArchiveRow>, StoreError> {
        let rows = self.read(of, |view| {
            let rows = view.rows();
            Ok(rows.map_err(|error| view.fault(error))?)
        });
        rows.await.map_err(|error| match error {
            RecallError::Store(error) => error,
            other => fault::other(&self.path, other.to_string()),
        })
    }

    async fn read<T, F>(&self, of: ArchiveScopes, work: F) -> Result<T, RecallError>
    where
        T: Send + 'static,
        F: FnOnce(&View<'_>) -> Result<T, RecallError> + Send + 'static,
    {
        let bounds = self.options.archive;
        // A `RecallError` is an answer of the work; a store error is a failure of the file.
        let done = self.open().await?.reader.with(move |connection, path| {
            let now = from_column(crate::write::now());
            let view = View::open(connection, path, &bounds, &of, now)?;
            match work(&view) {
                Err(RecallError::Store(error)) => Err(error),
                answer => Ok(answer),
            }
        });
        done.await.map_err(as_archive)?
    }
}

impl<'a> View<'a> {
    /// Begins to read. `now` is the caller's time.
    pub(super) fn open(
        connection: &'a mut Connection,
        path: &'a Path,
        bounds: &'a ArchiveBounds,
        of: &ArchiveScopes,
        now: u64,
    ) -> Result<Self, StoreError> {
        let fault = fault::sqlite(path);
        let moment = connection.transaction().map_err(&fault)?;
        Ok(Self {
            shelves: shelves(&moment, of).map_err(&fault)?,
            moment,
            path,
            bounds,
            now,
        })
    }

    /// Returns one complete item.
    pub(super) fn recall(&self, key: &RecallKey) -> Result<RecalledItem, RecallError> {
        let id = match key {
            RecallKey::Id(id) => *id,
            RecallKey::Named(name) => {
                let named = self.named(key, name);
                let (calls, number) = named.map_err(|error| self.fault(error))?;
                resolve(name, number, &calls)?
            }
        };
        let mut was_there = false;
        for shelf in self.shelves.iter().filter(|shelf| shelf.shows(id.0)) {
            let stored = self.stored(shelf, id);
            match stored.map_err(|error| self.fault(error))? {
                Some((row, Some(body))) if !row.expired => {
                    return Ok(recalled(row, Arc::new(self.message(&body, id)?)));
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

    /// Returns the items with a call id and whether each is held, and the item whose number is the
    /// name, if it exists.
    fn named(
        &self,
        key: &RecallKey,
        name: &str,
    ) -> rusqlite::Result<(BTreeMap<RecallId, bool>, Option<RecallId>)> {
        // The newest held ones first. Eleven are ambiguous already.
        let mut statement = self.moment.prepare_cached(
            "SELECT seq, held IS NOT NULL, left_at FROM items
             WHERE session = ?1 AND call = ?2 AND seq < ?3
             ORDER BY held IS NULL, row DESC LIMIT 11",
        )?;
        let mut calls: BTreeMap<RecallId, bool> = BTreeMap::new();
        let mut number = None;
        for shelf in &self.shelves {
            let mut rows = statement.query(params![shelf.key, name, shelf.end()])?;
            while let Some(row) = rows.next()? {
                let id = RecallId(Seq(from_column(row.get(0)?)));
                let is_held = row.get(1)? && !self.is_too_old(from_column(row.get(2)?));
                *calls.entry(id).or_default() |= is_held;
            }
            if let (None, Some(seq)) = (number, key.seq().filter(|seq| shelf.shows(*seq))) {
                let id = RecallId(seq);
                let is_known = shelf.forgotten.is_some_and(|last| seq <= last)
                    || self.stored(shelf, id)?.is_some();
                number = is_known.then_some(id);
            }
        }
        Ok((calls, number))
    }

    fn rows(&self) -> rusqlite::Result<Vec<ArchiveRow>> {
        let mut statement = self.moment.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM items WHERE session = ?1 AND seq < ?2"
        ))?;
        let mut all: BTreeMap<RecallId, ArchiveRow> = BTreeMap::new();
        for shelf in &self.shelves {
            let mut rows = statement.query([shelf.key, shelf.end()])?;
            while let Some(columns) = rows.next()? {
                let row = self.row(columns)?;
                // Prefer a shelf that still holds the item.
                let had = all.get(&row.id);
                if had.is_none_or(|had| had.expired) {
                    all.insert(row.id, row);
                }
            }
        }
        Ok(all.into_values().collect())
    }

    fn stored(
        &self,
        shelf: &SessionItems,
        id: RecallId,
    ) -> rusqlite::Result<Option<(ArchiveRow, Option<Body>)>> {
        self.moment
            .prepare_cached(&format!(
                "SELECT {COLUMNS}, message, sum FROM items LEFT JOIN bodies USING (row)
                 WHERE session = ?1 AND seq = ?2"
            ))?
            .query_row(params![shelf.key, to_column(id.0.0)], |columns| {
                Ok((self.row(columns)?, body(columns)?))
            })
            .optional()
    }

    /// Reads [`COLUMNS`].
    fn row(&self, columns: &Row<'_>) -> rusqlite::Result<ArchiveRow> {
        let kind: String = columns.get(1)?;
        let kind = ArchivedKind::named(&kind).ok_or_else(|| {
            let why = format!("`{kind}` is no kind of item");
            rusqlite::Error::FromSqlConversionFailure(1, Type::Text, why.into())
        })?;
        let left = from_column(columns.get(5)?);
        Ok(ArchiveRow {
            id: RecallId(Seq(from_column(columns.get(0)?))),
            kind,
            tool: columns.get(2)?,
            call: columns.get::<_, Option<String>>(3)?.map(CallId),
            bytes: Bytes(from_column(columns.get(4)?)),
            left,
            why: columns.get(6)?,
            expired: columns.get(7)? || self.is_too_old(left),
        })
    }

    fn message(&self, body: &Body, id: RecallId) -> Result<Message, StoreError> {
        body.message(id)
            .map_err(|why| fault::corrupt(self.path, why))
    }

    fn is_too_old(&self, left: u64) -> bool {
        self.bounds.is_too_old(left, self.now)
    }

    fn fault(&self, error: rusqlite::Error) -> StoreError {
        fault::sqlite(self.path)(error)
    }
}

impl SearchIndex for View<'_> {
    /// The row of the item.
    type Key = i64;

    fn words(&self, prefix: &str, most: usize) -> Result<Vec<String>, RecallError> {
        let words = vocabulary(&self.moment, prefix, most);
        Ok(words.map_err(|error| self.fault(error))?)
    }

    fn newest(&self, terms: &[MatchedTerm<'_>], most: usize) -> Result<Vec<i64>, RecallError> {
        let wanted: Vec<String> = terms.iter().map(phrases).collect();
        let wanted = wanted.join(" AND ");
        let mut rows = Vec::new();
        for shelf in &self.shelves {
            let of_shelf = newest(&self.moment, shelf, &wanted, most);
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
            .query_row([key], |columns| Ok((self.row(columns)?, body(columns)?)))
            .optional();
        let found = found.map_err(|error| self.fault(error))?;
        let Some((row, Some(body))) = found.filter(|(row, _)| !row.expired) else {
            return Ok(None);
        };
        Ok(Some(SearchItem {
            text: recall_text(&self.message(&body, row.id)?),
            id: row.id,
            kind: row.kind,
            tool: row.tool,
        }))
    }
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

/// Returns the columns `message` and `sum` after [`COLUMNS`], or `None` if the item has expired.
fn body(columns: &Row<'_>) -> rusqlite::Result<Option<Body>> {
    let json: Option<String> = columns.get(8)?;
    json.map(|json| {
        let sum = columns.get(9)?;
        Ok(Body { json, sum })
    })
    .transpose()
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
