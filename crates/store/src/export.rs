//! [`Line`]: one entry with its number and time, the export of a log as JSON lines of them, and the
//! way back.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use plimsoll_agent::Entry;
use plimsoll_core::{SessionId, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::connection::done;
use crate::read::{Raw, bad_entry};

/// One entry of a log, and one line of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its number in its session, from 1, without a gap.
    pub n: u64,
    /// Seconds since 1970 when it was written; within a log it never falls.
    pub at: u64,
    /// The entry.
    pub entry: Entry,
}

/// Why an export ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The log cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be written to where it should go.
    #[error("the export cannot be written: {0}; check where it goes, then export again")]
    Write(#[from] io::Error),
}

/// Entries of a log as an export has them.
#[derive(Debug)]
pub struct ExportedLog {
    entries: Vec<Entry>,
    pub(crate) lines: Vec<OwnedLine>,
}

/// Why a text is not a whole export.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the export cannot be read: {why}")]
pub struct BadExport {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
}

/// A line of an export with the entry exactly as it stands there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnedLine {
    pub(crate) n: u64,
    pub(crate) at: u64,
    pub(crate) entry: Box<RawValue>,
}

/// The same line with the entry exactly as the file has it.
#[derive(Serialize)]
struct RawLine<'a> {
    n: u64,
    at: u64,
    entry: &'a RawValue,
}

impl ExportedLog {
    /// Checks whether the first line of a text is that of an export.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        let first = text.lines().next().unwrap_or_default();
        serde_json::from_str::<OwnedLine>(first).is_ok()
    }

    /// Reads an export.
    ///
    /// # Errors
    /// If a line is not an entry, or if lines are missing.
    pub fn parse(text: &str) -> Result<Self, BadExport> {
        Self::read(text, |line, due| match line.n == due {
            true => Ok(()),
            false => Err(format!("it is entry {}, and entry {due} is due", line.n)),
        })
    }

    /// Reads entries of a log of which others are missing, as [`SqliteStore::salvage`] writes them.
    /// Returns `None` if the first line is the first entry of a log, so that [`Self::parse`] reads it. What is
    /// returned is no log that a session can begin with.
    ///
    /// # Errors
    /// If a line is not an entry, or if its number is not above the one before it.
    ///
    /// [`SqliteStore::salvage`]: crate::SqliteStore::salvage
    pub fn parse_rest(text: &str) -> Result<Option<Vec<Entry>>, BadExport> {
        let mut last = 1;
        let read = Self::read(text, |line, number| {
            let is_rest = line.n > last || number == 1;
            last = line.n;
            match is_rest {
                true => Ok(()),
                false => Err("its number is not above the one before it".to_owned()),
            }
        })?;
        let is_whole = read.lines.first().is_none_or(|line| line.n <= 1);
        Ok((!is_whole).then_some(read.entries))
    }

    fn read(
        text: &str,
        mut check: impl FnMut(&OwnedLine, u64) -> Result<(), String>,
    ) -> Result<Self, BadExport> {
        let (mut entries, mut lines) = (Vec::new(), Vec::new());
        for (number, text) in (1..).zip(text.lines()) {
            let bad = |why: String| BadExport { line: number, why };
            let line: OwnedLine =
                serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
            check(&line, number).map_err(bad)?;
            let entry = serde_json::from_str(line.entry.get());
            entries.push(entry.map_err(|error| bad(error.to_string()))?);
            lines.push(line);
        }
        Ok(Self { entries, lines })
    }

    /// The entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// Reads one entry.
pub(crate) fn line(raw: &Raw, path: &Path, session: &SessionId) -> Result<Line, StoreError> {
    let entry = serde_json::from_slice(&raw.json)
        .map_err(|error| bad_entry(path, session, raw.n, error))?;
    Ok(Line {
        n: raw.n,
        at: raw.at,
        entry,
    })
}

/// Reads the entries of a page.
pub(crate) fn lines(
    page: &[Raw],
    path: &Path,
    session: &SessionId,
) -> Result<Vec<Line>, StoreError> {
    page.iter().map(|raw| line(raw, path, session)).collect()
}

/// Reads the entries of a log. `page` returns the next page after an entry; it is asked for one while the
/// page before is parsed on another thread.
pub(crate) async fn load<F>(
    path: &Arc<Path>,
    session: &SessionId,
    mut page: impl FnMut(u64) -> F,
) -> Result<Vec<Entry>, StoreError>
where
    F: Future<Output = Result<Vec<Raw>, StoreError>>,
{
    let mut log = Vec::new();
    let mut read = page(0).await?;
    while let Some(last) = read.last() {
        let after = last.n;
        let (at, id) = (Arc::clone(path), session.clone());
        let parsed = tokio::task::spawn_blocking(move || lines(&read, &at, &id));
        let next = page(after).await;
        let lines = done(path, parsed.await)?;
        log.extend(lines.into_iter().map(|line| line.entry));
        read = next?;
    }
    Ok(log)
}

/// Puts a page into JSON lines. An entry that a newer version wrote is passed on as it is; one that
/// is no JSON at all is an error, after the lines before it.
pub(crate) fn to_lines(
    page: &[Raw],
    path: &Path,
    session: &SessionId,
) -> (Vec<u8>, Result<(), StoreError>) {
    let mut text = Vec::new();
    for raw in page {
        let written = serde_json::from_slice(&raw.json).and_then(|entry| {
            let (n, at) = (raw.n, raw.at);
            let before = text.len();
            serde_json::to_writer(&mut text, &RawLine { n, at, entry })
                .inspect_err(|_| text.truncate(before))
        });
        if let Err(error) = written {
            return (text, Err(bad_entry(path, session, raw.n, error)));
        }
        text.push(b'\n');
    }
    (text, Ok(()))
}

/// Writes the lines of a page; gives the writer back for the next.
pub(crate) fn write<W: Write>(mut out: W, text: &[u8]) -> io::Result<W> {
    out.write_all(text)?;
    out.flush()?;
    Ok(out)
}
