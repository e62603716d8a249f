//! Values as the columns of the databases contain them: numbers, names, rows of sessions, and the
//! checksums that detect changes made outside Plimsoll.

use std::error;

use plimsoll_context::Bytes;
use plimsoll_core::{Fork, SessionId, SessionInfo};
use rusqlite::types::Type;
use rusqlite::{Error, Row};

/// Converts a stored number. The file stores `i64`, and Plimsoll writes no negative numbers.
pub(crate) fn from_column(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(crate) fn to_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads the name of a session from a column.
pub(crate) fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<SessionId> {
    SessionId::new(row.get::<_, String>(column)?)
        .map_err(|error| Error::FromSqlConversionFailure(column, Type::Text, error.into()))
}

/// The columns that describe a session.
pub(crate) const INFO: &str =
    "SELECT own.id, own.created, own.updated, own.entries, own.bytes, own.title,
           parent.id AS parent, own.shared
    FROM sessions AS own LEFT JOIN sessions AS parent ON parent.key = own.parent";

/// A row of [`INFO`].
pub(crate) type InfoRow = (
    String,
    i64,
    i64,
    i64,
    i64,
    Option<String>,
    Option<String>,
    i64,
);

/// Reads the description of a session.
///
/// # Errors
/// If a name is not that of a session.
pub(crate) fn info(row: InfoRow) -> Result<SessionInfo, Box<dyn error::Error + Send + Sync>> {
    let (id, created, updated, entries, bytes, title, parent, shared) = row;
    let fork = |from| Fork {
        from,
        entries: from_column(shared),
    };
    Ok(SessionInfo {
        id: SessionId::new(id)?,
        created: from_column(created),
        updated: from_column(updated),
        entries: from_column(entries),
        bytes: Bytes(from_column(bytes)),
        title: title.unwrap_or_default(),
        fork: parent.map(SessionId::new).transpose()?.map(fork),
    })
}

/// Returns the first 8 bytes of BLAKE3 over an entry's number, its time and its JSON.
pub(crate) fn entry_sum(n: i64, at: i64, json: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&n.to_be_bytes());
    hasher.update(&at.to_be_bytes());
    hasher.update(json);
    let mut sum = [0; 8];
    hasher.finalize_xof().fill(&mut sum);
    i64::from_be_bytes(sum)
}
