//! [`Fields`]: a table of a file that is not an agent's, such as `[[mcp]]` or `[providers.NAME]`, read
//! as one structure.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_context::nearest;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::document::{Located, describe};
use super::fault::Faults;
use super::key::fields_of;
use super::keys::schema_of;

/// A table that was read as a `T`, with the lines of its fields.
#[derive(Debug)]
pub(crate) struct Fields<T> {
    /// The fields whose values are good.
    pub(crate) value: T,
    /// The first line of the table.
    pub(crate) line: usize,
    lines: BTreeMap<String, usize>,
    /// Fields whose values are invalid and have been reported.
    failed: BTreeSet<String>,
}

impl<T: DeserializeOwned + JsonSchema + Default> Fields<T> {
    /// Reads a table. `place` is its name in faults, such as `[[mcp]]`.
    pub(crate) fn read(place: &str, given: &Located<'_>, faults: &mut Faults) -> Self {
        let mut read = Self {
            value: T::default(),
            line: given.line,
            lines: BTreeMap::new(),
            failed: BTreeSet::new(),
        };
        let Some(entries) = given.entries() else {
            let text = format!(
                "{place} is {}; give a table of settings",
                describe(given.value)
            );
            faults.at(given.line, text);
            return read;
        };
        let fields = fields_of(schema_of::<T>());
        let mut good = Table::new();
        for (name, entry) in entries {
            let Some(schema) = fields.get(name) else {
                let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                let near = nearest(name, known.iter().copied());
                let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
                let known = known.join(", ");
                let text = format!("there is no `{name}` in {place}; {near}known are: {known}");
                faults.at(entry.line, text);
                continue;
            };
            let one = Table::from_iter([(name.to_owned(), entry.value.clone())]);
            if T::deserialize(Value::Table(one)).is_ok() {
                good.insert(name.to_owned(), entry.value.clone());
                read.lines.insert(name.to_owned(), entry.line);
                continue;
            }
            let takes = schema
                .get("x-takes")
                .and_then(|takes| takes.as_str())
                .unwrap_or_default();
            // The value of a field that holds a key is never printed.
            let given = match schema.get("x-secret") {
                Some(_) => "wrong".to_owned(),
                None => describe(entry.value),
            };
            faults.at(entry.line, format!("`{name}` is {given}; give {takes}"));
            read.failed.insert(name.to_owned());
        }
        read.value = T::deserialize(Value::Table(good)).unwrap_or_default();
        read
    }
}

impl<T> Fields<T> {
    /// Returns the line of a field, or else that of its table.
    pub(crate) fn line_of(&self, name: &str) -> usize {
        self.lines.get(name).copied().unwrap_or(self.line)
    }

    /// Returns `true` if a field is present and good.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lines.contains_key(name)
    }

    /// Returns `true` if a field is present and invalid.
    pub(crate) fn failed(&self, name: &str) -> bool {
        self.failed.contains(name)
    }

    /// Reports required fields that are absent.
    pub(crate) fn require(&self, place: &str, names: &[&str], faults: &mut Faults) {
        let absent = names
            .iter()
            .filter(|name| !self.has(name) && !self.failed(name));
        for name in absent {
            faults.at(self.line, format!("{place} needs `{name}`"));
        }
    }
}
