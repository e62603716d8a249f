//! Appends to a log, and creates and renames sessions, in one transaction each, all or nothing. This is
//! the only code that writes logs.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_agent::Entry;
use plimsoll_context::Bytes;
use plimsoll_core::{Fork, ForkFault, SessionId, SessionInfo, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::columns::{entry_sum, to_column};
use crate::fault::{self, WorkError};
use crate::lease::Right;
use crate::log::Raw;
use crate::read::lineage;
use crate::settings::MAX_SETTINGS;

/// Maximum size of one entry as JSON. Equal to the input limit of the filters, and far above a
/// message that any model accepts.
pub const MAX_ENTRY: Bytes = Bytes(256 << 20);

/// The state of a session before the next append.
struct Head {
    key: i64,
    entries: i64,
    updated: i64,
    has_title: bool,
}

/// Appends entries, with the current time.
pub(crate) fn append(
    connection: &mut Connection,
    path: &Path,
    right: &Right,
    entries: &[Entry],
) -> Result<(), WorkError> {
    let (lines, title) = (to_lines(entries, path, now())?, title_of(entries));
    // A dropped transaction is rolled back, so any failure leaves the log unchanged.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    right.check()?;
    add(&transaction, right.session(), &lines, title.as_deref())?;
    Ok(transaction.commit()?)
}

/// Creates a session that shares the first entries of another, without copying them, and appends
/// its own entries.
pub(crate) fn fork(
    connection: &mut Connection,
    path: &Path,
    right: &Right,
    of: &Fork,
    own: &[Entry],
) -> Result<(), WorkError> {
    let session = right.session();
    let (lines, title) = (to_lines(own, path, now())?, title_of(own));
    // Nobody appends to either session in the meantime, and a failure leaves nothing behind.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    right.check()?;
    if head(&transaction, session)?.is_some() {
        let session = session.clone();
        return Err(of.refused(ForkFault::Taken { session }).into());
    }
    let kin = lineage(&transaction, &of.from)?;
    let Some(other) = kin.first() else {
        return Err(of.refused(ForkFault::Unknown).into());
    };
    of.check(other.entries, kin.len() as u64 - 1)?;
    share(&transaction, session, of)?;
    add(&transaction, session, &lines, title.as_deref())?;
    Ok(transaction.commit()?)
}

/// Adds the row of a fork. Its title and times are those of its parent.
fn share(transaction: &Transaction<'_>, session: &SessionId, of: &Fork) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO sessions (id, created, updated, title, entries, newest, parent, shared)
             SELECT ?1, created, updated, title, ?3, (SELECT ifnull(max(row), 0) FROM entries), key, ?3
             FROM sessions WHERE id = ?2",
        )?
        .execute(params![
            session.as_str(),
            of.from.as_str(),
            to_column(of.entries)
        ])?;
    Ok(())
}

/// Creates a session with the data of another file and returns its key. The numbers and times of
/// `lines` are those of its own entries, which follow the shared ones.
pub(crate) fn restore<'a>(
    transaction: &Transaction<'_>,
    info: &SessionInfo,
    settings: Option<&str>,
    lines: impl IntoIterator<Item = (u64, u64, &'a str)>,
) -> rusqlite::Result<i64> {
    let (session, fork) = (info.id.as_str(), info.fork.as_ref());
    transaction.execute(
        "INSERT INTO sessions
           (id, created, updated, title, entries, newest, parent, shared)
         VALUES (?1, ?2, ?3, nullif(?4, ''), ?6, 0, (SELECT key FROM sessions WHERE id = ?5), ?6)",
        params![
            session,
            to_column(info.created),
            to_column(info.updated),
            info.title,
            fork.map(|fork| fork.from.as_str()),
            to_column(fork.map_or(0, |fork| fork.entries)),
        ],
    )?;
    let (key, mut last) = (transaction.last_insert_rowid(), 0);
    for (n, at, json) in lines {
        last = last.max(at);
        insert(transaction, key, to_column(n), to_column(last), json)?;
    }
    transaction.execute("DELETE FROM settings WHERE session = ?1", [session])?;
    if let Some(text) = settings.filter(|text| text.chars().count() <= MAX_SETTINGS) {
        transaction.execute(
            "INSERT INTO settings (session, text, at) VALUES (?1, ?2, ?3)",
            params![session, text, to_column(info.updated)],
        )?;
    }
    Ok(key)
}

/// Adds the next entry of a session, with its number and time.
pub(crate) fn insert_raw(
    transaction: &Transaction<'_>,
    key: i64,
    raw: &Raw,
) -> rusqlite::Result<()> {
    let json = std::str::from_utf8(&raw.json)?;
    insert(transaction, key, to_column(raw.n), to_column(raw.at), json)
}

/// Changes the title of a session. Returns `false` if the session does not exist.
pub(crate) fn rename(
    connection: &Connection,
    session: &SessionId,
    title: &str,
) -> rusqlite::Result<bool> {
    let rows = connection.execute(
        "UPDATE sessions SET title = ?2 WHERE id = ?1",
        params![session.as_str(), title],
    )?;
    Ok(rows > 0)
}

/// Sets the order of the list. The most recently written session is the last of `order`.
pub(crate) fn sort<'a>(
    transaction: &Transaction<'_>,
    order: impl ExactSizeIterator<Item = &'a SessionId>,
) -> rusqlite::Result<()> {
    for (place, id) in (1 - to_column(order.len() as u64)..).zip(order) {
        transaction.execute(
            "UPDATE sessions SET newest = ?2 + (SELECT ifnull(max(row), 0) FROM entries)
             WHERE id = ?1",
            params![id.as_str(), place],
        )?;
    }
    Ok(())
}

fn add(
    transaction: &Transaction<'_>,
    session: &SessionId,
    lines: &[(i64, String)],
    title: Option<&str>,
) -> rusqlite::Result<()> {
    let head = match head(transaction, session)? {
        Some(head) => head,
        None => begin(
            transaction,
            session,
            lines.first().map_or_else(now, |line| line.0),
        )?,
    };
    let mut at = head.updated;
    if let (Some(title), false) = (title, head.has_title) {
        transaction
            .prepare_cached("UPDATE sessions SET title = ?2 WHERE key = ?1")?
            .execute(params![head.key, title])?;
    }
    for (n, (time, json)) in (head.entries.saturating_add(1)..).zip(lines) {
        // A clock that was set back does not make the times of a log decrease.
        at = at.max(*time);
        insert(transaction, head.key, n, at, json)?;
    }
    Ok(())
}

/// Adds the next entry of a session.
fn insert(
    transaction: &Transaction<'_>,
    key: i64,
    n: i64,
    at: i64,
    json: &str,
) -> rusqlite::Result<()> {
    let sum = entry_sum(n, at, json.as_bytes());
    transaction
        .prepare_cached(
            "INSERT INTO entries (session, n, at, json, sum) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![key, n, at, json, sum])?;
    Ok(())
}

/// Checks whether there is a session of that name.
pub(crate) fn exists(transaction: &Transaction<'_>, session: &SessionId) -> rusqlite::Result<bool> {
    head(transaction, session).map(|head| head.is_some())
}

fn head(transaction: &Transaction<'_>, session: &SessionId) -> rusqlite::Result<Option<Head>> {
    transaction
        .prepare_cached(
            "SELECT key, entries, updated, title IS NOT NULL FROM sessions WHERE id = ?1",
        )?
        .query_row([session.as_str()], |row| {
            Ok(Head {
                key: row.get(0)?,
                entries: row.get(1)?,
                updated: row.get(2)?,
                has_title: row.get(3)?,
            })
        })
        .optional()
}

fn begin(transaction: &Transaction<'_>, session: &SessionId, now: i64) -> rusqlite::Result<Head> {
    transaction
        .prepare_cached(
            "INSERT INTO sessions (id, created, updated, entries, newest) VALUES (?1, ?2, ?2, 0, 0)",
        )?
        .execute(params![session.as_str(), now])?;
    Ok(Head {
        key: transaction.last_insert_rowid(),
        entries: 0,
        updated: now,
        has_title: false,
    })
}

pub(crate) fn to_lines(
    entries: &[Entry],
    path: &Path,
    at: i64,
) -> Result<Vec<(i64, String)>, StoreError> {
    let lines = entries.iter().map(|entry| Ok((at, to_json(entry, path)?)));
    lines.collect()
}

/// Returns the title for a log with these entries, if they determine one.
pub(crate) fn title_of(entries: &[Entry]) -> Option<String> {
    let has = entries.iter().any(is_user_message);
    has.then(|| SessionInfo::title_of(entries))
}

fn to_json(entry: &Entry, path: &Path) -> Result<String, StoreError> {
    let json = serde_json::to_string(entry)
        .map_err(|error| fault::other(path, format!("an entry cannot be written: {error}")))?;
    sized(json, path)
}

fn sized(json: String, path: &Path) -> Result<String, StoreError> {
    if json.len() as u64 > MAX_ENTRY.0 {
        let bytes = json.len();
        return Err(fault::other(
            path,
            format!(
                "an entry of {bytes} bytes is more than the {MAX_ENTRY} that one may have; \
                 make the message shorter"
            ),
        ));
    }
    Ok(json)
}

fn is_user_message(entry: &Entry) -> bool {
    matches!(entry, Entry::Message { message, .. } if message.is_user())
}

/// Returns the seconds since 1970, or 0 if the clock is set to an earlier time.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(connection: &mut Connection, line: (i64, &str), title: Option<&str>) {
        let session = SessionId::new("s").unwrap();
        let transaction = connection.transaction().unwrap();
        let line = [(line.0, line.1.to_owned())];
        add(&transaction, &session, &line, title).unwrap();
        transaction.commit().unwrap();
    }

    fn times(connection: &Connection) -> Vec<i64> {
        let mut statement = connection
            .prepare("SELECT at FROM entries ORDER BY row")
            .unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_turn_a_log_around() {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::schema::create(&connection).unwrap();
        for now in [1_000, 1_001, 5, 1_002] {
            write(&mut connection, (now, "{}"), None);
        }
        assert_eq!(times(&connection), [1_000, 1_001, 1_001, 1_002]);
    }

    #[test]
    fn the_title_is_the_first_that_a_user_says_and_stays() {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::schema::create(&connection).unwrap();
        for title in [None, Some("first"), None, Some("second")] {
            write(&mut connection, (1, "{}"), title);
        }
        let title: String = connection
            .query_row("SELECT title FROM sessions", [], |row| row.get(0))
            .unwrap();
        assert_eq!(title, "first");
    }
}
