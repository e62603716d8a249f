//! [`Layer`]: the settings of one source (a file, one of its agents, the environment, the command
//! line), each with its origin. `resolve.rs` merges layers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use plimsoll_context::{nearest, snake_case};
use toml::Value;

use super::document::Located;
use super::fault::{Faults, Place};
use super::form::{Form, Names, SettingKind, Texts};
use super::hook::HookTable;
use super::import;
use super::key::{self, PREFIX, Scope, SettingKey, join, keys};
use super::permission::{Rule, RuleTable};

/// Maximum number of names that are suggested after a mistake.
const MAX_LISTED: usize = 16;

/// Tables of a file that are not settings of an agent.
pub(crate) const TABLES: [&str; 5] = ["agents", "mcp", "models", "providers", "sessions"];

/// The origin of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A command-line flag, as written.
    Flag(String),
    /// An environment variable.
    Variable(String),
    /// A place in a file.
    File(PathBuf, Place),
    /// The built-in default.
    Default,
}

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
    /// Reads a table of a file. `table` is its name, which is empty for the table of an agent.
    pub(crate) fn read<'a>(
        &mut self,
        file: &Path,
        owner: Owner,
        table: &str,
        entries: impl IntoIterator<Item = &'a (String, Located)>,
        faults: &mut Faults,
    ) {
        for (name, given) in entries {
            let path = join(table, name);
            let origin = Origin::File(file.to_owned(), given.place);
            match (key::key(&path), given.entries()) {
                (_, Some(inner)) if key::is_table(&path) => {
                    self.tables.insert(path.clone(), origin);
                    self.read(file, owner, &path, inner, faults);
                }
                (Some(key), _) if key.scope == Scope::AgentOnly && owner == Owner::All => {
                    let text = format!("`{name}` is of one agent; write it in [[agents]]");
                    faults.push(given.place, text);
                }
                (Some(key), _) => self.put(key, given, origin, faults),
                (None, _) if key::is_table(&path) => {
                    let text =
                        format!("[{path}] is {}; give a table of settings", given.describe());
                    faults.push(given.place, text);
                }
                (None, _) => faults.push(given.place, unknown(table, name)),
            }
        }
    }

    /// Parses flags. Each has the flag as written, the key's full name and the text.
    pub(crate) fn of_flags(flags: &[(String, String, String)], faults: &mut Faults) -> Self {
        let mut layer = Self::default();
        for (flag, path, text) in flags {
            match key::key(path) {
                Some(key) => layer.parse(key, text, Origin::Flag(flag.clone()), faults),
                None => {
                    let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
                    faults.push(None, format!("{flag}: {}", unknown(table, name)));
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
                layer.parse(key, &text, Origin::Variable(name), faults);
            }
        }
        layer
    }

    /// Adds the text of a flag or a variable.
    fn parse(&mut self, key: &'static SettingKey, text: &str, origin: Origin, faults: &mut Faults) {
        let mut own = Faults::default();
        let given = Located::new(key.parse(text), Place::START);
        self.put(key, &given, origin, &mut own);
        for fault in own.0 {
            faults.push(None, fault.text);
        }
    }

    /// Adds a value, or reports why it is not accepted. If a key is given more than once, the last
    /// value applies; lists are joined.
    fn put(
        &mut self,
        key: &'static SettingKey,
        given: &Located,
        origin: Origin,
        faults: &mut Faults,
    ) {
        let mut own = Faults::default();
        for item in given.items().into_iter().flatten() {
            match key.kind {
                SettingKind::Rules => RuleTable::check(item, &mut own),
                _ if key.name == "hooks" => HookTable::check(item, &mut own),
                _ => {}
            }
        }
        let mut found = FoundSetting {
            value: given.value(),
            key,
            origin,
        };
        if own.0.is_empty() && !key.accepts(&found.value) {
            let (name, given) = (found.name(), given.describe());
            let text = format!("{name} is {given}; give {}", key.takes);
            own.push(found.place(), text);
        }
        if !own.0.is_empty() {
            return own
                .0
                .into_iter()
                .for_each(|it| faults.push(it.place, it.text));
        }
        found.value = listed(&found);
        let before = self.found.remove(&key.path());
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
        self.found.insert(key.path(), found);
    }

    /// Returns the name of the agent.
    pub(crate) fn name(&self) -> Option<&str> {
        self.found.get("name")?.value.as_str()
    }
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

/// Returns the fault of an unknown name.
pub(crate) fn unknown(table: &str, name: &str) -> String {
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
        (_, []) => format!("there is no table [{table}]"),
        ("", _) => format!("there is no `{name}`"),
        (table, _) => format!("there is no `{name}` in [{table}]"),
    };
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

impl FoundSetting {
    pub(crate) fn place(&self) -> Option<Place> {
        self.origin.place()
    }

    /// Returns the name as it was written.
    fn name(&self) -> String {
        match &self.origin {
            Origin::Flag(name) | Origin::Variable(name) => name.clone(),
            Origin::File(..) | Origin::Default => format!("`{}`", self.key.name),
        }
    }

    /// Returns the name and the line.
    pub(crate) fn named(&self) -> String {
        match &self.origin {
            Origin::File(_, place) => format!("`{}` (line {})", self.key.name, place.line),
            Origin::Flag(name) | Origin::Variable(name) => format!("`{name}`"),
            Origin::Default => format!("`{}`", self.key.name),
        }
    }
}

impl Origin {
    pub(crate) fn place(&self) -> Option<Place> {
        match self {
            Self::File(_, place) => Some(*place),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => write!(f, "${name}"),
            Self::File(path, place) => write!(f, "{}:{place}", path.display()),
            Self::Default => f.write_str("default"),
        }
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
