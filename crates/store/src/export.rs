//! [`Line`]: one entry with its number and time, and the export of a log as JSON lines of them.
//! Not a way back in: a log is written by the run that it records.

use std::io::{self, Write};
use std::path::Path;

use plimsoll_agent::Entry;
use plimsoll_core::{SessionId, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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

/// The same line with the entry exactly as the file has it.
#[derive(Serialize)]
struct RawLine<'a> {
    n: u64,
    at: u64,
    entry: &'a RawValue,
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
