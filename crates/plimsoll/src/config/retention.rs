//! Parses `[sessions]`: how long sessions are kept. The store deletes them.

use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::Retention;

use super::fields::FieldKind::*;
use super::fields::{Field, Fields, field};

const DAY: u64 = 24 * 60 * 60;

/// The fields of `[sessions]`. By default all sessions are kept.
pub const SESSION_FIELDS: &[Field] = &[
    field(
        "keep_days",
        Whole,
        "Delete sessions that were last written more than so many days ago.",
    ),
    field(
        "keep_bytes",
        Whole,
        "Delete the oldest sessions until the logs of all have at most so many bytes.",
    ),
];

/// Returns how long sessions are kept.
pub(super) fn of(fields: &Fields) -> Retention {
    let days = fields.whole("keep_days");
    Retention {
        max_age: days.map(|days| Duration::from_secs(days.saturating_mul(DAY))),
        max_bytes: fields.whole("keep_bytes").map(Bytes),
    }
}
