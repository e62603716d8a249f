//! Reads every row of a store and reports the entries that cannot be read. Changes nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use plimsoll_context::Bytes;
use plimsoll_core::{MAX_FORK_DEPTH, SessionId, SessionInfo, StoreError};
use rusqlite::{Connection, Error, ErrorCode, Row};
use serde::Serialize;

use crate::columns::{self, from_column};
use crate::connection::{self, blocking};
use crate::fault::{self, WorkError};
use crate::log::{ALTERED, Raw};
use crate::options::Options;
use crate::read;
use crate::schema::{self, StoreFileState};
use crate::sqlite::{FILE, SqliteStore};

/// Maximum number of faults reported for one session. Further faults are only counted.
pub const MAX_FAULTS: usize = 1_000;

/// The number of successive unreadable keys after which a table is taken to be at its end. A
/// damaged page hides fewer rows, even one that only refers to other pages.
const MAX_UNREADABLE: u32 = 100_000;

const SESSIONS: &str = "SELECT key, id, created, updated, title, entries, newest, parent, shared
    FROM sessions NOT INDEXED WHERE key > ?1 ORDER BY key";
const ENTRIES: &str = "SELECT row, session, n, at, json, sum FROM entries NOT INDEXED
    WHERE row > ?1 ORDER BY row";

const MISSING: &str = "it is missing";
const HIDDEN: &str = "its page is damaged";
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
    /// The unreadable or altered entries, in order; at most [`MAX_FAULTS`].
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
        if self.faults.is_empty() {
            self.readable = first.saturating_sub(1);
        }
        self.lost += last.saturating_sub(first).saturating_add(1);
        let is_full = self.faults.len() >= MAX_FAULTS;
        match self.faults.last_mut() {
            Some(fault) if fault.last.saturating_add(1) == first && fault.why == why => {
                fault.last = last;
            }
            _ if is_full => {}
            _ => self.faults.push(EntryFault {
                first,
                last,
                why: why.to_owned(),
            }),
        }
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
            let connection = open_unchanged(&at)?;
            let checked = check(&connection, &at);
            checked.map_err(|error| error.at(&at))
        };
        blocking(&path, check).await
    }
}

fn check(connection: &Connection, path: &Path) -> Result<CheckedStore, WorkError> {
    // Sessions that are written meanwhile are checked as they were at the beginning.
    let moment = connection.unchecked_transaction()?;
    let logs = LogCheck::run(&moment, path, |_, _, _| Ok(()))?;
    let verdict = moment.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    let is_damaged = match verdict {
        Ok(verdict) => verdict != "ok",
        Err(error) if is_damage(&error) => true,
        Err(error) => return Err(error.into()),
    };
    let sessions = newest_first(logs).into_iter().map(|(_, log)| log.checked);
    Ok(CheckedStore {
        sessions: sessions.collect(),
        is_damaged,
    })
}

/// Opens the file of a store for reading, without creating or changing anything.
pub(crate) fn open_unchanged(path: &Path) -> Result<Connection, StoreError> {
    if !path.exists() {
        return Err(fault::other(path, "there is no store"));
    }
    let options = Options::default();
    let mut connection = connection::observer(path, &options)?;
    let mut state = schema::check(&connection, path, schema::LOG);
    if let Err(StoreError::Full { .. } | StoreError::Io { .. }) = state {
        drop(connection);
        connection = connection::alone(path, &options)?;
        state = schema::check(&connection, path, schema::LOG);
    }
    match state {
        Ok(StoreFileState::Store) => Ok(connection),
        Ok(StoreFileState::New) => Err(fault::other(path, "there is no store")),
        Ok(StoreFileState::Older) => {
            let why = "it has an older format; list its sessions once, which updates it";
            Err(fault::other(path, why))
        }
        Err(StoreError::Corrupt { why, .. }) => Err(unreadable(path, &why)),
        Err(StoreError::Damaged { .. }) => Err(unreadable(path, "it is damaged inside")),
        Err(error) => Err(error),
    }
}

fn unreadable(path: &Path, why: &str) -> StoreError {
    let why = format!(
        "{why}, and no session can be found; `sqlite3 {FILE} .recover` may still find rows"
    );
    fault::corrupt(path, why)
}

/// A session while the rows of a store are read.
pub(crate) struct LogCheck {
    pub(crate) checked: CheckedSession,
    pub(crate) info: SessionInfo,
    /// The key of the session that it was forked from, and the number of shared entries.
    pub(crate) parent: Option<(i64, u64)>,
    /// The row of its last entry.
    newest: i64,
    /// The number of its next entry. `None` until its first own one was read.
    next: Option<u64>,
}

pub(crate) type Logs = BTreeMap<i64, LogCheck>;

impl LogCheck {
    /// Reads all rows by their keys, and calls `each` with every intact entry and the key of its
    /// session: in the order in which they were written, so an entry follows those that it shares.
    ///
    /// A row that cannot be read costs only itself. It is a fault of its session before `each` is
    /// called with a later entry.
    pub(crate) fn run(
        connection: &Connection,
        path: &Path,
        mut each: impl FnMut(&Logs, i64, &Raw) -> Result<(), WorkError>,
    ) -> Result<Logs, WorkError> {
        let mut logs = sessions(connection)?;
        let parse = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, read::raw(row, 2)?));
        let gap = rows(connection, ENTRIES, parse, |(row, key, (raw, sum)), gap| {
            begin(&mut logs, key, gap);
            let Some(log) = logs.get_mut(&key) else {
                return Ok(());
            };
            log.newest = row;
            if log.add(&raw, sum, path, gap) {
                each(&logs, key, &raw)
            } else {
                Ok(())
            }
        })?;
        let keys: Vec<i64> = logs.keys().copied().collect();
        for key in keys {
            begin(&mut logs, key, gap);
            if let Some(log) = logs.get_mut(&key) {
                log.end(gap);
            }
        }
        Ok(logs)
    }

    /// A session whose row is lost, and its name with it.
    fn lost(key: i64) -> Option<Self> {
        let id = SessionId::new(format!("lost-{key}")).ok()?;
        let mut log = Self::of(SessionInfo {
            id,
            created: 0,
            updated: 0,
            entries: 0,
            bytes: Bytes(0),
            title: String::new(),
            fork: None,
        });
        log.checked.row_fault = Some(ROW_LOST.to_owned());
        Some(log)
    }

    fn of(info: SessionInfo) -> Self {
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
            next: None,
        }
    }

    /// Takes the next row. Returns `true` if the entry is intact.
    fn add(&mut self, raw: &Raw, sum: i64, path: &Path, gap: &str) -> bool {
        let next = self.next.unwrap_or(1);
        // Rows are written in order, so this is an older version of one.
        if raw.n < next {
            return false;
        }
        if raw.n > next {
            self.checked.note(next, raw.n - 1, gap);
        }
        self.next = Some(raw.n.saturating_add(1));
        self.checked.entries = self.checked.entries.max(raw.n);
        let why = match raw.parse(path, &self.checked.id) {
            _ if !raw.matches(sum) => ALTERED.to_owned(),
            Ok(_) => return true,
            Err(StoreError::BadEntry { why, .. }) => why,
            Err(error) => error.to_string(),
        };
        self.checked.note(raw.n, raw.n, &why);
        false
    }

    fn end(&mut self, gap: &str) {
        let next = self.next.unwrap_or(1);
        let counted = self.info.entries;
        if next <= counted {
            self.checked.note(next, counted, gap);
        } else if next > counted.saturating_add(1) && self.checked.row_fault.is_none() {
            self.checked.row_fault = Some(ROW_IS_SHORT.to_owned());
        }
        if self.checked.faults.is_empty() {
            self.checked.readable = self.checked.entries;
        }
    }
}

/// Returns the sessions with their keys, most recently written first.
pub(crate) fn newest_first(logs: Logs) -> Vec<(i64, LogCheck)> {
    let mut logs: Vec<(i64, LogCheck)> = logs.into_iter().collect();
    logs.sort_by_key(|(key, log)| Reverse((log.newest, *key)));
    logs
}

/// Prepares a session for its first own entry: it inherits the faults of the entries that it shares.
/// Does nothing if the session has begun.
fn begin(logs: &mut Logs, key: i64, gap: &str) {
    if let Entry::Vacant(place) = logs.entry(key)
        && let Some(log) = LogCheck::lost(key)
    {
        place.insert(log);
    }
    let Some(log) = logs.get_mut(&key).filter(|log| log.next.is_none()) else {
        return;
    };
    let Some((parent, shared)) = log.parent else {
        log.next = Some(1);
        return;
    };
    log.next = Some(shared.saturating_add(1));
    // A parent is older and comes first, but for one without entries of its own.
    begin(logs, parent, gap);
    let (faults, next) = logs.get(&parent).map_or((Vec::new(), 1), |parent| {
        (parent.checked.faults.clone(), parent.next.unwrap_or(1))
    });
    if let Some(log) = logs.get_mut(&key) {
        for fault in faults.iter().filter(|fault| fault.first <= shared) {
            log.checked
                .note(fault.first, fault.last.min(shared), &fault.why);
        }
        if next <= shared {
            log.checked.note(next, shared, gap);
        }
    }
}

/// Returns the sessions whose rows can be read.
fn sessions(connection: &Connection) -> Result<Logs, WorkError> {
    let mut logs = Logs::new();
    let mut depths: BTreeMap<i64, u64> = BTreeMap::new();
    let parse = |row: &Row<'_>| {
        let mut log = LogCheck::of(SessionInfo {
            id: columns::name(row, 1)?,
            created: from_column(row.get(2)?),
            updated: from_column(row.get(3)?),
            title: row.get::<_, Option<String>>(4)?.unwrap_or_default(),
            entries: from_column(row.get(5)?),
            bytes: Bytes(0),
            fork: None,
        });
        log.newest = row.get(6)?;
        let shared = from_column(row.get(8)?);
        let parent = row.get::<_, Option<i64>>(7)?;
        log.parent = parent.map(|parent| (parent, shared));
        Ok((row.get::<_, i64>(0)?, log))
    };
    rows(connection, SESSIONS, parse, |(key, mut log), _| {
        // A parent is older, and has few ancestors, unless the row was altered.
        let depth = |(parent, _): (i64, u64)| {
            let depth = depths.get(&parent).map_or(1, |depth| depth + 1);
            (parent < key && depth <= MAX_FORK_DEPTH).then_some(depth)
        };
        match log.parent.and_then(depth) {
            Some(depth) => drop(depths.insert(key, depth)),
            None => log.parent = None,
        }
        logs.insert(key, log);
        Ok(())
    })?;
    Ok(logs)
}

/// Calls `each` with every row of a table that can be read, in the order of the keys, and with the
/// reason why others are missing, as far as it is known by then. Returns the reason.
///
/// `sql` selects the rows after a key, which is their first column.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    parse: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    mut each: impl FnMut(T, &'static str) -> Result<(), WorkError>,
) -> Result<&'static str, WorkError> {
    let mut statement = connection.prepare(sql)?;
    let (mut after, mut unreadable, mut gap) = (i64::MIN, 0, MISSING);
    while unreadable < MAX_UNREADABLE && after < i64::MAX {
        let mut rows = statement.query([after])?;
        let error = loop {
            match rows.next() {
                Ok(Some(row)) => match row.get(0).map(|key| (key, parse(row))) {
                    Ok((key, Ok(parsed))) => {
                        (after, unreadable) = (key, 0);
                        each(parsed, gap)?;
                    }
                    Ok((key, Err(_))) => (after, gap) = (key, HIDDEN),
                    Err(error) => break error,
                },
                Ok(None) => return Ok(gap),
                Err(error) => break error,
            }
        };
        if !is_damage(&error) {
            return Err(error.into());
        }
        // The row with the next key, or its page, cannot be read.
        (after, unreadable, gap) = (after.max(0).saturating_add(1), unreadable + 1, HIDDEN);
    }
    Ok(gap)
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
