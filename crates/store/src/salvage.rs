//! Creates a new store from the readable part of a damaged one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::{SessionId, SessionInfo, SessionStore, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use crate::check::LogElement;
use crate::export;
use crate::fault::{self, WorkError};
use crate::read::Raw;
use crate::sqlite::{FILE, SqliteStore};
use crate::write;

/// The reason for a session whose known entries are all readable.
const MAY_GO_ON: &str = "its row is lost, so that further entries may be missing at its end";

/// The recovered part of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvagedSession {
    /// The name of the session.
    pub id: SessionId,
    /// The number of entries of its log before the damage, as far as it is known.
    pub entries: u64,
    /// The number of entries of its log in the new store: all before the first unreadable one.
    pub recovered: u64,
    /// The number of readable entries after the first unreadable one. They are in [`Self::file`].
    pub behind: u64,
    /// The file with the entries counted by `behind`, as lines of an export.
    pub file: Option<PathBuf>,
    /// The reason why the first lost entry cannot be read, or why it is unknown whether one is
    /// lost. `None` if the session is complete.
    pub why: Option<String>,
}

/// The readable entries of one log.
#[derive(Default)]
struct Readable {
    /// The entries before the first unreadable one.
    before: Vec<Raw>,
    /// The readable entries after it.
    behind: Vec<Raw>,
    why: Option<String>,
    /// The number of the last known entry.
    last: u64,
}

impl SalvagedSession {
    /// Returns the number of entries that are lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.entries
            .saturating_sub(self.recovered)
            .saturating_sub(self.behind)
    }
}

impl SqliteStore {
    /// Creates a new store in the folder `to` from the readable part of the store in `from`:
    /// sessions with their forks, titles, times and settings, in the same order.
    ///
    /// A log ends before its first unreadable or altered entry. The readable entries after it are
    /// written to `ID.after-N.jsonl` in `to`; N is the number of the last entry of the log. Nothing
    /// in `from` is changed: the write-ahead log stays unchanged, too. The archive and the kept contents of files are not copied.
    ///
    /// # Errors
    /// If there is a store in `to` already, if the new one cannot be written, or if no session can
    /// be found in `from`.
    pub async fn salvage(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
    ) -> Result<Vec<SalvagedSession>, StoreError> {
        let folder = to.as_ref();
        let path = folder.join(FILE);
        if path.exists() {
            let why = "there is a store already; choose another folder".to_owned();
            return Err(fault::other(&path, why));
        }
        let damaged = Self::open_to_read(from.as_ref()).await?;
        let sessions = damaged.list().await?;
        let target = Self::open(folder).await?;
        let mut salvaged: BTreeMap<SessionId, SalvagedSession> = BTreeMap::new();
        let mut left: Vec<&SessionInfo> = sessions.iter().rev().collect();
        while !left.is_empty() {
            // A fork comes after the session that it was forked from.
            let waits = |info: &&SessionInfo| {
                let from = info.fork.as_ref().map(|fork| &fork.from);
                from.is_some_and(|from| {
                    !salvaged.contains_key(from) && sessions.iter().any(|info| info.id == *from)
                })
            };
            let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
            if now.is_empty() {
                break;
            }
            for info in now {
                let shared = info.fork.as_ref().is_some_and(|fork| {
                    salvaged
                        .get(&fork.from)
                        .is_some_and(|from| from.recovered >= fork.entries)
                });
                let one = damaged.salvage_one(&target, folder, info, shared).await?;
                salvaged.insert(info.id.clone(), one);
            }
            left = later;
        }
        let order: Vec<SessionId> = sessions.iter().rev().map(|info| info.id.clone()).collect();
        let writer = target.writer().await?;
        writer
            .with(move |connection, _| {
                let transaction = connection.transaction()?;
                write::sort(&transaction, order.iter())?;
                transaction.commit()
            })
            .await?;
        let in_order = sessions.iter();
        Ok(in_order
            .filter_map(|info| salvaged.remove(&info.id))
            .collect())
    }

    /// Copies one session. If `shared` is true, the new store has the entries shared with its
    /// parent.
    async fn salvage_one(
        &self,
        target: &Self,
        folder: &Path,
        info: &SessionInfo,
        shared: bool,
    ) -> Result<SalvagedSession, StoreError> {
        let fork = info.fork.as_ref().filter(|_| shared);
        let begins = fork.map_or(0, |fork| fork.entries);
        let Readable {
            before,
            behind,
            why,
            last,
        } = self.readable(info, begins).await;
        let why = if self.may_go_on(&info.id).await {
            why.or_else(|| Some(MAY_GO_ON.to_owned()))
        } else {
            why
        };
        let recovered = before.last().map_or(begins, |raw| raw.n);
        let mut salvaged = SalvagedSession {
            id: info.id.clone(),
            entries: info.entries.max(last),
            recovered,
            behind: behind.len() as u64,
            file: None,
            why,
        };
        // Unknown in a damaged file. The archive then finds no items of this log.
        let kin = self.lineage(&info.id).await.unwrap_or_default();
        let born = kin.into_iter().next().map(|kin| kin.born);
        let settings = self.settings(&info.id).await.ok().flatten();
        let info = SessionInfo {
            fork: fork.cloned(),
            ..info.clone()
        };
        let path = folder.join(format!("{}.after-{recovered}.jsonl", info.id));
        let rest = (!behind.is_empty()).then(|| {
            salvaged.file = Some(path.clone());
            export::to_lines(&behind, &path, &info.id).0
        });
        let writer = target.writer().await?;
        writer
            .with(move |connection, _| {
                copy(connection, &info, born, &before, settings.as_deref())?;
                if let Some(lines) = rest {
                    fs::write(&path, lines).map_err(fault::io(&path))?;
                }
                Ok::<_, WorkError>(())
            })
            .await?;
        Ok(salvaged)
    }

    /// Reads the readable entries of a log after number `after`.
    async fn readable(&self, info: &SessionInfo, after: u64) -> Readable {
        let mut read = Readable {
            last: after,
            ..Readable::default()
        };
        self.read_all(info, after, |found| match found {
            LogElement::Entry(raw) => {
                read.last = raw.n;
                let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&raw.json).is_ok();
                match (&read.why, is_json) {
                    (None, true) => read.before.push(raw),
                    (Some(_), true) => read.behind.push(raw),
                    (None, false) => read.why = Some("it is no JSON".to_owned()),
                    (Some(_), false) => {}
                }
            }
            LogElement::Fault(fault) => {
                read.last = fault.last;
                read.why.get_or_insert(fault.why);
            }
        })
        .await;
        read
    }
}

/// Writes a session and its entries, all or nothing.
fn copy(
    connection: &mut Connection,
    info: &SessionInfo,
    born: Option<Vec<u8>>,
    entries: &[Raw],
    settings: Option<&str>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let first = entries.first().map_or(info.updated, |raw| raw.at);
    let created = Some(info.created).filter(|created| *created > 0);
    let info = SessionInfo {
        created: created.unwrap_or(first),
        updated: info.updated.max(info.created),
        ..info.clone()
    };
    // Parsed as JSON before, so it is UTF-8.
    let lines = entries
        .iter()
        .map(|raw| Some((raw.n, raw.at, std::str::from_utf8(&raw.json).ok()?)));
    write::restore(&transaction, &info, born, settings, lines.flatten())?;
    transaction.commit()
}
