//! [`Layer`]: the settings of one source (a file, one of its agents, the environment, the command
//! line), each with its origin. `merge.rs` merges layers.

use std::collections::BTreeMap;

use plimsoll_context::nearest;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::document::Located;
use super::fault::Faults;
use super::key::{self, SettingKey, join, keys};
use super::kind::SettingKind;

/// Tables of a file that are not settings of an agent.
pub(crate) const TABLES: [&str; 4] = ["agents", "mcp", "models", "providers"];

/// A setting with its origin.
#[derive(Debug, Clone)]
pub(crate) struct FoundSetting {
    pub(crate) key: &'static SettingKey,
    /// The value as it is written.
    pub(crate) given: Located,
    /// The value as serde reads the field of the setting.
    pub(crate) value: Json,
    /// The number of its layer among those that were merged, from the lowest.
    pub(crate) depth: usize,
}

impl FoundSetting {
    /// Returns the value, as the field of the setting has it.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(self.value.clone()).ok()
    }

    /// Adds the items of another list behind its own.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.given.append(other.given);
        if let (Some(own), Some(more)) = (self.value.as_array_mut(), other.value.as_array_mut()) {
            own.append(more);
        }
    }
}

/// The settings of one source, by their full names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer(pub(crate) BTreeMap<String, FoundSetting>);

impl Layer {
    /// Reads settings of an agent, or of all agents.
    pub(crate) fn of<'a>(
        entries: impl IntoIterator<Item = &'a (String, Located)>,
        is_of_one_agent: bool,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        for (name, given) in entries {
            layer.read("", name, given, faults);
        }
        for FoundSetting { key, given, .. } in layer.0.values() {
            let (there, name) = match key.table.as_str() {
                _ if key.is_of_one_agent && !is_of_one_agent => ("one agent", "[[agents]]"),
                "sessions" if is_of_one_agent => ("all agents", "[sessions]"),
                _ => continue,
            };
            let text = format!("`{}` is of {there}; write it in {name}", key.name);
            faults.push(&given.origin, text);
        }
        layer
    }

    /// Reads a table that is not one of settings, such as `[[mcp]]`.
    pub(crate) fn of_table(table: &str, given: &Located, faults: &mut Faults) -> Self {
        let mut layer = Self::default();
        layer.table(table, given, faults);
        layer.clone().check_rivals(faults);
        for key in key::fields(table).filter(|key| key.is_required) {
            if given.entries().is_some() && given.get(&key.name).is_none() {
                faults.push(&given.origin, format!("{table} needs `{}`", key.name));
            }
        }
        layer
    }

    /// Returns the fields of a table in the form in which serde reads them.
    pub(crate) fn object(self) -> Json {
        let fields = self.0.into_iter();
        fields.map(|(name, found)| (name, found.value)).collect()
    }

    /// Returns the value of a field.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        self.0.get(path)?.read()
    }

    /// Reads a table of known fields.
    fn table(&mut self, table: &str, given: &Located, faults: &mut Faults) {
        let Some(entries) = given.entries() else {
            // The value may be a key.
            let text = format!("{} has to be a table of settings", shown(table));
            return faults.push(&given.origin, text);
        };
        for (name, given) in entries {
            self.read(table, name, given, faults);
        }
    }

    /// Reads a field of a table, or a table of settings.
    pub(crate) fn read(&mut self, table: &str, name: &str, given: &Located, faults: &mut Faults) {
        match key::field(&join(table, name)) {
            Some(key) => self.put(key, given, faults),
            None if table.is_empty() && key::is_table(name) => {
                self.table(name, given, faults);
                // An empty table limits the context, too: by the default of its first setting.
                if let ("context" | "compaction", Some([])) = (name, given.entries())
                    && let Some(key) = key::fields(name).next()
                {
                    let default = key.value.clone().unwrap_or_default();
                    self.put(key, &Located::new(default, &given.origin), faults);
                }
            }
            None => faults.push(&given.origin, unknown(table, name)),
        }
    }

    /// Adds a value if it is accepted. If a key is given more than once, the last value applies; lists
    /// are joined. Other spellings of a list become lists, and paths are relative to the folder of the file,
    /// so that layers can be merged.
    pub(crate) fn put(&mut self, key: &'static SettingKey, given: &Located, faults: &mut Faults) {
        let mut given = given.clone();
        if let SettingKind::Path | SettingKind::Paths = key.kind {
            given.put_beside_file();
        }
        let Some(value) = key.read(&given, faults) else {
            return;
        };
        if value.is_array() && given.items().is_none() {
            given = Located::new(value.clone(), &given.origin);
        }
        // A table that is not one of settings is read by itself.
        let path = match key.group.as_str() {
            "" => key.name.clone(),
            _ => key.path(),
        };
        let found = FoundSetting {
            key,
            given,
            value,
            depth: 0,
        };
        let is_list = [SettingKind::Names, SettingKind::Texts, SettingKind::Tables];
        match self.0.get_mut(&path) {
            Some(before) if is_list.contains(&key.kind) => before.append(found),
            _ => _ = self.0.insert(path, found),
        }
    }
}

/// Returns the fault of an unknown name in a table.
fn unknown(table: &str, name: &str) -> String {
    let outer = table.split('.').next().unwrap_or(table);
    if TABLES.contains(&outer) {
        return format!("[{outer}] can only be set in a file");
    }
    if table.is_empty() && TABLES.contains(&name) {
        return format!("`{name}` is of the whole file and not of one agent");
    }
    let mut known = key::known_in(table);
    let what = match known.as_slice() {
        [] => format!("there is no table [{table}]"),
        _ if table.is_empty() => format!("there is no `{name}`"),
        _ => format!("there is no `{name}` in {}", shown(table)),
    };
    let as_flag = Some(name.replace('_', "-"));
    let is_meant =
        |key: &&SettingKey| key.name == name || key.flag == as_flag || key.alias == as_flag;
    let list = match known.join(", ") {
        list if table.is_empty() || list.is_empty() => {
            "`plimsoll config show` lists all there are".to_owned()
        }
        list => format!("known are: {list}"),
    };
    known.extend(TABLES.iter().filter(|_| table.is_empty()));
    match (keys().find(is_meant), nearest(name, known)) {
        (Some(key), _) if key.path() == name => {
            format!("{what}; `{name}` stands outside of any table")
        }
        (Some(key), _) => format!("{what}; did you mean `{}`?", key.path()),
        (None, Some(near)) => format!("{what}; did you mean `{near}`?"),
        (None, None) => format!("{what}; {list}"),
    }
}

/// Returns the name of a table as in a file.
fn shown(table: &str) -> String {
    if table.starts_with('[') {
        table.to_owned()
    } else {
        format!("[{table}]")
    }
}
