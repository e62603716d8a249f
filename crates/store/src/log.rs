//! The parts of reading a log that are the same in both databases. A log consists of the entries of a
//! session and of those that it shares with its ancestors, its [`LogAncestor`].

use std::path::Path;

use plimsoll_context::Bytes;
use plimsoll_core::{LogEntry, SessionId, StoreError};

use crate::columns::{entry_sum, to_column};
use crate::fault;

/// Maximum size of the JSON of one page, unless its first entry alone is larger. Bounds the memory
/// for reading a log of any length.
pub const PAGE_BYTES: Bytes = Bytes(4 << 20);

/// The fault of an entry whose checksum does not match its text.
pub(crate) const ALTERED: &str = "it was altered: its checksum is another";

/// One entry as stored.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) n: u64,
    pub(crate) at: u64,
    pub(crate) json: Vec<u8>,
}

/// A session whose log, or the beginning of it, belongs to the log of a session.
#[derive(Debug, Clone)]
pub(crate) struct LogAncestor {
    pub(crate) key: i64,
    /// The number of shared entries. The session's own entries follow them.
    pub(crate) shared: u64,
    /// The number of its entries that belong to the log, including those that it shares itself.
    pub(crate) entries: u64,
}

/// A range of a session's own entries: those after `before`, up to `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) key: i64,
    pub(crate) before: u64,
    pub(crate) last: u64,
}

impl Raw {
    /// Checks whether the entry matches its stored checksum.
    pub(crate) fn matches(&self, sum: i64) -> bool {
        let (n, at) = (to_column(self.n), to_column(self.at));
        sum == entry_sum(n, at, &self.json)
    }

    /// Parses the entry.
    pub(crate) fn parse(&self, path: &Path, session: &SessionId) -> Result<LogEntry, StoreError> {
        let entry = serde_json::from_slice(&self.json);
        Ok(LogEntry {
            n: self.n,
            at: self.at,
            entry: entry.map_err(|error| bad_entry(path, session, self.n, error))?,
        })
    }
}

/// Returns the ranges of the entries after `after`, at most `limit` entries.
pub(crate) fn ranges(kin: &[LogAncestor], after: u64, limit: usize) -> impl Iterator<Item = Range> {
    let end = after.saturating_add(limit as u64);
    // The oldest ancestor has the beginning of the log, the session itself its end.
    let ranges = kin.iter().rev().map(move |kin| Range {
        key: kin.key,
        before: after.max(kin.shared),
        last: end.min(kin.entries),
    });
    ranges.filter(|range| range.before < range.last)
}

/// Returns the entry with this number if it is the one that was read, and unaltered.
///
/// # Errors
/// The reason why it is not, as a sentence.
pub(crate) fn checked(read: Option<(Raw, i64)>, number: u64) -> Result<Raw, &'static str> {
    match read {
        Some((raw, sum)) if raw.n == number && raw.matches(sum) => Ok(raw),
        Some((raw, _)) if raw.n == number => Err(ALTERED),
        _ => Err("it is missing"),
    }
}

/// Creates an error for an entry that cannot be read.
pub(crate) fn bad_entry(
    path: &Path,
    session: &SessionId,
    entry: u64,
    why: impl ToString,
) -> StoreError {
    StoreError::BadEntry {
        path: fault::text(path),
        session: session.clone(),
        entry,
        why: why.to_string(),
    }
}

/// Parses a page on a thread that may block.
pub(crate) async fn parse(
    page: Vec<Raw>,
    path: &Path,
    session: &SessionId,
) -> Result<Vec<LogEntry>, StoreError> {
    let (at, session) = (path.to_path_buf(), session.clone());
    let lines = move || page.iter().map(|raw| raw.parse(&at, &session)).collect();
    crate::connection::blocking(path, lines).await
}
