//! [`Export`]: parsed and checked sessions of an export, and their import into a store, all or
//! none. The meaning of their logs is not checked.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_agent::Entry;
use plimsoll_context::Bytes;
use plimsoll_core::{Fork, MAX_FORK_DEPTH, SessionId, SessionInfo, StoreError};
use rusqlite::{Connection, TransactionBehavior};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::columns::{entry_sum, to_column};
use crate::export::{EXPORT_VERSION, Header, sum_text};
use crate::fault::{self, WorkError};
use crate::lease::Leases;
use crate::sqlite::SqliteStore;
use crate::write::{self, MAX_ENTRY};

/// The beginning of a session's first line, unless another program rewrote it.
const HEADER: &str = "{\"session\":";
const DAMAGED: &str = "the file is damaged or was cut; export the session again";
const NO_FIRST_LINE: &str = "the first line of its session is missing; export the session again";
const OUT_OF_ORDER: &str = "lines are missing or out of order; export the session again";
const ALTERED: &str = "it was altered; export the session again, or take its \"sum\" out if you changed \
                       the line yourself";

/// The sessions of an export.
#[derive(Debug, Default)]
pub struct Export {
    sessions: Vec<ExportedSession>,
}

/// A session of an export.
#[derive(Debug)]
pub struct ExportedSession {
    /// The name.
    pub id: SessionId,
    /// The session that it was forked from, if that session is in the same export.
    pub fork: Option<Fork>,
    /// The settings that are stored beside the log, as with [`SqliteStore::save_settings`]. They
    /// may come from an untrusted source: programs check them before the import.
    pub settings: Option<String>,
    title: String,
    created: u64,
    updated: u64,
    /// The rank by the time of the last write.
    order: u64,
    entries: Vec<Entry>,
    lines: Vec<OwnedLine>,
}

/// The reason why a text is not a complete export.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the export: {why}")]
pub struct BadExport {
    /// The number of the line, from 1.
    pub line: u64,
    /// The fault and its cure, as a sentence for a person.
    pub why: String,
}

/// A line of an export with the unchanged JSON of its entry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnedLine {
    n: u64,
    at: u64,
    entry: Box<RawValue>,
    #[serde(default)]
    sum: Option<String>,
}

/// The fields that the first line of a session has in every version.
#[derive(Deserialize)]
struct AnyHeader {
    #[serde(rename = "session")]
    _session: IgnoredAny,
    version: u64,
}

/// The state of reading an export.
#[derive(Default)]
struct ExportReader {
    sessions: Vec<ExportedSession>,
    /// The sessions before the last one.
    names: BTreeMap<SessionId, KnownSession>,
    /// The expectations set by the first line of the last session.
    due: Option<ExpectedSession>,
    /// The number of the last session's next entry.
    next: u64,
}

/// A session that was read before.
struct KnownSession {
    line: u64,
    entries: u64,
    depth: u64,
}

#[derive(Clone)]
struct ExpectedSession {
    session: SessionId,
    entries: u64,
    number: u64,
    of: u64,
}

impl Export {
    /// Checks whether a text begins like an export.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        let first = text.lines().next().unwrap_or_default();
        first.starts_with(HEADER)
            || serde_json::from_str::<AnyHeader>(first).is_ok()
            || serde_json::from_str::<OwnedLine>(first).is_ok()
    }

    /// Parses an export.
    ///
    /// # Errors
    /// If a line cannot be read or was altered, if lines are missing, out of order or duplicated,
    /// or if the export is of a newer version.
    pub fn parse(text: &str) -> Result<Self, BadExport> {
        let (mut reader, mut last) = (ExportReader::default(), 0);
        for (line, text) in (1..).zip(text.lines()) {
            let taken = reader.take(text, line);
            taken.map_err(|why| BadExport { line, why })?;
            last = line;
        }
        let whole = reader.end();
        whole.map_err(|why| BadExport { line: last, why })?;
        Ok(Self {
            sessions: reader.sessions,
        })
    }

    /// Parses entries without the first line of a session, as written by [`SqliteStore::salvage`] if
    /// the first entries of a log are lost. Returns `None` if the text begins with the first line of a
    /// session, so that [`Self::parse`] reads it. A session cannot begin with the returned entries.
    ///
    /// # Errors
    /// If a line is not an entry, or if its number is not above the previous one.
    pub fn parse_rest(text: &str) -> Result<Option<Vec<Entry>>, BadExport> {
        let first = text.lines().next().unwrap_or_default();
        if serde_json::from_str::<OwnedLine>(first).is_err() {
            return Ok(None);
        }
        let (mut entries, mut last) = (Vec::new(), 0);
        for (number, text) in (1..).zip(text.lines()) {
            let bad = |why: String| BadExport { line: number, why };
            let line = OwnedLine::read(text).map_err(bad)?;
            if line.n <= last {
                let why = format!("its number is not above the one before it: {OUT_OF_ORDER}");
                return Err(bad(why));
            }
            last = line.n;
            entries.push(line.entry().map_err(bad)?);
        }
        Ok(Some(entries))
    }

    /// Returns the sessions. Each follows the session that it was forked from.
    #[must_use]
    pub fn sessions(&self) -> &[ExportedSession] {
        &self.sessions
    }

    /// Returns the sessions, to change their names or settings.
    pub fn sessions_mut(&mut self) -> &mut [ExportedSession] {
        &mut self.sessions
    }

    /// Returns the whole log of a session, including shared entries.
    #[must_use]
    pub fn log(&self, session: &ExportedSession) -> Vec<Entry> {
        let (mut parts, mut of) = (vec![session.entries.as_slice()], session.fork.as_ref());
        let mut shared = u64::MAX;
        for _ in 0..MAX_FORK_DEPTH {
            let Some(fork) = of else { break };
            let mut named = self.sessions.iter();
            let Some(parent) = named.find(|one| one.id == fork.from) else {
                break;
            };
            shared = shared.min(fork.entries);
            let own = shared.saturating_sub(parent.shared());
            let own = usize::try_from(own).unwrap_or(usize::MAX);
            parts.push(parent.entries.get(..own).unwrap_or(&parent.entries));
            of = parent.fork.as_ref();
        }
        parts.into_iter().rev().flatten().cloned().collect()
    }
}

impl ExportedSession {
    /// Returns its own entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the number of entries shared with the session that it was forked from.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.fork.as_ref().map_or(0, |fork| fork.entries)
    }

    fn info(&self) -> SessionInfo {
        let title = if self.title.is_empty() {
            write::title_of(&self.entries).unwrap_or_default()
        } else {
            self.title.clone()
        };
        SessionInfo {
            id: self.id.clone(),
            created: self.created,
            updated: self.updated,
            entries: self.shared() + self.lines.len() as u64,
            bytes: Bytes(0),
            title,
            fork: self.fork.clone(),
        }
    }
}

impl OwnedLine {
    fn read(text: &str) -> Result<Self, String> {
        let line: Self = serde_json::from_str(text).map_err(|error| unread(&error))?;
        if line.entry.get().len() as u64 > MAX_ENTRY.0 {
            return Err(format!("an entry may have {MAX_ENTRY}, and it has more"));
        }
        let (n, at) = (to_column(line.n), to_column(line.at));
        let sum = || sum_text(entry_sum(n, at, line.entry.get().as_bytes()));
        match &line.sum {
            Some(said) if *said != sum() => Err(ALTERED.to_owned()),
            _ => Ok(line),
        }
    }

    fn entry(&self) -> Result<Entry, String> {
        let entry = serde_json::from_str(self.entry.get());
        entry.map_err(|error| {
            let error = described(&error);
            format!(
                "{error}: it is damaged, or of a newer version of Plimsoll; export the session again, \
                 or update Plimsoll"
            )
        })
    }
}

impl ExportReader {
    fn take(&mut self, text: &str, line: u64) -> Result<(), String> {
        match OwnedLine::read(text) {
            Ok(entry) => self.add(entry),
            Err(why) => match serde_json::from_str::<AnyHeader>(text) {
                Ok(AnyHeader { version, .. }) if version == 0 || version > EXPORT_VERSION => {
                    Err(format!(
                        "the export is of version {version}, and this Plimsoll reads versions up to \
                         {EXPORT_VERSION}; update Plimsoll"
                    ))
                }
                Err(_) if !text.starts_with(HEADER) => Err(why),
                _ => self.begin(text, line),
            },
        }
    }

    /// Begins a session with its first line.
    fn begin(&mut self, text: &str, line: u64) -> Result<(), String> {
        let mut header: Header = serde_json::from_str(text).map_err(|error| unread(&error))?;
        let sum = header.sum.take();
        if sum.is_some() && sum != header.checksum() {
            return Err(ALTERED.to_owned());
        }
        self.complete()?;
        let before = self.due.as_ref().map_or((0, 0), |due| (due.number, due.of));
        let due = match before {
            (number, of) if number < of => (number + 1, of),
            _ => (1, header.of),
        };
        if (header.number, header.of) != due {
            return Err(format!(
                "it starts session {} of {}, but session {} of {} is expected: sessions are \
                 missing or out of order; export them again",
                header.number, header.of, due.0, due.1
            ));
        }
        let depth = header
            .fork
            .as_ref()
            .map_or(Ok(0), |fork| self.depth(fork))?;
        let known = KnownSession {
            line,
            entries: header.entries,
            depth,
        };
        if let Some(first) = self.names.insert(header.session.clone(), known) {
            return Err(format!(
                "session {} is in the file twice, first on line {}; keep one of the two",
                header.session, first.line
            ));
        }
        self.next = header.fork.as_ref().map_or(0, |fork| fork.entries) + 1;
        if self.next > header.entries.saturating_add(1) {
            return Err(format!("it shares more entries than it has; {DAMAGED}"));
        }
        self.due = Some(ExpectedSession {
            session: header.session.clone(),
            entries: header.entries,
            number: header.number,
            of: header.of,
        });
        self.sessions.push(ExportedSession {
            id: header.session,
            fork: header.fork,
            settings: header.settings.map(|json| settings_text(&json)),
            title: header.title,
            created: header.created,
            updated: header.updated,
            order: header.order,
            entries: Vec::new(),
            lines: Vec::new(),
        });
        Ok(())
    }

    /// Returns the number of ancestors of a fork.
    fn depth(&self, fork: &Fork) -> Result<u64, String> {
        let from = &fork.from;
        let Some(parent) = self.names.get(from) else {
            return Err(format!(
                "it is a fork of session {from}, which does not stand before it; export both again, or \
                 the fork alone"
            ));
        };
        if fork.entries > parent.entries {
            return Err(format!(
                "it shares {} entries with session {from}, which has {}; {DAMAGED}",
                fork.entries, parent.entries
            ));
        }
        if parent.depth >= MAX_FORK_DEPTH {
            Err(format!(
                "forks of forks may be {MAX_FORK_DEPTH} deep, and it is deeper"
            ))
        } else {
            Ok(parent.depth + 1)
        }
    }

    fn add(&mut self, line: OwnedLine) -> Result<(), String> {
        if self.sessions.is_empty() {
            return Err(NO_FIRST_LINE.to_owned());
        }
        let (n, due) = (line.n, self.next);
        if n != due {
            return Err(format!(
                "it is entry {n}, and entry {due} is due: {OUT_OF_ORDER}"
            ));
        }
        if let Some(ExpectedSession {
            session, entries, ..
        }) = self.due.as_ref().filter(|due| n > due.entries)
        {
            return Err(format!(
                "session {session} has {entries} entries, and this is one more; {DAMAGED}"
            ));
        }
        let entry = line.entry()?;
        self.next = n.saturating_add(1);
        if let Some(session) = self.sessions.last_mut() {
            session.updated = session.updated.max(line.at);
            session.entries.push(entry);
            session.lines.push(line);
        }
        Ok(())
    }

    /// Checks whether all entries of the last session were read.
    fn complete(&self) -> Result<(), String> {
        match &self.due {
            Some(due) if self.next <= due.entries => Err(format!(
                "session {} has {} entries, and they end with entry {}: {OUT_OF_ORDER}",
                due.session,
                due.entries,
                self.next - 1
            )),
            _ => Ok(()),
        }
    }

    fn end(&self) -> Result<(), String> {
        let whole = self.complete();
        let Some(ExpectedSession { number, of, .. }) = &self.due else {
            return whole;
        };
        if *of == 1 && whole.is_err() && self.next > 1 {
            return whole.map_err(|why| {
                format!(
                    "{why}, or write \"entries\":{} into the first line and take its \"sum\" out, to import \
                     the entries that are there",
                    self.next - 1
                )
            });
        }
        if number < of {
            whole.and(Err(format!(
                "it ends session {number} of {of}: the others are missing; export them again"
            )))
        } else {
            whole
        }
    }
}

impl SqliteStore {
    /// Creates sessions with their logs, numbers, times, titles, settings and forks, in one
    /// transaction. The list shows them as newer than the existing sessions, in the order that they
    /// had.
    ///
    /// # Errors
    /// If a session exists already or is held by another process, or if the file cannot be written. In
    /// these cases nothing is written.
    pub async fn import(&self, export: Export) -> Result<(), StoreError> {
        let leases = self.leases().clone();
        self.writer()
            .await?
            .with(move |connection, path| import(connection, path, &leases, &export))
            .await
    }
}

fn import(
    connection: &mut Connection,
    path: &Path,
    leases: &Leases,
    export: &Export,
) -> Result<(), WorkError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut order = Vec::with_capacity(export.sessions.len());
    // Nobody else may begin a session while it is imported.
    let mut held = Vec::with_capacity(export.sessions.len());
    for session in &export.sessions {
        let id = &session.id;
        if write::exists(&transaction, id)? {
            let why = format!("there is a session {id} already; import it by another name");
            return Err(fault::other(path, why).into());
        }
        held.push(leases.acquire(id)?);
        let lines = session.lines.iter();
        let lines = lines.map(|line| (line.n, line.at, line.entry.get()));
        let settings = session.settings.as_deref();
        write::restore(&transaction, &session.info(), settings, lines)?;
        order.push((session.order, id));
    }
    order.sort_by_key(|(order, _)| *order);
    write::sort(&transaction, order.into_iter().map(|(_, id)| id))?;
    Ok(transaction.commit()?)
}

/// Returns settings in their stored form.
fn settings_text(json: &RawValue) -> String {
    match serde_json::from_str(json.get()) {
        Ok(text) => text,
        Err(_) => json.get().to_owned(),
    }
}

fn unread(error: &serde_json::Error) -> String {
    format!("it cannot be read ({}); {DAMAGED}", described(error))
}

/// Returns the error without its position, which refers to one line instead of the file.
fn described(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}
