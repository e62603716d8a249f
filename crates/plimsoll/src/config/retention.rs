//! Parses `[sessions]`: how long sessions are kept. The store deletes them.

use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::Retention;
use schemars::JsonSchema;
use serde::Deserialize;

use super::form::{Set, Whole};

const DAY: u64 = 24 * 60 * 60;

/// `[sessions]`. By default all sessions are kept.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct SessionTable {
    /// Delete sessions that were last written more than so many days ago.
    keep_days: Set<Whole<1>>,
    /// Delete the oldest sessions until the logs of all have at most so many bytes.
    keep_bytes: Set<Whole<1>>,
}

impl SessionTable {
    /// Returns how long sessions are kept.
    pub(crate) fn retention(&self) -> Retention {
        let days = self.keep_days.0;
        Retention {
            max_age: days.map(|days| Duration::from_secs(days.saturating_mul(DAY))),
            max_bytes: self.keep_bytes.0.map(Bytes),
        }
    }
}
