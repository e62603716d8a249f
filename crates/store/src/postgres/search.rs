//! The index of the words of a log in PostgreSQL, made and brought up to date by the searches of a
//! session, as in the file (`crate::search`). `TRUNCATE words, indexed` loses nothing.

use std::collections::BTreeSet;

use plimsoll_agent::Entry;
use plimsoll_core::recall::{SearchQuery, Term, recall_text, spaced_words};
use plimsoll_core::{LogEntry, PAGE_ENTRIES, SEARCH_BYTES, SEARCH_ENTRIES, SessionId, StoreError};
use sqlx::{PgConnection, Row};

use super::log::{fetch, lineage, raw};
use super::{PostgresStore, fault};
use crate::columns::{from_column, to_column};
use crate::connection::blocking;
use crate::log::{LogAncestor, Raw, ranges};

/// A row of the index holds one MB. An entry with more distinct words than this is not indexed, but
/// always looked at.
const MAX_WORDS: usize = 500_000;

impl PostgresStore {
    /// Returns the entries that may match, newest first.
    pub(super) async fn find(
        &self,
        session: &SessionId,
        query: &SearchQuery,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let fault = fault(&self.place);
        let mut connection = self.pool.acquire().await.map_err(&fault)?;
        let kin = lineage(&mut connection, session).await.map_err(&fault)?;
        let words = words(query);
        let (mut found, mut bytes) = (Vec::new(), 0);
        for own in &kin {
            self.index(&mut connection, own).await?;
            let rows = sqlx::query(
                "SELECT entries.n, at, json, sum FROM (
                   SELECT session, n FROM words WHERE session = $1 AND words @@ $3::tsquery
                   UNION ALL
                   SELECT session, n FROM words WHERE session = $1 AND words IS NULL
                 ) AS found JOIN entries USING (session, n)
                 WHERE entries.n <= $2 ORDER BY entries.n DESC LIMIT $4",
            )
            .bind(own.key)
            .bind(to_column(own.entries))
            .bind(&words)
            .bind(to_column(SEARCH_ENTRIES as u64))
            .fetch_all(&mut *connection)
            .await
            .map_err(&fault)?;
            for row in &rows {
                let (raw, sum) = raw(row).map_err(&fault)?;
                if found.len() < SEARCH_ENTRIES && bytes < SEARCH_BYTES.0 && raw.matches(sum) {
                    bytes += raw.json.len() as u64;
                    found.push(raw);
                }
            }
        }
        drop(connection);
        self.parse(found, session).await
    }

    /// Adds the words of a session's own entries that are not in the index.
    async fn index(
        &self,
        connection: &mut PgConnection,
        own: &LogAncestor,
    ) -> Result<(), StoreError> {
        let fault = fault(&self.place);
        loop {
            let last = sqlx::query("SELECT n FROM indexed WHERE session = $1")
                .bind(own.key)
                .fetch_optional(&mut *connection)
                .await
                .and_then(|row| row.map(|row| row.try_get(0)).transpose());
            let last = last.map_err(&fault)?.map_or(own.shared, from_column);
            let alone = std::slice::from_ref(own);
            let Some(range) = ranges(alone, last, PAGE_ENTRIES).next() else {
                return Ok(());
            };
            let rows = fetch(connection, range).await.map_err(&fault)?;
            let page = rows.iter().map(|row| raw(row).map(|(raw, _)| raw));
            let page: Vec<Raw> = page.collect::<sqlx::Result<_>>().map_err(&fault)?;
            let place = std::path::Path::new(&*self.place);
            let (numbers, words): (Vec<i64>, Vec<Option<String>>) =
                blocking(place, move || Ok(page.iter().filter_map(words_of).unzip())).await?;
            // One statement, so that a row never lacks its place in the other table.
            sqlx::query(
                "WITH done AS (
                   INSERT INTO indexed (session, n) VALUES ($1, $2)
                   ON CONFLICT (session) DO UPDATE SET n = greatest(indexed.n, excluded.n)
                 ) INSERT INTO words (session, n, words)
                 SELECT $1, n, array_to_tsvector(string_to_array(text, ' '))
                 FROM unnest($3::bigint[], $4::text[]) AS page (n, text) ON CONFLICT DO NOTHING",
            )
            .bind(own.key)
            .bind(to_column(range.last))
            .bind(numbers)
            .bind(words)
            .execute(&mut *connection)
            .await
            .map_err(&fault)?;
        }
    }
}

/// Returns the number of an entry and its distinct words, or `None` instead of too many.
fn words_of(raw: &Raw) -> Option<(i64, Option<String>)> {
    // An entry that cannot be read has no words.
    let entry: Entry = serde_json::from_slice(&raw.json).ok()?;
    let words = spaced_words(&recall_text(entry.message()?));
    let words: BTreeSet<&str> = words.split_whitespace().collect();
    let words = words.into_iter().collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        return None;
    }
    Some((
        to_column(raw.n),
        (words.len() <= MAX_WORDS).then_some(words),
    ))
}

/// Returns the query in the language of the index. The order of words is left to
/// [`SearchQuery::find`].
fn words(query: &SearchQuery) -> String {
    let all = |term: &Term| {
        let last = term.words.len().saturating_sub(1);
        let words = term.words.iter().enumerate().map(|(at, word)| {
            let prefix = if term.open && at == last { ":*" } else { "" };
            format!("'{word}'{prefix}")
        });
        format!("({})", words.collect::<Vec<_>>().join(" & "))
    };
    let terms: Vec<String> = query.terms().iter().map(all).collect();
    terms.join(if query.is_any() { " | " } else { " & " })
}
