//! [`Layer`]: the settings of one source (a file, one of its agents, the environment, the command
//! line), each with its origin. `resolve.rs` merges layers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_context::{nearest, snake_case};
use toml::{Table, Value};

use super::document::{Located, parse_value};
use super::fault::{Faults, Origin, Place};
use super::form::{Form, Names, SettingKind, Texts};
use super::import;
use super::key::{self, PREFIX, Scope, SettingKey, join, keys};
use super::permission::Rule;

/// Maximum number of names that are suggested after a mistake.
const MAX_LISTED: usize = 16;

/// Tables of a file that are not settings of an agent.
pub(crate) const TABLES: [&str; 5] = ["agents", "mcp", "models", "providers", "sessions"];

/// A setting with its origin.
#[derive(Debug, Clone)]
pub(crate) struct FoundSetting {
    pub(crate) key: &'static SettingKey,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// The settings of one source, by their full names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    pub(crate) found: BTreeMap<String, FoundSetting>,
    /// The tables in the source, empty or not.
    pub(crate) tables: BTreeMap<String, Origin>,
}

/// The owner of a layer's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    All,
    OneAgent,
}

impl Layer {
    /// Reads settings of an agent, or of all agents.
    pub(crate) fn of<'a>(
        owner: Owner,
        entries: impl IntoIterator<Item = &'a (String, Located)>,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        for (name, given) in entries {
            match key::key(name) {
                Some(key) if key.scope == Scope::AgentOnly && owner == Owner::All => {
                    let text = format!("`{name}` is of one agent; write it in [[agents]]");
                    faults.push(given.place, text);
                }
                None if key::is_table(name) => {
                    let shown = format!("[{name}]");
                    layer
                        .tables
                        .insert(name.clone(), faults.origin(given.place));
                    layer.read(name, &shown, given, faults);
                }
                _ => layer.field("", "", name, given, faults),
            }
        }
        layer
    }

    /// Reads a table that is not one of settings, such as `[[mcp]]`; `shown` is its name in faults.
    /// Returns `None` if it has any.
    pub(crate) fn of_table(
        table: &str,
        shown: &str,
        given: &Located,
        faults: &mut Faults,
    ) -> Option<Self> {
        let before = faults.list.len();
        let mut layer = Self::default();
        layer.read(table, shown, given, faults);
        for key in key::fields(table).filter(|key| key.is_required) {
            if given.entries().is_some() && given.get(key.name).is_none() {
                let text = format!("{}{shown} needs `{}`", faults.source.prefix(), key.name);
                faults.push(given.place, text);
            }
        }
        (faults.list.len() == before).then_some(layer)
    }

    /// Parses flags. Each has the flag as written, the key's full name and the text.
    pub(crate) fn of_flags(flags: &[(String, String, String)], faults: &mut Faults) -> Self {
        let mut layer = Self::default();
        for (flag, path, text) in flags {
            faults.source = Origin::Flag(flag.clone());
            match (key::key(path), parse_value(text)) {
                (Some(key), _) => {
                    layer.put(key, &Located::new(key.parse(text), Place::START), faults);
                }
                (None, Value::Table(entries)) if key::is_table(path) => {
                    layer.tables.insert(path.clone(), faults.source.clone());
                    for (name, value) in entries {
                        faults.source = Origin::Flag(format!("{flag}.{name}"));
                        let given = Located::new(value, Place::START);
                        layer.field(path, &format!("[{path}]"), &name, &given, faults);
                    }
                }
                (None, value) if key::is_table(path) => {
                    let first = key::fields(path).next().map_or("", |key| key.name);
                    let given = Located::new(value, Place::START).describe();
                    let text = format!(
                        "{flag} is {given}, but [{path}] is a table of settings; set one, as in {flag}.{first}=…"
                    );
                    faults.push(Place::START, text);
                }
                (None, _) => {
                    let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
                    let text = unknown(table, &format!("[{table}]"), name);
                    faults.push(Place::START, format!("{flag}: {text}"));
                }
            }
        }
        layer
    }

    /// Parses environment variables.
    pub(crate) fn of_variables(
        variables: &dyn Fn(&str) -> Option<String>,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        for key in keys().filter(|key| key.scope == Scope::Everywhere) {
            let name = key.variable();
            // An empty variable counts as unset.
            if let Some(text) = variables(&name).filter(|text| !text.trim().is_empty()) {
                faults.source = Origin::Variable(name);
                layer.put(key, &Located::new(key.parse(&text), Place::START), faults);
            }
        }
        layer
    }

    /// Returns the value of a field.
    pub(crate) fn get<F: Form>(&self, path: &str) -> Option<F::Value> {
        F::read(&self.found.get(path)?.value)
    }

    /// Returns the value of a setting, if it is a text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.found.get(path)?.value.as_str()
    }

    /// Reads a table of known fields.
    fn read(&mut self, table: &str, shown: &str, given: &Located, faults: &mut Faults) {
        let Some(entries) = given.entries() else {
            let text = format!("{shown} is {}; give a table of settings", given.describe());
            return faults.push(given.place, text);
        };
        for (name, given) in entries {
            self.field(table, shown, name, given, faults);
        }
    }

    /// Reads a field of a table.
    fn field(
        &mut self,
        table: &str,
        shown: &str,
        name: &str,
        given: &Located,
        faults: &mut Faults,
    ) {
        match key::field(&join(table, name)) {
            Some(key) => self.put(key, given, faults),
            None => {
                let text = unknown(table, shown, name);
                faults.push(given.place, format!("{}{text}", faults.source.prefix()));
            }
        }
    }

    /// Adds a value if it is accepted. If a key is given more than once, the last value applies; lists
    /// are joined.
    fn put(&mut self, key: &'static SettingKey, given: &Located, faults: &mut Faults) {
        if !is_accepted(key, given, faults) {
            return;
        }
        let mut found = FoundSetting {
            value: given.value(),
            key,
            origin: faults.origin(given.place),
        };
        found.value = listed(&found);
        // A table that is not one of settings is read by itself.
        let path = if key.group.is_empty() {
            key.name.to_owned()
        } else {
            key.path()
        };
        let before = self.found.remove(&path);
        let is_list = matches!(
            key.kind,
            SettingKind::Names | SettingKind::Texts | SettingKind::Rules
        );
        if let (true, Some(Value::Array(mut before)), Value::Array(more)) =
            (is_list, before.map(|found| found.value), &mut found.value)
        {
            before.append(more);
            *more = before;
        }
        self.found.insert(path, found);
    }
}

/// Checks a value, and reports why it is not accepted: the field of a table in a list, the item of a
/// list, or the whole.
fn is_accepted(key: &SettingKey, given: &Located, faults: &mut Faults) -> bool {
    let before = faults.list.len();
    let items = given.items().unwrap_or_default();
    if let Some(table) = key.items() {
        for item in items {
            Layer::of_table(&table, &table, item, faults);
        }
    }
    if faults.list.len() > before || key.accepts(&given.value()) {
        return faults.list.len() == before;
    }
    let name = match &faults.source {
        Origin::Flag(name) | Origin::Variable(name) if !key.group.is_empty() => name.clone(),
        source => format!("{}`{}`", source.prefix(), key.name),
    };
    let mut items = items.iter();
    let item = items.find(|item| !key.accepts(&Value::Array(vec![item.value()])));
    let entries = given.entries().filter(|_| key.kind == SettingKind::Tables);
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
    let described = if key.is_secret {
        "wrong".to_owned()
    } else {
        given.describe()
    };
    let text = format!("{name} is {described}; give {}", key.takes);
    faults.push(given.place, text);
    false
}

/// Returns an accepted value with lists in one form and paths relative to the folder of the file,
/// so that layers can be merged.
fn listed(found: &FoundSetting) -> Value {
    let folder = match &found.origin {
        Origin::File(file, _) => file.parent(),
        _ => None,
    };
    let beside = |path: &str| {
        let path = folder.map_or(PathBuf::from(path), |folder| folder.join(path));
        Value::from(path.display().to_string())
    };
    let value = &found.value;
    let listed = match (found.key.kind, value) {
        (SettingKind::Path, Value::String(path)) => Some(beside(path)),
        (SettingKind::Paths, _) => Texts::read(value)
            .map(|paths| Value::Array(paths.iter().map(|path| beside(path)).collect())),
        (SettingKind::Names, _) => Names::read(value).map(Value::from),
        (SettingKind::Texts, _) => Texts::read(value).map(Value::from),
        (SettingKind::Rules, Value::String(lines)) => {
            Rule::all_of(lines).map(|rules| Value::Array(rules.iter().map(Rule::table).collect()))
        }
        _ => None,
    };
    listed.unwrap_or_else(|| value.clone())
}

/// Returns the fault of an unknown name in a table, which faults call `shown`.
fn unknown(table: &str, shown: &str, name: &str) -> String {
    let outer = table.split('.').next().unwrap_or(table);
    if TABLES.contains(&outer) {
        return format!("[{outer}] can only be set in a file");
    }
    if table.is_empty() && TABLES.contains(&name) {
        let called = match name {
            "agents" => "; the agents that it may call are its `sub_agents`",
            _ => "",
        };
        return format!("`{name}` is of the whole file and not of one agent{called}");
    }
    let known = key::known_in(table);
    let what = match (table, known.as_slice()) {
        (_, []) => format!("there is no table {shown}"),
        ("", _) => format!("there is no `{name}`"),
        _ => format!("there is no `{name}` in {shown}"),
    };
    let as_flag = name.replace('_', "-");
    let of_flag = |key: &&SettingKey| [key.flag, key.alias].contains(&Some(as_flag.as_str()));
    if let Some(key) = keys().find(of_flag).filter(|_| table.is_empty()) {
        return format!(
            "{what}: the setting of the flag --{as_flag} is `{}`",
            key.path()
        );
    }
    let tables = TABLES.iter().filter(|_| table.is_empty());
    let near = nearest(name, known.iter().chain(tables).copied());
    let is_ours = near.is_some_and(|near| near == snake_case(name));
    let hint = import::hint(&join(table, name)).or_else(|| import::hint(name));
    let advice = match (hint.filter(|_| !is_ours), near) {
        (Some((hint, is_setting)), near) if is_setting || near.is_none() => {
            return format!("{what}: {hint}");
        }
        (Some((hint, _)), Some(near)) => {
            return format!("{what}; did you mean `{near}`? Or {hint}");
        }
        (None, Some(near)) => format!("did you mean `{near}`? "),
        _ => match keys().find(|key| key.name == name) {
            Some(key) if key.table.is_empty() => {
                format!("`{name}` stands outside of any table; ")
            }
            Some(key) => format!("`{name}` is in [{}]; ", key.table),
            None => String::new(),
        },
    };
    match known.len() {
        1..=MAX_LISTED => format!("{what}; {advice}known are: {}", known.join(", ")),
        _ => format!("{what}; {advice}`plimsoll config show` lists all there are"),
    }
}

/// Returns warnings for unknown variables with the prefix of settings.
pub(crate) fn unknown_variables<'a>(
    names: impl Iterator<Item = &'a str>,
    others: &[&str],
) -> Vec<String> {
    let ours: Vec<String> = keys().map(SettingKey::variable).collect();
    let strange = names.filter(|name| {
        name.starts_with(PREFIX) && !others.contains(name) && ours.iter().all(|our| our != name)
    });
    let warnings = strange.map(|name| {
        let lower: Vec<String> = ours.iter().map(|our| our.to_ascii_lowercase()).collect();
        let near = nearest(&name.to_ascii_lowercase(), lower.iter().map(String::as_str));
        let near = near.map_or(String::new(), |near| {
            format!("; did you mean {}?", near.to_ascii_uppercase())
        });
        format!("there is no setting {name}{near}")
    });
    warnings.collect()
}
