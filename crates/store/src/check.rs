//! Reads every row of a store and reports the entries that cannot be read. Changes nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_context::Bytes;
use plimsoll_core::{MAX_FORK_DEPTH, SessionId, SessionInfo, StoreError};
use rusqlite::{Connection, Error, ErrorCode, Row};
use serde::Serialize;

use crate::columns::{self, from_column};
use crate::connection::{self, blocking};
use crate::fault::{self, WorkError};
use crate::log::{ALTERED, Raw};
use crate::read;
use crate::sqlite::{FILE, SqliteStore};

/// The number of successive unreadable keys after which a table is taken to be at its end. A
/// damaged page hides fewer rows, even one that only refers to other pages.
const MAX_UNREADABLE: u32 = 100_000;

const SESSIONS: &str = "SELECT key, id, created, updated, title, entries, newest, parent, shared
    FROM sessions NOT INDEXED WHERE key > ?1 ORDER BY key";
const ENTRIES: &str = "SELECT row, session, n, at, json, sum FROM entries NOT INDEXED
    WHERE row > ?1 ORDER BY row";

const LOST: &str = "it is missing, or its page is damaged";
const ROW_LOST: &str = "the row of the session is lost, so that entries may be missing at its end";
const ROW_IS_SHORT: &str = "the row of the session was altered: it counts fewer entries";

/// The result of checking a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedStore {
    /// The sessions, most recently written first.
    pub sessions: Vec<CheckedSession>,
    /// Whether SQLite finds the file itself damaged. New sessions should not be written to it.
    pub is_damaged: bool,
}

/// The result of checking the log of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedSession {
    /// The name of the session.
    pub id: SessionId,
    /// The number of entries of its log, as far as it is known.
    pub entries: u64,
    /// The number of entries before the first unreadable one; all of them if the log is intact.
    pub readable: u64,
    /// The number of entries that cannot be read.
    pub lost: u64,
    /// The unreadable or altered entries, in order.
    pub faults: Vec<EntryFault>,
    /// The fault of the session's own row. Its readable entries are intact nevertheless.
    pub row_fault: Option<String>,
}

/// Entries of a log that cannot be read, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryFault {
    /// The number of the first entry, from 1.
    pub first: u64,
    /// The number of the last entry, from 1.
    pub last: u64,
    /// The reason, as a sentence for a person.
    #[serde(rename = "fault")]
    pub why: String,
}

impl CheckedSession {
    /// Returns `true` if the log is readable and unaltered.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty() && self.row_fault.is_none()
    }

    fn note(&mut self, first: u64, last: u64, why: &str) {
        if first > last {
            return;
        }
        match self.faults.last_mut() {
            Some(fault) if fault.last + 1 == first && fault.why == why => fault.last = last,
            _ => self.faults.push(EntryFault::of(first, last, why)),
        }
    }

    /// Returns the faults among the first `shared` entries.
    fn faults_until(&self, shared: u64) -> Vec<EntryFault> {
        let faults = self.faults.iter().filter(|fault| fault.first <= shared);
        let mut faults: Vec<EntryFault> = faults.cloned().collect();
        if let Some(fault) = faults.last_mut() {
            fault.last = fault.last.min(shared);
        }
        if self.entries < shared {
            faults.push(EntryFault::of(self.entries + 1, shared, LOST));
        }
        faults
    }
}

impl SqliteStore {
    /// Reads every session of the store in `folder`. Nothing in the folder is changed: the write-ahead
    /// log stays as it is, too.
    ///
    /// # Errors
    /// If there is no store in the folder, or if SQLite cannot read its schema.
    pub async fn check(folder: impl AsRef<Path>) -> Result<CheckedStore, StoreError> {
        let path = folder.as_ref().join(FILE);
        let at = path.clone();
        let check = move || {
            let connection = connection::observer(&at)?;
            check(&connection, &at).map_err(|error| error.at(&at))
        };
        let checked = blocking(&path, check).await;
        checked.map_err(|error| unreadable(&path, error))
    }
}

fn check(connection: &Connection, path: &Path) -> Result<CheckedStore, WorkError> {
    // Sessions that are written meanwhile are checked as they were at the beginning.
    let moment = connection.unchecked_transaction()?;
    let logs = ScannedLog::all(&moment, path)?;
    let verdict = moment.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    let is_damaged = match verdict {
        Ok(verdict) => verdict != "ok",
        Err(error) if is_damage(&error) => true,
        Err(error) => return Err(error.into()),
    };
    let sessions = newest_first(&logs)
        .into_iter()
        .map(|(_, log)| log.checked.clone());
    Ok(CheckedStore {
        sessions: sessions.collect(),
        is_damaged,
    })
}

/// Adds the next step to the error of a file that is damaged as a whole.
pub(crate) fn unreadable(path: &Path, error: StoreError) -> StoreError {
    let why = match error {
        StoreError::Corrupt { why, .. } => why,
        StoreError::Damaged { .. } => "it is damaged inside".to_owned(),
        _ if !path.exists() => return fault::other(path, "there is no store"),
        error => return error,
    };
    let why = format!(
        "{why}, and no session can be found; `sqlite3 {FILE} .recover` may still find rows"
    );
    fault::corrupt(path, why)
}

/// The sessions of a store, by their keys.
pub(crate) type Logs = BTreeMap<i64, ScannedLog>;

/// What the rows of a store say about one session.
#[derive(Debug)]
pub(crate) struct ScannedLog {
    pub(crate) info: SessionInfo,
    /// The session that it was forked from, which is older, and the number of shared entries.
    pub(crate) parent: Option<(i64, u64)>,
    /// The row of its last entry.
    newest: i64,
    /// The number of the last entry that was found.
    last: u64,
    /// The result, which is complete when all rows were read.
    pub(crate) checked: CheckedSession,
}

impl ScannedLog {
    /// Reads all rows.
    pub(crate) fn all(connection: &Connection, path: &Path) -> Result<Logs, WorkError> {
        let tables = connection.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name IN ('sessions', 'entries')",
            [],
            |row| row.get::<_, i64>(0),
        );
        if tables.ok() != Some(2) {
            let path = fault::text(path);
            return Err(StoreError::Damaged { path }.into());
        }
        let mut logs = sessions(connection)?;
        entries(connection, |row, key, raw, sum| {
            if !logs.contains_key(&key) {
                logs.extend(Self::lost(key).map(|lost| (key, lost)));
            }
            if let Some(log) = logs.get_mut(&key) {
                log.newest = row;
                log.add(&raw, sum, path);
            }
            Ok(())
        })?;
        // A parent is older, so its faults are complete before its forks inherit them.
        let keys: Vec<i64> = logs.keys().copied().collect();
        for key in keys {
            let parent = logs.get(&key).and_then(|log| log.parent);
            let inherited = parent.map(|(parent, shared)| match logs.get(&parent) {
                Some(parent) => parent.checked.faults_until(shared),
                None if shared > 0 => vec![EntryFault::of(1, shared, LOST)],
                None => Vec::new(),
            });
            if let Some(log) = logs.get_mut(&key) {
                log.end(inherited.unwrap_or_default());
            }
        }
        Ok(logs)
    }

    fn new(info: SessionInfo) -> Self {
        Self {
            checked: CheckedSession {
                id: info.id.clone(),
                entries: info.entries,
                readable: 0,
                lost: 0,
                faults: Vec::new(),
                row_fault: None,
            },
            info,
            parent: None,
            newest: 0,
            last: 0,
        }
    }

    /// A session whose row is lost, and its name with it.
    fn lost(key: i64) -> Option<Self> {
        let id = SessionId::new(format!("lost-{key}")).ok()?;
        let mut log = Self::new(SessionInfo::of(id, &[]));
        log.checked.row_fault = Some(ROW_LOST.to_owned());
        Some(log)
    }

    /// Takes the next row.
    fn add(&mut self, raw: &Raw, sum: i64, path: &Path) {
        // Rows are written in order, so another one is an older version of an entry.
        if raw.n <= self.last {
            return;
        }
        self.checked.note(self.last + 1, raw.n - 1, LOST);
        self.last = raw.n;
        if self.info.created == 0 {
            self.info.created = raw.at;
        }
        if let Some(why) = fault_of(raw, sum, path, &self.info.id) {
            self.checked.note(raw.n, raw.n, &why);
        }
    }

    fn end(&mut self, mut faults: Vec<EntryFault>) {
        let checked = &mut self.checked;
        if self.last > checked.entries {
            let row_fault = &mut checked.row_fault;
            row_fault.get_or_insert_with(|| ROW_IS_SHORT.to_owned());
        }
        checked.note(self.last + 1, checked.entries, LOST);
        checked.entries = checked.entries.max(self.last);
        faults.append(&mut checked.faults);
        let first = faults.first().map(|fault| fault.first - 1);
        checked.readable = first.unwrap_or(checked.entries);
        let lost = faults.iter().map(|fault| fault.last - fault.first + 1);
        checked.lost = lost.sum();
        checked.faults = faults;
    }
}

impl EntryFault {
    fn of(first: u64, last: u64, why: &str) -> Self {
        let why = why.to_owned();
        Self { first, last, why }
    }
}

/// Returns the reason why an entry cannot be used, if there is one.
fn fault_of(raw: &Raw, sum: i64, path: &Path, session: &SessionId) -> Option<String> {
    if !raw.matches(sum) {
        return Some(ALTERED.to_owned());
    }
    match raw.parse(path, session) {
        Ok(_) => None,
        Err(StoreError::BadEntry { why, .. }) => Some(why),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns the sessions with their keys, most recently written first.
pub(crate) fn newest_first(logs: &Logs) -> Vec<(i64, &ScannedLog)> {
    let mut logs: Vec<_> = logs.iter().map(|(key, log)| (*key, log)).collect();
    logs.sort_by_key(|(key, log)| Reverse((log.newest, *key)));
    logs
}

/// Calls `each` with every entry that can be read: its row, the key of its session, and its checksum.
pub(crate) fn entries(
    connection: &Connection,
    mut each: impl FnMut(i64, i64, Raw, i64) -> Result<(), WorkError>,
) -> Result<(), WorkError> {
    let parse = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, read::raw(row, 2)?));
    rows(connection, ENTRIES, parse, |(row, key, (raw, sum))| {
        each(row, key, raw, sum)
    })
}

/// Returns the sessions whose rows can be read.
fn sessions(connection: &Connection) -> Result<Logs, WorkError> {
    let mut logs = Logs::new();
    let mut depths: BTreeMap<i64, u64> = BTreeMap::new();
    let parse = |row: &Row<'_>| {
        let mut log = ScannedLog::new(SessionInfo {
            id: columns::name(row, 1)?,
            created: from_column(row.get(2)?),
            updated: from_column(row.get(3)?),
            title: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
            entries: from_column(row.get(5)?),
            bytes: Bytes(0),
            fork: None,
        });
        log.newest = row.get(6)?;
        let parent = row.get::<_, Option<i64>>(7)?;
        let shared = from_column(row.get(8)?);
        log.parent = parent.map(|parent| (parent, shared));
        Ok((row.get::<_, i64>(0)?, log))
    };
    rows(connection, SESSIONS, parse, |(key, mut log)| {
        // A parent is older, and has few ancestors, unless the row was altered.
        let depth = |(parent, _): (i64, u64)| {
            let depth = depths.get(&parent).map_or(1, |depth| depth + 1);
            (parent < key && depth <= MAX_FORK_DEPTH).then_some(depth)
        };
        match log.parent.and_then(depth) {
            Some(depth) => drop(depths.insert(key, depth)),
            None => log.parent = None,
        }
        log.last = log.parent.map_or(0, |(_, shared)| shared);
        logs.insert(key, log);
        Ok(())
    })?;
    Ok(logs)
}

/// Calls `each` with every row of a table that can be read, in the order of the keys. `sql` selects the
/// rows after a key, which is their first column.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    parse: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    mut each: impl FnMut(T) -> Result<(), WorkError>,
) -> Result<(), WorkError> {
    let mut statement = connection.prepare(sql)?;
    let (mut after, mut unreadable) = (i64::MIN, 0);
    while unreadable < MAX_UNREADABLE && after < i64::MAX {
        let mut rows = statement.query([after])?;
        let error = loop {
            match rows.next() {
                Ok(Some(row)) => match row.get(0) {
                    Ok(key) => {
                        (after, unreadable) = (key, 0);
                        if let Ok(parsed) = parse(row) {
                            each(parsed)?;
                        }
                    }
                    Err(error) => break error,
                },
                Ok(None) => return Ok(()),
                Err(error) => break error,
            }
        };
        if !is_damage(&error) {
            return Err(error.into());
        }
        // The row with the next key, or its page, cannot be read.
        (after, unreadable) = (after.max(0).saturating_add(1), unreadable + 1);
    }
    Ok(())
}

/// Checks whether an error means that a part of the file cannot be read. Values of a wrong type
/// mean it, too.
fn is_damage(error: &Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure)
        | None => true,
        Some(_) => false,
    }
}
