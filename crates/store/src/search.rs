//! The index of the words of a log, for the search. It is made by the first search of a session and
//! brought up to date by the next ones. Nothing else reads it: it may be dropped at any time.
//!
//! The index decides which entries may match. [`SearchQuery::find`] decides which do, so the answers are
//! those of a scan.

use std::path::Path;

use plimsoll_agent::Entry;
use plimsoll_core::recall::{SearchQuery, Term, recall_text, spaced_words};
use plimsoll_core::{LogEntry, PAGE_ENTRIES, SEARCH_BYTES, SEARCH_ENTRIES, SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::columns::{from_column, to_column};
use crate::fault::WorkError;
use crate::log::{LogAncestor, PAGE_BYTES};
use crate::read::{self, lineage};
use crate::sqlite::SqliteStore;

/// The index, and the number of the last indexed entry of each session. Every word of `spaced_words` is
/// one token of this tokenizer: it consists of letters and digits.
const CREATE: &str = "
    CREATE VIRTUAL TABLE IF NOT EXISTS search
        USING fts5(session, words, content='', columnsize=0, tokenize='ascii');
    CREATE TABLE IF NOT EXISTS indexed (
        session INTEGER PRIMARY KEY,
        n       INTEGER NOT NULL
    ) STRICT;";

const DROP: &str = "DROP TABLE IF EXISTS search; DROP TABLE IF EXISTS indexed;";

impl SqliteStore {
    /// Searches a session with the index, after adding the entries that are not in it.
    pub(crate) async fn search_index(
        &self,
        session: &SessionId,
        query: &SearchQuery,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let id = session.clone();
        let kin = self
            .reader()
            .with(move |connection, _| lineage(connection, &id))
            .await?;
        for own in kin.clone() {
            // In pages, so that a writer of a session never waits for long.
            let mut is_up_to_date = self
                .reader()
                .with({
                    let own = own.clone();
                    move |connection, _| is_indexed(connection, &own)
                })
                .await?;
            while !is_up_to_date {
                let own = own.clone();
                is_up_to_date = self
                    .writer()
                    .await?
                    .with(move |connection, _| index_page(connection, &own))
                    .await?;
            }
        }
        let (session, query) = (session.clone(), query.clone());
        self.reader()
            .with(move |connection, path| find(connection, path, &session, &kin, &query))
            .await
    }
}

/// Drops the index, with the words of all sessions. The next search makes it again.
pub(crate) fn drop_index(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(DROP)
}

fn is_indexed(connection: &Connection, own: &LogAncestor) -> rusqlite::Result<bool> {
    let exists = connection
        .prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = 'indexed'")?
        .exists([])?;
    Ok(exists && last_indexed(connection, own)? >= own.entries)
}

fn last_indexed(connection: &Connection, own: &LogAncestor) -> rusqlite::Result<u64> {
    let last = connection
        .prepare_cached("SELECT n FROM indexed WHERE session = ?1")?
        .query_row([own.key], |row| row.get(0))
        .optional()?;
    Ok(last.map_or(own.shared, from_column))
}

/// Adds the words of the next page of a session's own entries. Returns `true` if none is left.
fn index_page(connection: &mut Connection, own: &LogAncestor) -> rusqlite::Result<bool> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(CREATE)?;
    let first = last_indexed(&transaction, own)?;
    let (mut last, mut bytes) = (first, 0);
    {
        let mut entries = transaction.prepare_cached(
            "SELECT row, n, json FROM entries WHERE session = ?1 AND n > ?2 AND n <= ?3
             ORDER BY n LIMIT ?4",
        )?;
        let mut insert = transaction
            .prepare_cached("INSERT INTO search (rowid, session, words) VALUES (?1, ?2, ?3)")?;
        let mut rows = entries.query([
            own.key,
            to_column(first),
            to_column(own.entries),
            to_column(PAGE_ENTRIES as u64),
        ])?;
        while let Some(row) = rows.next()?
            && bytes < PAGE_BYTES.0
        {
            last = from_column(row.get(1)?);
            let json = row.get_ref(2)?.as_bytes()?;
            bytes += json.len() as u64;
            // An entry that cannot be read has no words.
            let entry: Option<Entry> = serde_json::from_slice(json).ok();
            let words = entry
                .as_ref()
                .and_then(Entry::message)
                .map(|message| spaced_words(&recall_text(message)));
            if let Some(words) = words.filter(|words| !words.is_empty()) {
                insert.execute(params![row.get::<_, i64>(0)?, token(own.key), words])?;
            }
        }
        transaction
            .prepare_cached("REPLACE INTO indexed (session, n) VALUES (?1, ?2)")?
            .execute([own.key, to_column(last)])?;
    }
    transaction.commit()?;
    Ok(last == first || last >= own.entries)
}

/// Returns the entries that may match, newest first.
fn find(
    connection: &mut Connection,
    path: &Path,
    session: &SessionId,
    kin: &[LogAncestor],
    query: &SearchQuery,
) -> Result<Vec<LogEntry>, WorkError> {
    let mut statement = connection.prepare_cached(
        "SELECT n, at, json, sum FROM search CROSS JOIN entries ON entries.row = search.rowid
         WHERE search MATCH ?1 AND n <= ?2 ORDER BY search.rowid DESC",
    )?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    for own in kin {
        let words = format!("session:{} AND words:({})", token(own.key), words(query));
        let mut rows = statement.query(params![words, to_column(own.entries)])?;
        while let Some(row) = rows.next()? {
            if found.len() >= SEARCH_ENTRIES || bytes >= SEARCH_BYTES.0 {
                return Ok(found);
            }
            let (raw, sum) = read::raw(row, 0)?;
            bytes += raw.json.len() as u64;
            if raw.matches(sum)
                && let Ok(line) = raw.parse(path, session)
            {
                found.push(line);
            }
        }
    }
    Ok(found)
}

/// Returns the word that stands for a session in the index.
fn token(key: i64) -> String {
    format!("s{key}")
}

/// Returns the query in the language of the index.
fn words(query: &SearchQuery) -> String {
    let phrase = |term: &Term| {
        let prefix = if term.open { " *" } else { "" };
        format!("\"{}\"{prefix}", term.words.join(" "))
    };
    let phrases: Vec<String> = query.terms().iter().map(phrase).collect();
    phrases.join(if query.is_any() { " OR " } else { " AND " })
}
