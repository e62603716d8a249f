//! Reading the archive: one item, a search, the list of a session, and whether the file is whole.
//! It changes nothing.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Seq};
use plimsoll_core::archive::{
    ArchiveRow, Forgotten, Found, Hit, Kind, RecallError, RecallId, RecallKey, Recalled,
    SearchQuery, Term, recall_text, resolve,
};
use plimsoll_core::{ArchiveBounds, StoreError};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::archive::Places;
use crate::fault;
use crate::read::{from_column, to_column};

/// The columns of [`row`].
const COLUMNS: &str = "seq, kind, tool, call, bytes, left_at, why, held IS NULL";

/// What the file has of a session.
struct Shelf {
    key: i64,
    /// The highest number that is forgotten.
    forgotten: Option<Seq>,
    /// Only items below this number may be seen.
    below: Option<Seq>,
}

/// An item that a search has found.
struct Match {
    row: ArchiveRow,
    json: String,
    /// The lower, the better.
    score: f64,
    /// Rows only grow.
    at: i64,
}

impl Shelf {
    fn end(&self) -> i64 {
        self.below.map_or(i64::MAX, |below| to_column(below.0))
    }
}

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
    of: &Places,
    key: &RecallKey,
    now: u64,
) -> Result<Recalled, RecallError> {
    let fault = fault::sqlite(path);
    // All of one moment.
    let moment = connection.transaction().map_err(&fault)?;
    let shelves = shelves(&moment, of).map_err(&fault)?;
    let id = match key {
        RecallKey::Id(id) => *id,
        RecallKey::Named(name) => {
            let mut fits = BTreeSet::new();
            for shelf in &shelves {
                fits.extend(candidates(&moment, shelf, name, key.seq()).map_err(&fault)?);
            }
            let fits: Vec<RecallId> = fits.into_iter().collect();
            let lost = match shelves.iter().any(|shelf| shelf.forgotten.is_some()) {
                true => Forgotten::Some,
                false => Forgotten::None,
            };
            resolve(name, &fits, lost)?
        }
    };
    let mut was_there = false;
    for shelf in &shelves {
        if shelf.below.is_some_and(|below| id.0 >= below) {
            continue;
        }
        match item(&moment, shelf, id).map_err(&fault)? {
            Some((row, Some(json))) if !row.expired && !bounds.is_too_old(row.left, now) => {
                return Ok(Recalled {
                    id,
                    kind: row.kind,
                    tool: row.tool,
                    call: row.call,
                    left: row.left,
                    why: row.why,
                    message: Arc::new(message(&json, path, id)?),
                });
            }
            Some(_) => was_there = true,
            None => was_there |= shelf.forgotten.is_some_and(|last| id.0 <= last),
        }
    }
    Err(match was_there {
        true => RecallError::Expired(id),
        false => RecallError::Unknown(key.to_string()),
    })
}

/// The items that have all terms of the query, the best first; where there is none, those that
/// have some.
pub(super) fn search(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    of: &Places,
    query: &str,
    limit: usize,
    now: u64,
) -> Result<Vec<Hit>, RecallError> {
    let query = SearchQuery::parse(query).ok_or(RecallError::NoWords)?;
    let fault = fault::sqlite(path);
    let moment = connection.transaction().map_err(&fault)?;
    let shelves = shelves(&moment, of).map_err(&fault)?;
    let terms: Vec<String> = query.terms().iter().map(phrase).collect();
    for between in [" AND ", " OR "] {
        let wanted = terms.join(between);
        let mut fits = Vec::new();
        for shelf in &shelves {
            fits.extend(matching(&moment, shelf, &wanted, limit).map_err(&fault)?);
        }
        // The best first; of two that fit as well, the one that was archived last.
        fits.sort_by(|one, other| (one.score.total_cmp(&other.score)).then(other.at.cmp(&one.at)));
        let mut hits: Vec<Hit> = Vec::new();
        for Match { row, json, .. } in fits {
            // What a fork has archived as well as its parent is one item all the same.
            let is_there = hits.iter().any(|hit| hit.id == row.id);
            if is_there || row.expired || bounds.is_too_old(row.left, now) {
                continue;
            }
            let text = recall_text(&message(&json, path, row.id)?);
            // Where the index folds letters that we do not, the text is shown from its beginning.
            let found = query.find(&text).unwrap_or(Found { terms: 0, at: 0 });
            hits.push(Hit::new(row.id, row.kind, row.tool, &text, found));
        }
        if !hits.is_empty() {
            hits.truncate(limit);
            return Ok(hits);
        }
    }
    Ok(Vec::new())
}

/// What is or was there of a session, in the order of its log.
pub(super) fn rows(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    of: &Places,
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
            // Where it is held, if it is held anywhere.
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

/// The word that stands for a session in the index.
pub(super) fn owner(session: i64) -> String {
    format!("s{session}")
}

/// The shelves that there are: not those of another log that had a session's name.
fn shelves(moment: &Transaction<'_>, of: &Places) -> rusqlite::Result<Vec<Shelf>> {
    let mut statement = moment.prepare_cached(
        "SELECT key, forgotten FROM sessions WHERE id = ?1 AND (log IS NULL OR log = ?2)",
    )?;
    let mut shelves = Vec::new();
    for place in of.all() {
        let shelf = |row: &Row<'_>| {
            let forgotten: i64 = row.get(1)?;
            Ok(Shelf {
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
    shelf: &Shelf,
    id: RecallId,
) -> rusqlite::Result<Option<(ArchiveRow, Option<String>)>> {
    moment
        .prepare_cached(&format!(
            "SELECT {COLUMNS}, (SELECT message FROM bodies WHERE bodies.row = items.row)
             FROM items WHERE session = ?1 AND seq = ?2"
        ))?
        .query_row(params![shelf.key, to_column(id.0.0)], |columns| {
            Ok((row(columns)?, columns.get::<_, Option<String>>(8)?))
        })
        .optional()
}

/// The items that a name may mean: the call's of that id, and the one of that number. More than
/// two kinds of refusal are not told apart by more than eleven of them.
fn candidates(
    moment: &Transaction<'_>,
    shelf: &Shelf,
    name: &str,
    seq: Option<Seq>,
) -> rusqlite::Result<Vec<RecallId>> {
    let number = seq.and_then(|seq| i64::try_from(seq.0).ok()).unwrap_or(-1);
    let mut statement = moment.prepare_cached(
        "SELECT seq FROM items WHERE session = ?1 AND call = ?2 AND seq < ?4
         UNION SELECT seq FROM items WHERE session = ?1 AND seq = ?3 AND seq < ?4
         ORDER BY seq LIMIT 11",
    )?;
    let rows = statement.query_map(params![shelf.key, name, number, shelf.end()], |row| {
        Ok(RecallId(Seq(from_column(row.get(0)?))))
    })?;
    rows.collect()
}

fn matching(
    moment: &Transaction<'_>,
    shelf: &Shelf,
    terms: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Match>> {
    let wanted = format!("owner : {} AND text : ({terms})", owner(shelf.key));
    // Where all that the index finds may be seen, it need not find more than are wanted.
    let limit = to_column(limit as u64);
    let found = shelf.below.map_or(limit, |_| -1);
    let mut statement = moment.prepare_cached(&format!(
        "SELECT {COLUMNS}, message, score, items.row FROM
           (SELECT rowid AS hit, bm25(words, 0.0, 1.0) AS score FROM words WHERE words MATCH ?1
            ORDER BY score LIMIT ?3)
         JOIN items ON items.row = hit JOIN bodies ON bodies.row = hit
         WHERE session = ?2 AND seq < ?4 ORDER BY score, items.row DESC LIMIT ?5"
    ))?;
    let wanted = params![wanted, shelf.key, found, shelf.end(), limit];
    let rows = statement.query_map(wanted, |columns| {
        Ok(Match {
            row: row(columns)?,
            json: columns.get(8)?,
            score: columns.get(9)?,
            at: columns.get(10)?,
        })
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
