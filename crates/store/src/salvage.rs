//! Creates a new store from the rows of a damaged one that SQLite still reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plimsoll_core::{Fork, SessionInfo, StoreError};
use rusqlite::{Connection, Transaction};

use crate::check::{CheckedSession, Logs, ScannedLog, entries, newest_first, unreadable};
use crate::connection::{self, blocking, make_folder};
use crate::fault::{self, WorkError};
use crate::options::Options;
use crate::sqlite::{FILE, SqliteStore};
use crate::write;

impl SqliteStore {
    /// Creates a new store in the folder `to` from the store in `from`, row by row, as far as SQLite
    /// reads them: sessions with their forks, titles, times and settings, in the same order.
    ///
    /// A log ends before its first unreadable or altered entry. A fork shares the entries that its parent
    /// still has. Nothing in `from` is changed: the write-ahead log stays unchanged, too. The kept
    /// contents of files are not copied.
    ///
    /// # Errors
    /// If the folder `to` is not empty, if the new store cannot be written, or if SQLite cannot read
    /// the schema of the store in `from`. `to` does not exist then, unless it was not empty.
    pub async fn salvage(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<Vec<CheckedSession>, StoreError> {
        let path = from.as_ref().join(FILE);
        let (at, to) = (path.clone(), to.as_ref().to_path_buf());
        blocking(&path, move || {
            let damaged = connection::observer(&at);
            let damaged = damaged.map_err(|error| unreadable(&at, error))?;
            let moment = damaged.unchecked_transaction();
            let moment = moment.map_err(fault::sqlite(&at))?;
            let logs = ScannedLog::all(&moment, &at);
            let logs = logs.map_err(|error| unreadable(&at, error.at(&at)))?;
            make_folder(&to)?;
            let mut files = fs::read_dir(&to).map_err(fault::io(&to))?;
            if files.next().is_some() {
                let why = "it is not empty; choose another folder for the new store";
                return Err(fault::other(&to, why));
            }
            let salvaged = salvage(&moment, &logs, &to);
            if salvaged.is_err() {
                let _ = fs::remove_dir_all(&to);
            }
            salvaged
        })
        .await
    }
}

/// Copies the readable rows into a store in the folder `to`.
fn salvage(
    damaged: &Connection,
    logs: &Logs,
    to: &Path,
) -> Result<Vec<CheckedSession>, StoreError> {
    let path = to.join(FILE);
    connection::create(&path)?;
    let mut target = connection::writer(&path, &Options::default())?;
    let mut work = || -> Result<_, WorkError> {
        let transaction = target.transaction()?;
        let mut copies = BTreeMap::new();
        let begin = |copies: &mut _, key| begin(damaged, &transaction, logs, copies, key);
        entries(damaged, |_, key, raw, _| {
            // What a fork shares has been copied by now.
            begin(&mut copies, key)?;
            let (Some(log), Some(copy)) = (logs.get(&key), copies.get_mut(&key)) else {
                return Ok(());
            };
            if raw.n <= copy.last || raw.n > log.checked.readable {
                return Ok(());
            }
            copy.last = raw.n;
            Ok(write::insert_raw(&transaction, copy.key, &raw)?)
        })?;
        // Sessions and forks without entries of their own.
        for key in logs.keys() {
            begin(&mut copies, *key)?;
        }
        let newest_first = newest_first(logs);
        let order: Vec<_> = newest_first
            .iter()
            .rev()
            .map(|(_, log)| &log.info.id)
            .collect();
        write::sort(&transaction, order.into_iter())?;
        transaction.commit()?;
        let salvaged = newest_first.iter().map(|(_, log)| log.checked.clone());
        Ok(salvaged.collect())
    };
    let salvaged = work().map_err(|error| error.at(&path))?;
    // Moves the write-ahead log into the file.
    let closed = target.close().map_err(|(_, error)| error);
    closed.map_err(fault::sqlite(&path))?;
    Ok(salvaged)
}

/// A session of the new store.
struct CopiedSession {
    key: i64,
    /// The number of the last entry that was copied.
    last: u64,
}

/// Creates a session in the new store, with the entries that it shares, unless it is there.
fn begin(
    damaged: &Connection,
    transaction: &Transaction<'_>,
    logs: &Logs,
    copies: &mut BTreeMap<i64, CopiedSession>,
    key: i64,
) -> Result<(), WorkError> {
    let Some(log) = logs.get(&key).filter(|_| !copies.contains_key(&key)) else {
        return Ok(());
    };
    let mut fork = None;
    if let Some((parent, shared)) = log.parent {
        begin(damaged, transaction, logs, copies, parent)?;
        fork = logs.get(&parent).map(|parent| Fork {
            from: parent.info.id.clone(),
            entries: shared.min(parent.checked.readable),
        });
    }
    let fork = fork.filter(|fork| fork.entries > 0);
    let last = fork.as_ref().map_or(0, |fork| fork.entries);
    let info = SessionInfo {
        fork,
        ..log.info.clone()
    };
    let settings = damaged.query_row(
        "SELECT text FROM settings WHERE session = ?1",
        [info.id.as_str()],
        |row| row.get::<_, String>(0),
    );
    // Settings that cannot be read are those of a session without settings.
    let settings = settings.ok();
    let copy = CopiedSession {
        key: write::restore(transaction, &info, settings.as_deref(), [])?,
        last,
    };
    copies.insert(key, copy);
    Ok(())
}
