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
    pub(crate) given: Located,
    /// The number of its layer among those that were merged, from the lowest.
    pub(crate) depth: usize,
}

impl FoundSetting {
    /// Returns the value, as the field of the setting has it.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_value(self.value()?).ok()
    }

    pub(crate) fn value(&self) -> Option<Json> {
        self.key.kind.read(&self.given.value())
    }
}

/// The settings of one source, by their full names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer(pub(crate) BTreeMap<String, FoundSetting>);

impl Layer {
    /// Reads settings of an agent, or of all agents.
    pub(crate) fn of<'a>(
        entries: impl IntoIterator<Item = &'a (String, Located)>,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        for (name, given) in entries {
            layer.read(["", ""], name, given, faults);
        }
        layer
    }

    /// Reads a table that is not one of settings, such as `[[mcp]]`; `shown` is its name in faults.
    pub(crate) fn of_table(table: &str, shown: &str, given: &Located, faults: &mut Faults) -> Self {
        let mut layer = Self::default();
        layer.table(table, shown, given, faults);
        for key in key::fields(table).filter(|key| key.is_required) {
            if given.entries().is_some() && given.get(&key.name).is_none() {
                let text = format!("{shown} needs `{}`", key.name);
                faults.push(&given.origin, text);
            }
        }
        layer
    }

    /// Returns the fields of a table in the form in which serde reads them.
    pub(crate) fn object(&self) -> Json {
        let fields = self.0.iter();
        let fields = fields.filter_map(|(name, found)| Some((name.clone(), found.value()?)));
        fields.collect()
    }

    /// Returns the value of a field.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        self.0.get(path)?.read()
    }

    /// Returns the value of a setting, if it is a text.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.get(path)
    }

    /// Reads a table of known fields.
    fn table(&mut self, table: &str, shown: &str, given: &Located, faults: &mut Faults) {
        let Some(entries) = given.entries() else {
            // The value may be a key.
            let text = format!("{shown} has to be a table of settings");
            return faults.push(&given.origin, text);
        };
        for (name, given) in entries {
            self.read([table, shown], name, given, faults);
        }
    }

    /// Reads a field of a table, or a table of settings. Faults call the table `shown`.
    pub(crate) fn read(
        &mut self,
        [table, shown]: [&str; 2],
        name: &str,
        given: &Located,
        faults: &mut Faults,
    ) {
        match key::field(&join(table, name)) {
            Some(key) => self.put(key, given, faults),
            None if table.is_empty() && key::is_table(name) => {
                self.table(name, &format!("[{name}]"), given, faults);
                // The presence of a table can have a meaning, even if it is empty.
                if let (Some([]), Some(key)) = (given.entries(), key::fields(name).next()) {
                    self.insert(format!("{name}."), key, given.clone());
                }
            }
            None => faults.push(&given.origin, unknown(table, shown, name)),
        }
    }

    /// Adds a value if it is accepted. If a key is given more than once, the last value applies; lists
    /// are joined. Other spellings of a list become lists, and paths are relative to the folder of the file,
    /// so that layers can be merged.
    pub(crate) fn put(&mut self, key: &'static SettingKey, given: &Located, faults: &mut Faults) {
        let Some(value) = key.read(given, faults) else {
            return;
        };
        let mut given = match given.items() {
            None if value.is_array() => Located::new(value, &given.origin),
            _ => given.clone(),
        };
        if let SettingKind::Path | SettingKind::Paths = key.kind {
            given.put_beside_file();
        }
        // A table that is not one of settings is read by itself.
        let path = match key.group.as_str() {
            "" => key.name.clone(),
            _ => key.path(),
        };
        let is_list = matches!(
            key.kind,
            SettingKind::Names | SettingKind::Texts | SettingKind::Rules
        );
        if let (true, Some(before)) = (is_list, self.0.get(&path)) {
            given = before.given.clone().joined(given);
        }
        self.insert(path, key, given);
    }

    fn insert(&mut self, path: String, key: &'static SettingKey, given: Located) {
        let depth = 0;
        self.0.insert(path, FoundSetting { key, given, depth });
    }
}

/// Returns the fault of an unknown name in a table, which faults call `shown`.
fn unknown(table: &str, shown: &str, name: &str) -> String {
    let outer = table.split('.').next().unwrap_or(table);
    if TABLES.contains(&outer) {
        return format!("[{outer}] can only be set in a file");
    }
    if table.is_empty() && TABLES.contains(&name) {
        return format!("`{name}` is of the whole file and not of one agent");
    }
    let mut known = key::known_in(table);
    let what = match (table, known.as_slice()) {
        (_, []) => format!("there is no table {shown}"),
        ("", _) => format!("there is no `{name}`"),
        _ => format!("there is no `{name}` in {shown}"),
    };
    let as_flag = name.replace('_', "-");
    let is_meant = |key: &&SettingKey| {
        key.name == name || [&key.flag, &key.alias].contains(&&Some(as_flag.clone()))
    };
    let meant = match keys().find(is_meant) {
        Some(key) if key.path() == name => {
            return format!("{what}; `{name}` stands outside of any table");
        }
        Some(key) => Some(key.path()),
        None => {
            known.extend(TABLES.iter().filter(|_| table.is_empty()));
            nearest(name, known.iter().copied()).map(str::to_owned)
        }
    };
    match meant {
        Some(meant) => format!("{what}; did you mean `{meant}`?"),
        None if table.is_empty() || known.is_empty() => {
            format!("{what}; `plimsoll config show` lists all there are")
        }
        None => format!("{what}; known are: {}", known.join(", ")),
    }
}
