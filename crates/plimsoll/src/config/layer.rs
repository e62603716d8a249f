//! [`Layer`]: the settings of one source (a file, one of its agents, the environment, the command
//! line), each with its origin. `merge.rs` merges layers.

use std::collections::BTreeMap;

use plimsoll_context::nearest;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::document::{Data, Located};
use super::fault::Faults;
use super::key::{self, SettingKey, join, keys};
use super::kind::{SettingKind, names, texts};
use super::permission::Rule;

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
        let value = self.key.kind.read(&self.given.value())?;
        serde_json::from_value(value).ok()
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
            if given.entries().is_some() && given.get(key.name).is_none() {
                let text = format!("{shown} needs `{}`", key.name);
                faults.push(&given.origin, text);
            }
        }
        layer
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
    /// are joined.
    pub(crate) fn put(&mut self, key: &'static SettingKey, given: &Located, faults: &mut Faults) {
        if !is_accepted(key, given, faults) {
            return;
        }
        let mut given = listed(key, given.clone());
        // A table that is not one of settings is read by itself.
        let path = if key.group.is_empty() {
            key.name.to_owned()
        } else {
            key.path()
        };
        let is_list = matches!(
            key.kind,
            SettingKind::Names | SettingKind::Texts | SettingKind::Rules
        );
        let before = self.0.remove(&path).filter(|_| is_list);
        if let (Some(Data::List(mut before)), Data::List(more)) =
            (before.map(|found| found.given.data), &mut given.data)
        {
            before.append(more);
            *more = before;
        }
        self.insert(path, key, given);
    }

    pub(crate) fn insert(&mut self, path: String, key: &'static SettingKey, given: Located) {
        let depth = 0;
        self.0.insert(path, FoundSetting { key, given, depth });
    }
}

/// Checks a value, and reports why it is not accepted: the field of a table in a list, the item of a
/// list, or the whole.
fn is_accepted(key: &SettingKey, given: &Located, faults: &mut Faults) -> bool {
    let before = faults.faults.len();
    let items = given.items().unwrap_or_default();
    if let Some(table) = key.kind.items() {
        for item in items {
            Layer::of_table(table, table, item, faults);
        }
    }
    if faults.faults.len() > before || key.accepts(&given.value()) {
        return faults.faults.len() == before;
    }
    let name = format!("`{}`", key.name);
    let takes = key.kind.takes();
    let is_list = takes.starts_with("a list");
    let mut items = items.iter().filter(|_| is_list);
    let item = items.find(|item| !key.accepts(&Value::Array(vec![item.value()])));
    let has_entries = matches!(
        key.kind,
        SettingKind::Digest | SettingKind::Written(_) | SettingKind::Secrets
    );
    let entries = given.entries().filter(|_| has_entries);
    let mut entries = entries.unwrap_or_default().iter();
    let entry = entries.find(|(name, value)| {
        !key.accepts(&Table::from_iter([(name.clone(), value.value())]).into())
    });
    let (name, given) = match (item, entry) {
        (Some(item), _) => (format!("an item of {name}"), item),
        (_, Some((entry, value))) => (format!("`{entry}` in {name}"), value),
        (None, None) => (name, given),
    };
    // A key is never printed.
    let described = match key.kind {
        SettingKind::Secret | SettingKind::Secrets => "wrong".to_owned(),
        _ => given.describe(),
    };
    let table = key.kind.items().filter(|_| given.entries().is_some());
    let instead = table.map(|table| format!("a list of tables, each {table}"));
    let takes = instead.unwrap_or(takes);
    let text = format!("{name} is {described}; give {takes}");
    faults.push(&given.origin, text);
    false
}

/// Returns an accepted value with lists in one form and paths relative to the folder of the file,
/// so that layers can be merged.
fn listed(key: &SettingKey, given: Located) -> Located {
    let folder = given.origin.path().and_then(std::path::Path::parent);
    let beside = |path: String| match folder {
        Some(folder) => Value::from(folder.join(path).display().to_string()),
        None => path.into(),
    };
    let value = given.value();
    let value = match (key.kind, &value) {
        (SettingKind::Path, Value::String(path)) => Some(beside(path.clone())),
        (SettingKind::Paths, _) => {
            texts(&value).map(|paths| Value::Array(paths.into_iter().map(beside).collect()))
        }
        (SettingKind::Names, _) => names(&value).map(Value::from),
        (SettingKind::Texts, _) => texts(&value).map(Value::from),
        (SettingKind::Rules, Value::String(lines)) => Rule::tables_of(lines),
        _ => None,
    };
    value.map_or_else(|| given.clone(), |value| Located::new(value, &given.origin))
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
    let known = key::known_in(table);
    let what = match (table, known.as_slice()) {
        (_, []) => format!("there is no table {shown}"),
        ("", _) => format!("there is no `{name}`"),
        _ => format!("there is no `{name}` in {shown}"),
    };
    let as_flag = name.replace('_', "-");
    let is_meant = |key: &&SettingKey| {
        key.name == name || [key.flag, key.alias].contains(&Some(as_flag.as_str()))
    };
    let tables = TABLES.iter().filter(|_| table.is_empty());
    match keys().find(is_meant) {
        Some(key) if key.path() == name => {
            format!("{what}; `{name}` stands outside of any table")
        }
        Some(key) => format!("{what}; did you mean `{}`?", key.path()),
        None => match nearest(name, known.iter().chain(tables).copied()) {
            Some(near) => format!("{what}; did you mean `{near}`?"),
            None if table.is_empty() || known.is_empty() => {
                format!("{what}; `plimsoll config show` lists all there are")
            }
            None => format!("{what}; known are: {}", known.join(", ")),
        },
    }
}
