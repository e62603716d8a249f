//! [`Layer`]: the settings of one source (a file, one of its agents, the environment, the command
//! line), each with its origin. `merge.rs` merges layers.

use std::collections::BTreeMap;

use plimsoll_context::nearest;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::document::{Located, describe};
use super::fault::{Faults, Origin};
use super::key::{self, SettingKey, join, keys};
use super::kind::SettingKind;
use super::permission::Rule;

/// Tables of a file that are not settings of an agent.
pub(crate) const TABLES: [&str; 4] = ["agents", "mcp", "models", "providers"];

/// A setting with its origin.
#[derive(Debug, Clone)]
pub(crate) struct FoundSetting {
    pub(crate) key: &'static SettingKey,
    pub(crate) origin: Origin,
    /// The origin of each item, if the value is a list.
    pub(crate) items: Vec<Origin>,
    /// The value as a file spells it.
    pub(crate) written: Json,
}

impl FoundSetting {
    /// Reads a setting, if its value is accepted. Paths are beside the file, and other spellings of a list
    /// become lists, so that layers can be merged.
    fn read(key: &'static SettingKey, given: &Located, faults: &mut Faults) -> Option<Self> {
        let value = key.read(given, faults)?;
        if key.items == "[[permissions]]" {
            Rule::check_order(&value, given, faults);
        }
        let items = value.as_array().map_or(0, Vec::len);
        let items = (0..items).map(|at| given.origin_of(&at.to_string()).clone());
        let is_path = matches!(key.kind, SettingKind::Path | SettingKind::Paths);
        let is_list = value.is_array() && !given.value.is_array();
        let is_new = is_path || is_list;
        Some(Self {
            key,
            origin: given.origin().clone(),
            items: items.collect(),
            written: if is_new { value } else { given.value.clone() },
        })
    }

    /// Returns the value as serde reads the field of the setting.
    pub(crate) fn value(&self) -> Json {
        self.key.convert(&self.written).unwrap_or_default()
    }

    /// Adds the items of another list behind its own.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.items.append(&mut other.items);
        if let (Json::Array(own), Json::Array(more)) = (&mut self.written, &mut other.written) {
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
        entries: impl IntoIterator<Item = (&'a str, Located)>,
        is_of_one_agent: bool,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        for (name, given) in entries {
            layer.read("", name, &given, faults);
        }
        layer.check_scope(is_of_one_agent, faults);
        layer
    }

    /// Reports the settings that cannot be set for one agent, or for all, and removes them.
    pub(crate) fn check_scope(&mut self, is_of_one_agent: bool, faults: &mut Faults) {
        self.0.retain(|_, FoundSetting { key, origin, .. }| {
            let (there, name) = match key.table.as_str() {
                _ if key.is_of_one_agent && !is_of_one_agent => ("one agent", "[[agents]]"),
                "sessions" if is_of_one_agent => ("all agents", "[sessions]"),
                _ => return true,
            };
            let text = format!("`{}` is of {there}; write it in {name}", key.name);
            faults.push(origin, text);
            false
        });
    }

    /// Reads a table that is not one of settings, such as `[[mcp]]`.
    pub(crate) fn of_table(table: &str, given: &Located, faults: &mut Faults) -> Self {
        let mut layer = Self::default();
        layer.table(table, given, faults);
        layer.clone().check_rivals(faults);
        for key in key::fields(table).filter(|key| key.is_required) {
            if given.value.is_object() && given.get(&key.name).is_none() {
                faults.push(given.origin(), format!("{table} needs `{}`", key.name));
            }
        }
        layer
    }

    /// Returns the fields of a table in the form in which serde reads them.
    pub(crate) fn object(self) -> Json {
        let fields = self.0.into_iter();
        fields.map(|(name, found)| (name, found.value())).collect()
    }

    /// Returns the value of a field.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        serde_json::from_value(self.0.get(path)?.value()).ok()
    }

    /// Reads a table of known fields.
    fn table(&mut self, table: &str, given: &Located, faults: &mut Faults) {
        let fault = match (given.value.as_object(), table) {
            // The value may be a key.
            (None, _) => Some("has to be a table of settings"),
            // An empty one might mean the defaults of another program.
            (Some(entries), "context" | "compaction") if entries.is_empty() => {
                Some("is empty; set something in it, or remove it")
            }
            _ => None,
        };
        if let Some(fault) = fault {
            faults.push(given.origin(), format!("{} {fault}", shown(table)));
        }
        for (name, given) in given.entries().into_iter().flatten() {
            self.read(table, name, &given, faults);
        }
    }

    /// Reads a field of a table, or a table of settings.
    pub(crate) fn read(&mut self, table: &str, name: &str, given: &Located, faults: &mut Faults) {
        match key::field(&join(table, name)) {
            Some(key) => self.put(key, given, faults),
            None if table.is_empty() && key::is_table(name) => self.table(name, given, faults),
            None => faults.push(given.origin(), unknown(table, name)),
        }
    }

    /// Adds a value if it is accepted. If a key is given more than once, the last value applies; lists
    /// are joined.
    pub(crate) fn put(&mut self, key: &'static SettingKey, given: &Located, faults: &mut Faults) {
        let Some(found) = FoundSetting::read(key, given, faults) else {
            return;
        };
        // A table that is not one of settings is read by itself.
        let path = match key.group.as_str() {
            "" => key.name.clone(),
            _ => key.path(),
        };
        let is_list = [SettingKind::Names, SettingKind::Texts, SettingKind::Tables];
        match self.0.get_mut(&path) {
            Some(before) if is_list.contains(&key.kind) => before.append(found),
            _ => _ = self.0.insert(path, found),
        }
    }
}

/// Returns the tables of a list such as `[[mcp]]`. Reports other values, and tables of one name.
pub(crate) fn tables(name: &str, given: &Located, faults: &mut Faults) -> Vec<Located> {
    let items = given.items().into_iter().flatten();
    let tables: Vec<Located> = items.filter(|item| item.value.is_object()).collect();
    if given.value.as_array().map(Vec::len) != Some(tables.len()) {
        let value = describe(&given.value);
        let text = format!("[[{name}]] is {value}; give a list of tables, each [[{name}]]");
        faults.push(given.origin(), text);
        return Vec::new();
    }
    let mut named = BTreeMap::new();
    for given in tables.iter().filter_map(|table| table.get("name")) {
        let Some(own) = given.value.as_str() else {
            continue;
        };
        if let Some(other) = named.insert(own.to_owned(), given.origin().clone()) {
            let other = other.beside(given.origin());
            let text = format!(
                "two of [[{name}]] are named `{own}` (the other is on {other}); rename one"
            );
            faults.push(given.origin(), text);
        }
    }
    tables
}

/// Returns the fault of an unknown name in a table.
fn unknown(table: &str, name: &str) -> String {
    let outer = table.split('.').next().filter(|outer| !outer.is_empty());
    let outer = outer.unwrap_or(name);
    if TABLES.contains(&outer) {
        return format!("[{outer}] is of the whole file; write it at the top of one");
    }
    let mut known = key::known_in(table);
    let all = "`plimsoll config show` lists all there are".to_owned();
    let (what, list) = match known.join(", ") {
        _ if table.is_empty() => (format!("there is no `{name}`"), all),
        list if list.is_empty() => (format!("there is no table [{table}]"), all),
        list => {
            let what = format!("there is no `{name}` in {}", shown(table));
            (what, format!("known are: {list}"))
        }
    };
    known.extend(TABLES.iter().filter(|_| table.is_empty()));
    let as_flag = Some(name.replace('_', "-"));
    let is_meant =
        |key: &&SettingKey| key.name == name || key.flag == as_flag || key.alias == as_flag;
    let meant = keys().find(is_meant).map(SettingKey::path);
    match meant.as_deref().or_else(|| nearest(name, known)) {
        Some(meant) if meant == name => format!("{what}; `{name}` stands outside of any table"),
        Some(meant) => format!("{what}; did you mean `{meant}`?"),
        None => format!("{what}; {list}"),
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
