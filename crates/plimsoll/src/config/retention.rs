//! Parses `[sessions]`: how long sessions are kept. The store deletes them.

use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::Retention;

use super::document::Located;
use super::fault::Faults;
use super::form::Whole;
use super::keys;
use super::layer::Layer;

const DAY: u64 = 24 * 60 * 60;
/// The name of the table.
const TABLE: &str = "[sessions]";

keys::fields! {
    /// `[sessions]`.
    fields("", TABLE) {
        /// Delete sessions that were last written more than so many days ago. Default: no limit.
        keep_days: Whole<1>;
        /// Delete the oldest sessions until the logs of all have at most so many bytes. Default: no
        /// limit.
        keep_bytes: Whole<1>;
    }
}

/// Returns how long sessions are kept. Reports the faults of the table.
pub(crate) fn of(given: &Located, faults: &mut Faults) -> Retention {
    let table = Layer::of_table(TABLE, TABLE, given, faults);
    let days = table.get::<Whole<1>>("keep_days");
    Retention {
        max_age: days.map(|days| Duration::from_secs(days.saturating_mul(DAY))),
        max_bytes: table.get::<Whole<1>>("keep_bytes").map(Bytes),
    }
}
