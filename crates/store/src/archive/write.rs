//! Writes to the archive: adds items and expires those beyond a bound, in one transaction.

use std::path::Path;

use plimsoll_context::Seq;
use plimsoll_core::archive::{ArchivedItem, recall_text, spaced_words};
use plimsoll_core::{ArchiveBounds, SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::archive::read::owner;
use crate::archive::{Archive, ArchiveScope, Body, as_archive, bodies};
use crate::columns::{from_column, to_column};
use crate::connection::overwrite_deleted;
use crate::fault::{self, WorkError};
use crate::lease::Right;

impl Archive {
    /// Stores items. The right to write to the session is held until this is done.
    pub(crate) async fn add(
        &self,
        right: Right,
        of: ArchiveScope,
        items: &[ArchivedItem],
    ) -> Result<(), StoreError> {
        let (items, bounds) = (items.to_vec(), self.options.archive);
        let work = self.open().await?.writer.with(move |connection, path| {
            let written = add(connection, path, &bounds, &of, &items, crate::write::now());
            drop(right);
            written
        });
        work.await.map_err(as_archive)
    }

    /// Removes items of a deleted log: those with the number `next` or a higher one.
    pub(crate) async fn keep_up_to(&self, right: Right, next: Seq) -> Result<(), StoreError> {
        let work = self.open().await?.writer.with(move |connection, _| {
            let kept = keep_up_to(connection, right.session(), next);
            drop(right);
            kept
        });
        work.await.map_err(as_archive)
    }

    /// Removes all items of a session.
    pub(crate) async fn remove(&self, right: Right) -> Result<(), StoreError> {
        if !self.path.exists() {
            return Ok(());
        }
        // Overwrites the removed items, so that they are not readable in free pages.
        let writer = &self.open().await?.writer;
        let overwrite = writer.with(|connection, _| overwrite_deleted(connection));
        overwrite.await.map_err(as_archive)?;
        self.keep_up_to(right, Seq(0)).await
    }
}

/// Adds all items or none. `now` is the caller's time.
fn add(
    connection: &mut Connection,
    path: &Path,
    bounds: &ArchiveBounds,
    of: &ArchiveScope,
    items: &[ArchivedItem],
    now: i64,
) -> Result<(), WorkError> {
    // A transaction that is dropped is rolled back.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let key = key(&transaction, of)?;
    let now = now.max(newest(&transaction)?);
    for item in bodies(items, bounds, &fault::text(path)) {
        let (item, body) = item?;
        remove(&transaction, key, item.seq)?;
        insert(&transaction, key, item, &body, now)?;
    }
    expire(&transaction, bounds, key, now)?;
    forget(&transaction, bounds, key)?;
    Ok(transaction.commit()?)
}

fn keep_up_to(connection: &mut Connection, session: &SessionId, next: Seq) -> rusqlite::Result<()> {
    let find = |connection: &Connection| {
        let mut found = connection.prepare_cached(
            "SELECT items.session, seq FROM items JOIN sessions ON sessions.key = items.session
             WHERE id = ?1 AND seq >= ?2",
        )?;
        let rows = found.query_map(params![session.as_str(), to_column(next.0)], |row| {
            Ok((row.get(0)?, Seq(from_column(row.get(1)?))))
        })?;
        rows.collect::<rusqlite::Result<Vec<(i64, Seq)>>>()
    };
    // Usually there are none, and then nobody has to wait for the write lock.
    if find(connection)?.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (key, seq) in find(&transaction)? {
        remove(&transaction, key, seq)?;
    }
    transaction.commit()
}

/// Returns the key of the session. Items of another log with the same name are removed.
fn key(transaction: &Transaction<'_>, of: &ArchiveScope) -> rusqlite::Result<i64> {
    let session = of.session.as_str();
    transaction
        .prepare_cached("INSERT INTO sessions (id) VALUES (?1) ON CONFLICT DO NOTHING")?
        .execute([session])?;
    let (key, log): (i64, Option<Vec<u8>>) = transaction
        .prepare_cached("SELECT key, log FROM sessions WHERE id = ?1")?
        .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if log == of.born {
        return Ok(key);
    }
    if log.is_some() {
        for sql in [
            "UPDATE items SET held = NULL WHERE session = ?1 AND held IS NOT NULL",
            "DELETE FROM items WHERE session = ?1",
            "UPDATE sessions SET forgotten = -1 WHERE key = ?1",
        ] {
            transaction.prepare_cached(sql)?.execute([key])?;
        }
    }
    transaction
        .prepare_cached("UPDATE sessions SET log = ?2 WHERE key = ?1")?
        .execute(params![key, of.born])?;
    Ok(key)
}

/// Removes an item whose number is reused. The number may belong to another item: of a log that was
/// moved away, or of a log end that was lost in a power failure. If it is the same item, it may
/// have expired, or be so old that the bounds would expire it now.
fn remove(transaction: &Transaction<'_>, key: i64, seq: Seq) -> rusqlite::Result<()> {
    let row = transaction
        .prepare_cached("SELECT row FROM items WHERE session = ?1 AND seq = ?2")?
        .query_row(params![key, to_column(seq.0)], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(row) = row else {
        return Ok(());
    };
    let forgotten: i64 = transaction
        .prepare_cached("SELECT forgotten FROM sessions WHERE key = ?1")?
        .query_row([key], |row| row.get(0))?;
    for sql in [
        "UPDATE items SET held = NULL WHERE row = ?1",
        "DELETE FROM items WHERE row = ?1",
    ] {
        transaction.prepare_cached(sql)?.execute([row])?;
    }
    // The item is replaced, not forgotten.
    transaction
        .prepare_cached("UPDATE sessions SET forgotten = ?2 WHERE key = ?1")?
        .execute([key, forgotten])?;
    Ok(())
}

fn insert(
    transaction: &Transaction<'_>,
    key: i64,
    item: &ArchivedItem,
    body: &Body,
    now: i64,
) -> rusqlite::Result<()> {
    let text = recall_text(&item.message);
    transaction
        .prepare_cached(
            "INSERT INTO items (session, seq, kind, tool, call, bytes, left_at, why, held)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            key,
            to_column(item.seq.0),
            item.kind().as_str(),
            item.tool,
            item.call().map(|call| call.0.as_str()),
            to_column(text.len() as u64),
            now,
            item.why,
            to_column(body.json.len() as u64),
        ])?;
    let row = transaction.last_insert_rowid();
    transaction
        .prepare_cached("INSERT INTO bodies (row, message, sum) VALUES (?1, ?2, ?3)")?
        .execute(params![row, body.json, body.sum])?;
    transaction
        .prepare_cached("INSERT INTO words (rowid, owner, text) VALUES (?1, ?2, ?3)")?
        .execute(params![row, owner(key), spaced_words(&text)])?;
    Ok(())
}

/// Returns the eviction time of the newest item, so that a clock that was set back does not make a
/// new item older than others.
fn newest(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached("SELECT left_at FROM items ORDER BY row DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()
        .map(|left| left.unwrap_or(0))
}

/// Expires the oldest items until every bound holds.
fn expire(
    transaction: &Transaction<'_>,
    bounds: &ArchiveBounds,
    key: i64,
    now: i64,
) -> rusqlite::Result<()> {
    let mut of_session = transaction.prepare_cached(
        "UPDATE items SET held = NULL WHERE row =
         (SELECT row FROM items WHERE session = ?1 AND held IS NOT NULL ORDER BY row LIMIT 1)",
    )?;
    let mut counts =
        transaction.prepare_cached("SELECT bytes, held FROM sessions WHERE key = ?1")?;
    loop {
        let (bytes, held): (i64, i64) =
            counts.query_row([key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let within =
            bytes <= to_column(bounds.session_bytes.0) && held <= to_column(bounds.session_items);
        if within || of_session.execute([key])? == 0 {
            break;
        }
    }
    let mut all = transaction.prepare_cached("SELECT coalesce(sum(bytes), 0) FROM sessions")?;
    let mut total: i64 = all.query_row([], |row| row.get(0))?;
    let mut oldest = transaction.prepare_cached(
        "SELECT row, left_at, held FROM items WHERE held IS NOT NULL ORDER BY row LIMIT 1",
    )?;
    let mut let_go = transaction.prepare_cached("UPDATE items SET held = NULL WHERE row = ?1")?;
    loop {
        let found = oldest.query_row([], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
            ))
        });
        let Some((row, left, held)) = found.optional()? else {
            return Ok(());
        };
        let (left, now) = (
            u64::try_from(left).unwrap_or(0),
            u64::try_from(now).unwrap_or(0),
        );
        if total <= to_column(bounds.bytes.0) && !bounds.is_too_old(left, now) {
            return Ok(());
        }
        let_go.execute([row])?;
        total -= held;
    }
}

/// Forgets the items of this session that expired longest ago. Other sessions are checked when they
/// are written to.
fn forget(transaction: &Transaction<'_>, bounds: &ArchiveBounds, key: i64) -> rusqlite::Result<()> {
    let expired: i64 = transaction
        .prepare_cached("SELECT expired FROM sessions WHERE key = ?1")?
        .query_row([key], |row| row.get(0))?;
    let over = expired.saturating_sub(to_column(bounds.expired_items));
    if over > 0 {
        transaction
            .prepare_cached(
                "DELETE FROM items WHERE row IN (SELECT row FROM items
                 WHERE session = ?1 AND held IS NULL ORDER BY row LIMIT ?2)",
            )?
            .execute([key, over])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use plimsoll_context::{Bytes, CallId, Message};
    use plimsoll_core::archive::RecallError;
    use plimsoll_core::{RecallId, RecallKey};

    use super::*;
    use crate::archive::ArchiveScopes;
    use crate::archive::read::View;
    use crate::schema;

    struct File {
        connection: Connection,
        session: SessionId,
        bounds: ArchiveBounds,
    }

    impl File {
        fn new(bounds: ArchiveBounds) -> Self {
            let mut connection = Connection::open_in_memory().unwrap();
            schema::migrate(&mut connection, Path::new("a.db"), schema::ARCHIVE).unwrap();
            Self {
                connection,
                session: SessionId::new("s").unwrap(),
                bounds,
            }
        }

        fn places(&self) -> ArchiveScopes {
            ArchiveScopes::new(self.session.clone(), Vec::new())
        }

        fn take(&mut self, seq: u64, now: i64) {
            let item = ArchivedItem {
                seq: Seq(seq),
                message: Arc::new(Message::result(CallId("c".to_owned()), "some text")),
                tool: None,
                why: "test".to_owned(),
            };
            let path = Path::new("a.db");
            let (bounds, own) = (self.bounds, self.places().own);
            add(&mut self.connection, path, &bounds, &own, &[item], now).unwrap();
        }

        fn has(&mut self, seq: u64, now: u64) -> bool {
            let key = RecallKey::Id(RecallId(Seq(seq)));
            let path = Path::new("a.db");
            let (bounds, places) = (self.bounds, self.places());
            let view = View::open(&mut self.connection, path, &bounds, &places, now).unwrap();
            match view.recall(&key) {
                Ok(_) => true,
                Err(RecallError::Expired(_)) => false,
                Err(other) => panic!("{other}"),
            }
        }

        fn count(&self, sql: &str) -> i64 {
            self.connection
                .query_row(sql, [], |row| row.get(0))
                .unwrap()
        }
    }

    #[test]
    fn what_is_too_old_has_expired_before_and_after_it_is_let_go() {
        let mut file = File::new(ArchiveBounds {
            age: Duration::from_secs(10),
            ..ArchiveBounds::default()
        });
        file.take(0, 100);
        file.take(1, 105);
        assert!(file.has(0, 110) && file.has(1, 110));
        assert!(!file.has(0, 111) && file.has(1, 111));
        assert_eq!(file.count("SELECT count(*) FROM bodies"), 2);
        file.take(2, 111);
        assert_eq!(file.count("SELECT count(*) FROM bodies"), 2);
        assert!(!file.has(0, 111) && file.has(1, 111) && file.has(2, 111));
    }

    #[test]
    fn what_is_too_old_is_held_again_where_it_is_archived_again() {
        let mut file = File::new(ArchiveBounds {
            age: Duration::from_secs(10),
            ..ArchiveBounds::default()
        });
        file.take(0, 100);
        file.take(0, 200);
        assert!(file.has(0, 200));
        assert_eq!(file.count("SELECT count(*) FROM bodies"), 1);
        assert_eq!(file.count("SELECT count(*) FROM items"), 1);
        assert_eq!(file.count("SELECT forgotten FROM sessions"), -1);
    }

    #[test]
    fn a_clock_that_is_set_back_lets_nothing_go_early() {
        let mut file = File::new(ArchiveBounds {
            age: Duration::from_secs(10),
            ..ArchiveBounds::default()
        });
        file.take(0, 100);
        file.take(1, 5);
        file.take(2, 101);
        assert!((0..3).all(|seq| file.has(seq, 105)));
        assert_eq!(file.count("SELECT left_at FROM items WHERE seq = 1"), 100);
    }

    #[test]
    fn a_full_disk_takes_nothing_in_and_loses_nothing() {
        let mut file = File::new(ArchiveBounds::default());
        file.take(0, 1);
        let pages = file.count("PRAGMA page_count") + 2;
        let limit = file
            .connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
        limit.unwrap();
        let items = [(1, 10), (2, 1_000_000)].map(|(seq, length)| ArchivedItem {
            seq: Seq(seq),
            message: Arc::new(Message::user("x".repeat(length))),
            tool: None,
            why: "test".to_owned(),
        });
        let path = Path::new("a.db");
        let (bounds, own) = (file.bounds, file.places().own);
        let error = add(&mut file.connection, path, &bounds, &own, &items, 1)
            .unwrap_err()
            .at(path);
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        assert!(file.has(0, 1));
        assert_eq!(file.count("SELECT count(*) FROM items"), 1);
        file.take(3, 1);
        assert!(file.has(3, 1));
    }

    #[test]
    fn what_expires_leaves_nothing_but_a_line_and_the_sums_are_right() {
        let mut file = File::new(ArchiveBounds {
            session_items: 3,
            expired_items: 3,
            bytes: Bytes(1_000_000),
            ..ArchiveBounds::default()
        });
        for seq in 0..20 {
            file.take(seq, 1);
        }
        // An item that is archived again, held or expired, counts once.
        for seq in [18, 16, 19, 17, 18, 19] {
            file.take(seq, 1);
        }
        assert_eq!(file.count("SELECT count(*) FROM bodies"), 3);
        assert_eq!(
            file.count("SELECT count(*) FROM words WHERE words MATCH 'text'"),
            3
        );
        assert_eq!(file.count("SELECT count(*) FROM items"), 6);
        for sums in [
            "SELECT bytes - (SELECT sum(held) FROM items) FROM sessions",
            "SELECT bytes - (SELECT sum(length(message)) FROM bodies) FROM sessions",
            "SELECT held - 3 FROM sessions",
            "SELECT expired - 3 FROM sessions",
            "SELECT forgotten - 13 FROM sessions",
        ] {
            assert_eq!(file.count(sums), 0, "{sums}");
        }
        let kept = file
            .connection
            .execute("DELETE FROM items WHERE held IS NOT NULL", []);
        assert!(kept.unwrap_err().to_string().contains("expires before"));
    }
}
