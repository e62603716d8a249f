//! The table of everything that can be set, in the order in which it is shown. To add a key, add a
//! row: reading, flags, variables, the schema, the docs and the tests follow it.

mod agent;
mod context;
mod limits;
mod model;

use super::key::Key;

/// The agent's own table.
pub(crate) const AGENT: &[&str] = &[""];

/// Every key.
pub fn all() -> impl Iterator<Item = &'static Key> {
    let rows: [&'static [Key]; 4] = [agent::ROWS, model::ROWS, limits::ROWS, context::ROWS];
    rows.into_iter().flatten()
}

/// The key of this full name.
#[must_use]
pub fn named(path: &str) -> Option<&'static Key> {
    let known = super::key::NAMES.get(path);
    known.map(|known| known.key)
}
