//! [`Fields`]: a table of a file that is not an agent's, such as `[[mcp]]` or `[providers.NAME]`, read
//! as one structure.

use std::collections::BTreeMap;

use plimsoll_context::nearest;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::document::Located;
use super::fault::{Faults, Place};
use super::key::fields_of;
use super::keys::schema_of;

/// A table that was read as a `T`, with the places of its fields.
#[derive(Debug)]
pub(crate) struct Fields<T> {
    /// The fields whose values are good.
    pub(crate) value: T,
    /// The place of the table.
    pub(crate) place: Place,
    /// The places of the fields that are present, and whether their values are good.
    fields: BTreeMap<String, (Place, bool)>,
}

impl<T: DeserializeOwned + JsonSchema + Default> Fields<T> {
    /// Reads a table. `name` is its name in faults, such as `[[mcp]]`.
    pub(crate) fn read(name: &str, given: &Located, faults: &mut Faults) -> Self {
        let mut read = Self {
            value: T::default(),
            place: given.place,
            fields: BTreeMap::new(),
        };
        let Some(entries) = given.entries() else {
            let text = format!("{name} is {}; give a table of settings", given.describe());
            faults.push(given.place, text);
            return read;
        };
        let schemas = fields_of(schema_of::<T>());
        let mut good = Table::new();
        for (key, entry) in entries {
            let Some(schema) = schemas.get(key) else {
                let known: Vec<&str> = schemas.keys().map(String::as_str).collect();
                let near = nearest(key, known.iter().copied());
                let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
                let known = known.join(", ");
                let text = format!("there is no `{key}` in {name}; {near}known are: {known}");
                faults.push(entry.place, text);
                continue;
            };
            let one = Table::from_iter([(key.clone(), entry.value())]);
            let is_good = T::deserialize(Value::Table(one)).is_ok();
            read.fields.insert(key.clone(), (entry.place, is_good));
            if is_good {
                good.insert(key.clone(), entry.value());
                continue;
            }
            let takes = schema.get("x-takes").and_then(|takes| takes.as_str());
            let takes = takes.unwrap_or_default();
            // The value of a field that holds a key is never printed.
            let given = match schema.get("x-secret") {
                Some(_) => "wrong".to_owned(),
                None => entry.describe(),
            };
            faults.push(entry.place, format!("`{key}` is {given}; give {takes}"));
        }
        read.value = T::deserialize(Value::Table(good)).unwrap_or_default();
        read
    }
}

impl<T> Fields<T> {
    /// Returns the place of a field, or else that of its table.
    pub(crate) fn place_of(&self, key: &str) -> Place {
        self.fields.get(key).map_or(self.place, |(place, _)| *place)
    }

    /// Returns `true` if a field is present, even if its value was refused.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.fields.contains_key(key)
    }

    /// Returns `true` if the value of a field was refused.
    pub(crate) fn failed(&self, key: &str) -> bool {
        self.fields.get(key).is_some_and(|(_, is_good)| !is_good)
    }

    /// Reports required fields that are absent.
    pub(crate) fn require(&self, name: &str, keys: &[&str], faults: &mut Faults) {
        for key in keys.iter().filter(|key| !self.has(key)) {
            faults.push(self.place, format!("{name} needs `{key}`"));
        }
    }
}
