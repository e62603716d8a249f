//! Creates a new store from the rows of a damaged one that SQLite still reads.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use plimsoll_core::{Fork, SessionInfo, StoreError};
use rusqlite::{Connection, Transaction};
use serde::Serialize;

use crate::check::{CheckedSession, LogCheck, Logs, newest_first, open_unchanged};
use crate::connection::{self, blocking, make_folder};
use crate::export;
use crate::fault::{self, WorkError};
use crate::log::Raw;
use crate::options::Options;
use crate::schema;
use crate::sqlite::{FILE, SqliteStore};
use crate::write;

/// The recovered part of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SalvagedSession {
    /// The log before the damage. The new store has its entries before the first unreadable one.
    #[serde(flatten)]
    pub log: CheckedSession,
    /// The number of its own readable entries after the first unreadable one. They are in
    /// [`Self::file`].
    pub behind: u64,
    /// The file with the entries counted by `behind`, as lines of an export.
    pub file: Option<PathBuf>,
}

impl SqliteStore {
    /// Creates a new store in the folder `to` from the store in `from`, row by row, as far as SQLite
    /// reads them: sessions with their forks, titles, times and settings, in the same order.
    ///
    /// A log ends before its first unreadable or altered entry. The readable entries after it are
    /// written to `ID.after-N.jsonl` in `to`; N is the number of the last entry of the log. A fork
    /// shares the entries that its parent still has. The folder gets its name when everything is
    /// written, and nothing in `from` is changed: the write-ahead log stays unchanged, too. The
    /// kept contents of files are not copied.
    ///
    /// # Errors
    /// If the folder `to` is not empty, if the new store cannot be written, or if SQLite cannot read
    /// the schema of the store in `from`.
    pub async fn salvage(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<Vec<SalvagedSession>, StoreError> {
        let path = from.as_ref().join(FILE);
        let (at, to) = (path.clone(), to.as_ref().to_path_buf());
        blocking(&path, move || {
            let damaged = open_unchanged(&at)?;
            let folder = NewFolder::create(&to)?;
            let salvaged = salvage(&damaged, &at, &folder)?;
            folder.publish()?;
            Ok(salvaged)
        })
        .await
    }
}

/// Copies the readable rows into a store in `folder`.
fn salvage(
    damaged: &Connection,
    at: &Path,
    folder: &NewFolder,
) -> Result<Vec<SalvagedSession>, StoreError> {
    let options = Options::default();
    let path = folder.part.join(FILE);
    let mut target = connection::writer(&path, &options, schema::LOG, options.max_bytes)?;
    let mut work = || -> Result<_, WorkError> {
        let transaction = target.transaction()?;
        let mut copy = Copy {
            damaged,
            transaction: &transaction,
            folder,
            sessions: BTreeMap::new(),
        };
        let moment = damaged.unchecked_transaction()?;
        let logs = LogCheck::run(&moment, at, |logs, key, raw| copy.add(logs, key, raw))?;
        // Sessions and forks without entries of their own.
        for key in logs.keys() {
            copy.begin(&logs, *key, None)?;
        }
        let mut sessions = copy.sessions;
        let logs = newest_first(logs);
        write::sort(&transaction, logs.iter().rev().map(|(_, log)| &log.info.id))?;
        transaction.commit()?;
        let salvaged = logs.into_iter().map(|(key, log)| {
            let copied = sessions.remove(&key).unwrap_or_default();
            SalvagedSession {
                log: log.checked,
                behind: copied.behind,
                file: copied.file.map(|name| folder.to.join(name)),
            }
        });
        Ok(salvaged.collect())
    };
    let salvaged = work().map_err(|error| error.at(&path))?;
    // Moves the write-ahead log into the file.
    let closed = target.close().map_err(|(_, error)| error);
    closed.map_err(fault::sqlite(&path))?;
    Ok(salvaged)
}

/// The new store while it is written.
struct Copy<'a> {
    damaged: &'a Connection,
    transaction: &'a Transaction<'a>,
    folder: &'a NewFolder,
    /// The sessions of the new store, by their keys in the damaged one.
    sessions: BTreeMap<i64, CopiedSession>,
}

#[derive(Debug, Default)]
struct CopiedSession {
    /// The key in the new store.
    key: i64,
    /// The number of entries of its log in the new store.
    recovered: u64,
    behind: u64,
    file: Option<String>,
}

impl Copy<'_> {
    fn add(&mut self, logs: &Logs, key: i64, raw: &Raw) -> Result<(), WorkError> {
        self.begin(logs, key, Some(raw))?;
        let (Some(log), Some(copied)) = (logs.get(&key), self.sessions.get_mut(&key)) else {
            return Ok(());
        };
        if log.checked.faults.is_empty() {
            copied.recovered = raw.n;
            return Ok(write::insert_raw(self.transaction, copied.key, raw)?);
        }
        let (id, recovered) = (&log.info.id, copied.recovered);
        let is_first = copied.file.is_none();
        let name = copied
            .file
            .get_or_insert_with(|| format!("{id}.after-{recovered}.jsonl"));
        let path = self.folder.part.join(name);
        let (line, whole) = export::to_lines(std::slice::from_ref(raw), &path, id);
        whole?;
        let file = private(is_first).open(&path);
        let written = file.and_then(|mut file| file.write_all(&line));
        written.map_err(fault::io(&path))?;
        copied.behind += 1;
        Ok(())
    }

    /// Creates a session before its `first` own entry.
    fn begin(&mut self, logs: &Logs, key: i64, first: Option<&Raw>) -> Result<(), WorkError> {
        let Some(log) = logs.get(&key).filter(|_| !self.sessions.contains_key(&key)) else {
            return Ok(());
        };
        let mut fork = None;
        if let Some((parent, shared)) = log.parent {
            self.begin(logs, parent, None)?;
            let recovered = self.sessions.get(&parent).map_or(0, |copy| copy.recovered);
            let from = logs.get(&parent).filter(|_| recovered > 0);
            fork = from.map(|from| Fork {
                from: from.info.id.clone(),
                entries: shared.min(recovered),
            });
        }
        let created = Some(log.info.created).filter(|created| *created > 0);
        let created = created.unwrap_or_else(|| first.map_or(0, |raw| raw.at));
        let recovered = fork.as_ref().map_or(0, |fork| fork.entries);
        let info = SessionInfo {
            created,
            updated: log.info.updated.max(created),
            fork,
            ..log.info.clone()
        };
        let settings = self.damaged.query_row(
            "SELECT text FROM settings WHERE session = ?1",
            [info.id.as_str()],
            |row| row.get::<_, String>(0),
        );
        // Settings that cannot be read are those of a session without settings.
        let settings = settings.ok();
        let key_there = write::restore(self.transaction, &info, settings.as_deref(), [])?;
        let copied = CopiedSession {
            key: key_there,
            recovered,
            ..CopiedSession::default()
        };
        self.sessions.insert(key, copied);
        Ok(())
    }
}

/// Options for a file that only its owner may access, because it contains texts of users and tools.
fn private(is_new: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).create_new(is_new);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// A folder that gets its name when it is complete.
struct NewFolder {
    to: PathBuf,
    /// Its name until then, beside the final one. Removed on drop.
    part: PathBuf,
}

impl NewFolder {
    fn create(to: &Path) -> Result<Self, StoreError> {
        let to = if to.exists() {
            let is_empty = fs::read_dir(to).map(|mut files| files.next().is_none());
            if !is_empty.map_err(fault::io(to))? {
                let why = "it is not empty; choose another folder for the new store";
                return Err(fault::other(to, why));
            }
            to.canonicalize().map_err(fault::io(to))?
        } else {
            std::path::absolute(to).map_err(fault::io(to))?
        };
        let (Some(parent), Some(name)) = (to.parent(), to.file_name()) else {
            return Err(fault::other(&to, "choose another folder for the new store"));
        };
        let part = format!(".{}.{}.part", name.display(), std::process::id());
        let part = parent.join(part);
        if part.exists() {
            return Err(fault::other(&part, "it is in the way; remove it"));
        }
        make_folder(&part)?;
        Ok(Self { to, part })
    }

    fn publish(self) -> Result<(), StoreError> {
        // Only an empty folder can be removed. Windows renames to no folder that exists.
        if self.to.exists() {
            fs::remove_dir(&self.to).map_err(fault::io(&self.to))?;
        }
        fs::rename(&self.part, &self.to).map_err(fault::io(&self.to))
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.part);
    }
}
