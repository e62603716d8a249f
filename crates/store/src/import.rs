//! [`Export`]: parsed and checked sessions of an export, and their import into a store, all or
//! none. The meaning of their logs is not checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use plimsoll_agent::Entry;
use plimsoll_context::Bytes;
use plimsoll_core::{SessionId, SessionInfo, StoreError};
use rusqlite::{Connection, TransactionBehavior};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::columns::{entry_sum, to_column};
use crate::export::{EXPORT_VERSION, Header, sum_text};
use crate::fault::{self, WorkError};
use crate::lease::Right;
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
    /// In the order of their last writes.
    sessions: Vec<ExportedSession>,
}

/// A session of an export.
#[derive(Debug)]
pub struct ExportedSession {
    /// The name.
    pub id: SessionId,
    title: String,
    created: u64,
    updated: u64,
    /// The number of entries that its first line states.
    stated: u64,
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

impl Export {
    /// Checks whether a text begins like an export.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        let first = text.lines().next().unwrap_or_default();
        is_header(first) || serde_json::from_str::<OwnedLine>(first).is_ok()
    }

    /// Parses an export, or several in a row.
    ///
    /// # Errors
    /// If a line cannot be read or was altered, if lines are missing, out of order or duplicated,
    /// or if the export is of a newer version.
    pub fn parse(text: &str) -> Result<Self, BadExport> {
        let (mut export, mut last, mut left) = (Self::default(), 1, 0);
        let mut lines = BTreeMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            let bad = |why| BadExport { line, why };
            last = line;
            match OwnedLine::read(text) {
                Ok(entry) => export.add(entry).map_err(bad)?,
                Err(why) if !is_header(text) => return Err(bad(why)),
                Err(_) => {
                    export.is_complete().map_err(bad)?;
                    let header = Header::read(text).map_err(bad)?;
                    left = header.left;
                    let session = ExportedSession::new(header);
                    if let Some(first) = lines.insert(session.id.clone(), line) {
                        return Err(bad(format!(
                            "session {} is in the file twice, first on line {first}; keep one of the two",
                            session.id
                        )));
                    }
                    export.sessions.push(session);
                }
            }
        }
        let bad = |why| BadExport { line: last, why };
        export.is_complete().map_err(bad)?;
        if left > 0 {
            let why = "the file was cut before its last session; export it again";
            return Err(bad(why.to_owned()));
        }
        Ok(export)
    }

    /// Returns the sessions, in the order of their last writes.
    #[must_use]
    pub fn sessions(&self) -> &[ExportedSession] {
        &self.sessions
    }

    /// Returns the sessions, to change their names.
    pub fn sessions_mut(&mut self) -> &mut [ExportedSession] {
        &mut self.sessions
    }

    fn add(&mut self, line: OwnedLine) -> Result<(), String> {
        let session = self.sessions.last_mut().ok_or(NO_FIRST_LINE)?;
        let (n, due) = (line.n, session.count() + 1);
        if n != due {
            return Err(format!(
                "it is entry {n}, and entry {due} is due: {OUT_OF_ORDER}"
            ));
        }
        if n > session.stated {
            return Err(format!(
                "session {} has {} entries, and this is one more; {DAMAGED}",
                session.id, session.stated
            ));
        }
        session.entries.push(line.entry()?);
        session.updated = session.updated.max(line.at);
        session.lines.push(line);
        Ok(())
    }

    /// Checks whether all entries of the last session were read.
    fn is_complete(&self) -> Result<(), String> {
        match self.sessions.last() {
            Some(session) if session.count() != session.stated => Err(format!(
                "session {} has {} entries, and they end with entry {last}: {OUT_OF_ORDER}, or write \
                 \"entries\":{last} into its first line to import those that are there",
                session.id,
                session.stated,
                last = session.count(),
            )),
            _ => Ok(()),
        }
    }
}

impl Header {
    fn read(text: &str) -> Result<Self, String> {
        match serde_json::from_str(text) {
            Ok(AnyHeader { version, .. }) if version != EXPORT_VERSION => Err(format!(
                "the export is of version {version}, and this Plimsoll reads version \
                 {EXPORT_VERSION}; update Plimsoll"
            )),
            _ => serde_json::from_str(text).map_err(|error| unread(&error)),
        }
    }
}

impl ExportedSession {
    fn new(header: Header) -> Self {
        Self {
            id: header.session,
            title: header.title,
            created: header.created,
            updated: header.updated,
            stated: header.entries,
            entries: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Returns its log.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn count(&self) -> u64 {
        self.lines.len() as u64
    }

    fn info(&self) -> SessionInfo {
        SessionInfo {
            id: self.id.clone(),
            created: self.created,
            updated: self.updated,
            entries: self.count(),
            bytes: Bytes(0),
            title: self.title.clone(),
            fork: None,
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

impl SqliteStore {
    /// Creates sessions with their logs, numbers, times and titles, in one transaction. The list shows
    /// them as newer than the existing sessions, in the order that they had.
    ///
    /// # Errors
    /// If a session exists already or is held by another process, or if the file cannot be written. In
    /// these cases nothing is written.
    pub async fn import(&self, export: Export) -> Result<(), StoreError> {
        let locks = Arc::clone(self.locks());
        self.writer()
            .await?
            .with(move |connection, path| import(connection, path, &locks, &export))
            .await
    }
}

fn import(
    connection: &mut Connection,
    path: &Path,
    locks: &Path,
    export: &Export,
) -> Result<(), WorkError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Nobody else may begin a session while it is imported.
    let mut held = Vec::with_capacity(export.sessions.len());
    for session in &export.sessions {
        let id = &session.id;
        if write::exists(&transaction, id)? {
            let why = format!(
                "there is a session {id} already, so nothing was imported; delete it first, or give \
                 the imported one another name (--to)"
            );
            return Err(fault::other(path, why).into());
        }
        held.push(Right::acquire(locks, id)?);
        let lines = session.lines.iter();
        let lines = lines.map(|line| (line.n, line.at, line.entry.get()));
        write::restore(&transaction, &session.info(), None, lines)?;
    }
    write::sort(
        &transaction,
        export.sessions.iter().map(|session| &session.id),
    )?;
    Ok(transaction.commit()?)
}

/// Checks whether a line is the first one of a session.
fn is_header(text: &str) -> bool {
    text.starts_with(HEADER) || serde_json::from_str::<AnyHeader>(text).is_ok()
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
