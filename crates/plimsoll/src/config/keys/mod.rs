//! The table of all settings. To add a setting, add a row: parsing, flags, environment variables, the
//! schema, the documentation and the tests follow from it.

mod agent;
mod context;
mod limits;
mod model;

use serde::de::DeserializeOwned;

use super::key::SettingKey;

/// The keys by topic, in the order in which `--help` and the documentation list them.
pub const GROUPS: [(&str, &[SettingKey]); 4] = [
    ("Agent and tools", agent::ROWS),
    ("Model", model::ROWS),
    ("Limits", limits::ROWS),
    ("Context", context::ROWS),
];

/// Every key.
pub fn all() -> impl Iterator<Item = &'static SettingKey> {
    GROUPS.into_iter().flat_map(|(_, rows)| rows)
}

/// Sets a field to the value whose name this is in a log too.
fn choose<T: DeserializeOwned>(field: &mut T, name: &str) {
    if let Ok(value) = serde_json::from_value(name.into()) {
        *field = value;
    }
}

/// Returns the key with this full name, or `None` if there is no such setting.
#[must_use]
pub fn named(path: &str) -> Option<&'static SettingKey> {
    super::key::NAMES.get(path).copied()
}
