//! Adds items to the archive in PostgreSQL and expires them, in a transaction of the caller.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_context::{Bytes, Seq};
use plimsoll_core::archive::{ArchivedItem, recall_text, spaced_words};
use plimsoll_core::{ArchiveBounds, SessionId, StoreError};
use sqlx::PgConnection;

use super::{About, BLOCKS, block, owner};
use crate::archive::{Body, bodies};
use crate::columns::{name_hash, to_column};
use crate::postgres::schema::fault;

/// Maximum number of items of all sessions that one call expires because of their age. Each call
/// that archives something also removes some items that are too old.
const CLEARED: i64 = 100;

/// Maximum size in bytes of the distinct indexed words of one item. The database accepts up to one
/// mebibyte.
const INDEXED: usize = 768 << 10;

/// Adds all items or none, in the transaction of the caller.
pub(crate) async fn archive(
    connection: &mut PgConnection,
    place: &str,
    bounds: &ArchiveBounds,
    session: &SessionId,
    items: &[ArchivedItem],
) -> Result<(), StoreError> {
    let items = bodies(items, bounds, place).collect::<Result<Vec<_>, _>>()?;
    let done = take_in(connection, bounds, session, &items).await;
    done.map_err(fault(place))
}

async fn take_in(
    connection: &mut PgConnection,
    bounds: &ArchiveBounds,
    session: &SessionId,
    items: &[(&ArchivedItem, Body)],
) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO shelves (session) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(session.as_str())
        .execute(&mut *connection)
        .await?;
    let shelf: i64 = sqlx::query_scalar("SELECT key FROM shelves WHERE session = $1 FOR UPDATE")
        .bind(session.as_str())
        .fetch_one(&mut *connection)
        .await?;
    // A clock that was set back does not make an item older than the previous one.
    let newest: Option<i64> =
        sqlx::query_scalar("SELECT left_at FROM items WHERE shelf = $1 ORDER BY row DESC LIMIT 1")
            .bind(shelf)
            .fetch_optional(&mut *connection)
            .await?;
    let now = crate::write::now().max(newest.unwrap_or(0));
    let numbers: Vec<i64> = items
        .iter()
        .map(|(item, _)| to_column(item.seq.0))
        .collect();
    remove(connection, shelf, &numbers).await?;
    insert(connection, shelf, items, now).await?;
    expire(connection, bounds, shelf, now).await
}

async fn insert(
    connection: &mut PgConnection,
    shelf: i64,
    items: &[(&ArchivedItem, Body)],
    now: i64,
) -> sqlx::Result<()> {
    let taken: i64 = sqlx::query_scalar(
        "UPDATE shelves SET taken = taken + $2 WHERE key = $1 RETURNING taken - $2",
    )
    .bind(shelf)
    .bind(to_column(items.len() as u64))
    .fetch_one(&mut *connection)
    .await?;
    let (mut numbers, mut calls, mut abouts, mut texts) = (vec![], vec![], vec![], vec![]);
    let (mut held, mut sums, mut words) = (vec![], vec![], vec![]);
    for (n, (item, body)) in (taken..).zip(items) {
        let text = recall_text(&item.message);
        let about = About {
            kind: item.kind(),
            tool: item.tool.clone(),
            call: item.call().cloned(),
            bytes: Bytes(text.len() as u64),
            why: item.why.clone(),
        };
        let about = serde_json::to_string(&about);
        let seq = to_column(item.seq.0);
        numbers.push(seq);
        calls.push(item.call().map(|call| name_hash(&call.0)));
        abouts.push(about.map_err(|error| sqlx::Error::Encode(error.into()))?);
        texts.push(body.json.as_str());
        held.push(to_column(body.json.len() as u64));
        sums.push(body.sum);
        words.push(indexed(shelf, n, &spaced_words(&text)));
    }
    let new = words.iter().flat_map(|words| words.split(' '));
    let new: BTreeSet<&str> = new.filter(|word| !word.starts_with('=')).collect();
    sqlx::query(
        "INSERT INTO vocabulary (shelf, word) SELECT $1, word FROM unnest($2::text[]) AS word
         ON CONFLICT DO NOTHING",
    )
    .bind(shelf)
    .bind(new.into_iter().collect::<Vec<_>>())
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO items (shelf, left_at, seq, call, about, held, message, sum, words)
         SELECT $1, $2, * FROM unnest($3::bigint[], $4::bytea[], $5::text[], $6::bigint[],
                                      $7::text[], $8::bigint[], $9::text[])",
    )
    .bind(shelf)
    .bind(now)
    .bind(numbers)
    .bind(calls)
    .bind(abouts)
    .bind(held)
    .bind(texts)
    .bind(sums)
    .bind(words)
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes items of a deleted log: those with the number `next` or a higher one.
pub(crate) async fn keep_up_to(
    connection: &mut PgConnection,
    session: &SessionId,
    next: Seq,
) -> sqlx::Result<()> {
    let rows: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT key, seq FROM shelves JOIN items ON shelf = key
         WHERE session = $1 AND seq >= $2 FOR UPDATE OF shelves",
    )
    .bind(session.as_str())
    .bind(to_column(next.0))
    .fetch_all(&mut *connection)
    .await?;
    let Some((shelf, _)) = rows.first() else {
        return Ok(());
    };
    let numbers: Vec<i64> = rows.iter().map(|(_, seq)| *seq).collect();
    remove(connection, *shelf, &numbers).await
}

/// Removes items without remembering them as forgotten.
async fn remove(connection: &mut PgConnection, shelf: i64, numbers: &[i64]) -> sqlx::Result<()> {
    let words: Vec<Option<String>> =
        sqlx::query_scalar("DELETE FROM items WHERE shelf = $1 AND seq = ANY($2) RETURNING words")
            .bind(shelf)
            .bind(numbers)
            .fetch_all(&mut *connection)
            .await?;
    forget_words(connection, shelf, &words).await
}

/// Expires the oldest items until every bound holds, and forgets those that expired longest ago.
async fn expire(
    connection: &mut PgConnection,
    bounds: &ArchiveBounds,
    shelf: i64,
    now: i64,
) -> sqlx::Result<()> {
    let over: Vec<i64> = sqlx::query_scalar(
        "SELECT row FROM (SELECT row, sum(held) OVER newer AS bytes, count(*) OVER newer AS items
                          FROM items WHERE shelf = $1 AND held IS NOT NULL
                          WINDOW newer AS (ORDER BY row DESC)) AS held
         WHERE bytes > $2 OR items > $3",
    )
    .bind(shelf)
    .bind(to_column(bounds.for_one_session().0))
    .bind(to_column(bounds.session_items))
    .fetch_all(&mut *connection)
    .await?;
    let_go(connection, shelf, &over).await?;
    // Items of any session, unless another process is working on it.
    let oldest = now.saturating_sub(to_column(bounds.age.as_secs()));
    let old: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT shelf, row FROM items JOIN shelves ON key = shelf
         WHERE held IS NOT NULL AND left_at < $1 ORDER BY left_at LIMIT $2
         FOR UPDATE OF shelves SKIP LOCKED",
    )
    .bind(oldest)
    .bind(CLEARED)
    .fetch_all(&mut *connection)
    .await?;
    let mut of_shelf: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (shelf, row) in old {
        of_shelf.entry(shelf).or_default().push(row);
    }
    for (shelf, rows) in of_shelf {
        let_go(connection, shelf, &rows).await?;
    }
    let forgotten: Vec<i64> = sqlx::query_scalar(
        "DELETE FROM items WHERE row IN
           (SELECT row FROM items WHERE shelf = $1 AND held IS NULL ORDER BY row DESC OFFSET $2)
         RETURNING seq",
    )
    .bind(shelf)
    .bind(to_column(bounds.expired_items))
    .fetch_all(&mut *connection)
    .await?;
    if let Some(highest) = forgotten.into_iter().max() {
        sqlx::query("UPDATE shelves SET forgotten = greatest(forgotten, $2) WHERE key = $1")
            .bind(shelf)
            .bind(highest)
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn let_go(connection: &mut PgConnection, shelf: i64, rows: &[i64]) -> sqlx::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let words: Vec<Option<String>> =
        sqlx::query_scalar("SELECT words FROM items WHERE row = ANY($1)")
            .bind(rows)
            .fetch_all(&mut *connection)
            .await?;
    sqlx::query(
        "UPDATE items SET held = NULL, message = NULL, sum = NULL, words = NULL WHERE row = ANY($1)",
    )
    .bind(rows)
    .execute(&mut *connection)
    .await?;
    forget_words(connection, shelf, &words).await
}

/// Removes the words of deleted items from the vocabulary, unless another item contains them.
async fn forget_words(
    connection: &mut PgConnection,
    shelf: i64,
    words: &[Option<String>],
) -> sqlx::Result<()> {
    let words = words.iter().flatten();
    let words: BTreeSet<&str> = words.flat_map(|words| words.split(' ')).collect();
    if words.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "DELETE FROM vocabulary WHERE shelf = $1 AND word = ANY($2) AND NOT EXISTS
           (SELECT 1 FROM items WHERE array_to_tsvector(string_to_array(words, ' '))
                                 @@ ($3 || quote_literal(word))::tsquery)",
    )
    .bind(shelf)
    .bind(words.into_iter().collect::<Vec<_>>())
    .bind(format!("'{}' & ", owner(shelf)))
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns the words by which an item is found. `n` is the number of items added to the shelf
/// before it.
fn indexed(shelf: i64, n: i64, spaced: &str) -> String {
    let mut words = owner(shelf);
    for size in BLOCKS {
        words.push(' ');
        words.push_str(&block(shelf, size, n / size));
    }
    let (mut different, mut bytes) = (BTreeSet::new(), 0);
    for word in spaced.split_whitespace() {
        if different.insert(word) {
            bytes += word.len();
        }
        if bytes > INDEXED {
            break;
        }
        words.push(' ');
        words.push_str(word);
    }
    words
}
