//! Values as the columns of the databases contain them: numbers, names, and the checksums that detect
//! changes made outside Plimsoll.

use plimsoll_core::SessionId;
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
