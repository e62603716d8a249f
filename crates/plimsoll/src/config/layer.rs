//! [`Layer`]: the settings of one source (a file, one of its agents, the environment, the command
//! line), each with its origin. `resolve.rs` merges layers.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use plimsoll_context::nearest;
use toml::{Table, Value};

use super::document::{Document, Located, describe};
use super::fault::Faults;
use super::form::{Form, Names, SettingKind, Texts, parse_tokens, time};
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
    /// A line of a file.
    File(PathBuf, usize),
    /// The built-in default.
    Default,
}

/// A setting with its origin.
#[derive(Debug, Clone)]
pub(crate) struct FoundSetting {
    pub(crate) key: &'static SettingKey,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    /// The name as written.
    pub(crate) written: String,
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
    /// Reads a table of a file.
    pub(crate) fn of_table(
        file: &Path,
        owner: Owner,
        entries: Vec<(&str, Located<'_>)>,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        layer.table(file, owner, "", entries, faults);
        layer
    }

    fn table(
        &mut self,
        file: &Path,
        owner: Owner,
        table: &str,
        entries: Vec<(&str, Located<'_>)>,
        faults: &mut Faults,
    ) {
        for (name, given) in entries {
            let path = join(table, name);
            match (key::key(&path), given.entries()) {
                (_, Some(inner)) if key::is_table(&path) => {
                    let origin = Origin::File(file.to_owned(), given.line);
                    self.tables.insert(path.clone(), origin);
                    self.table(file, owner, &path, inner, faults);
                }
                (Some(key), _) if key.scope == Scope::AgentOnly && owner == Owner::All => {
                    let text = format!("`{name}` is of one agent; write it in [[agents]]");
                    faults.at(given.line, text);
                }
                (Some(key), _) => {
                    let origin = Origin::File(file.to_owned(), given.line);
                    if checked(key, name, &given, faults) {
                        let value = normal(key, given.value, file.parent());
                        self.put(key, value, origin, name);
                    }
                }
                (None, _) if key::is_table(&path) => {
                    let given_value = describe(given.value);
                    let text = format!("[{path}] is {given_value}; give a table of settings");
                    faults.at(given.line, text);
                }
                (None, _) => faults.at(given.line, unknown(table, name)),
            }
        }
    }

    /// Parses flags. Each has the flag as written, the key's full name and the text.
    pub(crate) fn of_flags<'a>(
        flags: impl IntoIterator<Item = &'a (String, String, String)>,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        for (flag, path, raw) in flags {
            let origin = Origin::Flag(flag.clone());
            match key::key(path) {
                Some(key) => layer.raw(flag, key, raw, origin, faults),
                None => {
                    let (place, name) = path.rsplit_once('.').unwrap_or(("", path));
                    faults.push(None, format!("{flag}: {}", unknown(place, name)));
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
            if let Some(raw) = variables(&name).filter(|raw| !raw.trim().is_empty()) {
                layer.raw(&name, key, &raw, Origin::Variable(name.clone()), faults);
            }
        }
        layer
    }

    fn raw(
        &mut self,
        written: &str,
        key: &'static SettingKey,
        raw: &str,
        origin: Origin,
        faults: &mut Faults,
    ) {
        let value = key.parse(raw).unwrap_or_else(|refused| refused);
        let table = Table::from_iter([(key.name.clone(), value)]);
        let document = Document::new(table, BTreeMap::new());
        for (_, given) in document.entries() {
            let mut own = Faults::default();
            if checked(key, written, &given, &mut own) {
                let value = normal(key, given.value, None);
                self.put(key, value, origin.clone(), written);
            }
            // A flag has no line, and no quotation marks.
            for fault in own.0 {
                faults.push(None, fault.text.replace(&format!("`{written}`"), written));
            }
        }
    }

    /// Adds a value. If a key is given more than once, the last value applies; lists are joined.
    fn put(&mut self, key: &'static SettingKey, value: Value, origin: Origin, written: &str) {
        let path = key.path();
        let is_list = matches!(
            key.kind,
            SettingKind::Names | SettingKind::Texts | SettingKind::Rules
        );
        let before = self.found.get_mut(&path).filter(|_| is_list);
        match (before.map(|found| &mut found.value), value) {
            (Some(Value::Array(before)), Value::Array(more)) => before.extend(more),
            (_, value) => {
                let written = written.to_owned();
                self.found.insert(
                    path,
                    FoundSetting {
                        key,
                        value,
                        origin,
                        written,
                    },
                );
            }
        }
    }

    /// Returns the name of the agent.
    pub(crate) fn name(&self) -> Option<String> {
        self.found.get("name")?.value.as_str().map(str::to_owned)
    }

    /// Returns the settings as values by their full names.
    pub(crate) fn values(&self) -> Table {
        let found = self.found.iter();
        found
            .map(|(path, found)| (path.clone(), found.value.clone()))
            .collect()
    }
}

/// Checks a value, and reports why it is not accepted.
fn checked(key: &SettingKey, name: &str, given: &Located<'_>, faults: &mut Faults) -> bool {
    let before = faults.0.len();
    for item in given.items().into_iter().flatten() {
        match key.name.as_str() {
            "permissions" => RuleTable::check(&item, faults),
            "hooks" => HookTable::check(&item, faults),
            _ => break,
        }
    }
    if faults.0.len() > before {
        return false;
    }
    let is_accepted = key.accepts(given.value);
    if !is_accepted {
        let text = format!("`{name}` is {}; give {}", describe(given.value), key.takes);
        faults.at(given.line, text);
    }
    is_accepted
}

/// Returns an accepted value in its usual form: names and texts as lists, tokens and times as numbers,
/// and paths relative to the folder of the file.
fn normal(key: &SettingKey, value: &Value, folder: Option<&Path>) -> Value {
    let beside = |path: &str| {
        let path = folder.map_or(PathBuf::from(path), |folder| folder.join(path));
        Value::from(path.display().to_string())
    };
    let usual = match (key.kind, value) {
        (SettingKind::Path, Value::String(path)) => Some(beside(path)),
        (SettingKind::Paths, value) => Texts::read(value)
            .map(|paths| Value::Array(paths.iter().map(|path| beside(path)).collect())),
        (SettingKind::Names, value) => Names::read(value).map(Value::from),
        (SettingKind::Texts, value) => Texts::read(value).map(Value::from),
        (SettingKind::Tokens, Value::String(text)) => {
            let tokens = parse_tokens(text).and_then(|tokens| i64::try_from(tokens).ok());
            tokens.map(Value::Integer)
        }
        (SettingKind::Time, Value::String(_)) => {
            time(value).map(|time| match time.subsec_nanos() {
                0 => Value::Integer(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)),
                _ => Value::Float(time.as_secs_f64()),
            })
        }
        (SettingKind::Choice, Value::String(name)) => {
            let plain = |name: &str| name.trim().replace('-', "_");
            let mut names = key.choices.iter();
            names
                .find(|known| plain(known) == plain(name))
                .map(|name| name.as_str().into())
        }
        (SettingKind::Rules, Value::String(lines)) => {
            Rule::all_of(lines).map(|rules| Value::Array(rules.iter().map(Rule::table).collect()))
        }
        _ => None,
    };
    usual.unwrap_or_else(|| value.clone())
}

/// Returns the fault of an unknown name.
pub(crate) fn unknown(table_path: &str, name: &str) -> String {
    let hint = import::hint(&join(table_path, name)).or_else(|| import::hint(name));
    let known = key::known_in(table_path);
    if known.is_empty() {
        let table = table_path.split('.').next().unwrap_or(table_path);
        return match (TABLES.contains(&table), hint) {
            (true, _) => format!("[{table}] can only be set in a file"),
            (false, Some((hint, _))) => format!("there is no table [{table_path}]: {hint}"),
            (false, None) => format!(
                "there is no table [{table_path}]; `plimsoll config show` lists all settings there are"
            ),
        };
    }
    if table_path.is_empty() && TABLES.contains(&name) {
        let called = match name {
            "agents" => "; the agents that it may call are its `sub_agents`",
            _ => "",
        };
        return format!("`{name}` is of the whole file and not of one agent{called}");
    }
    let tables = if table_path.is_empty() {
        &TABLES[..]
    } else {
        &[]
    };
    let near = nearest(name, known.iter().chain(tables).copied());
    let in_place = match table_path {
        "" => String::new(),
        table_path => format!(" in [{table_path}]"),
    };
    let is_ours = near.is_some_and(|near| near == import::snake(name));
    let near = near.map(|near| format!("did you mean `{near}`? "));
    match (hint, &near) {
        (Some((hint, is_setting)), near) if !is_ours && (is_setting || near.is_none()) => {
            return format!("there is no `{name}`{in_place}: {hint}");
        }
        (Some((hint, _)), Some(near)) if !is_ours => {
            return format!("there is no `{name}`{in_place}; {near}Or {hint}");
        }
        _ => {}
    }
    let elsewhere = || {
        let mut paths = keys().filter(|key| key.name == name);
        paths.next().map(|key| match key.table {
            "" => format!("`{name}` stands outside of any table; "),
            table => format!("`{name}` is in [{table}]; "),
        })
    };
    let advice = near.or_else(elsewhere).unwrap_or_default();
    let known = if known.len() <= MAX_LISTED {
        format!("known are: {}", known.join(", "))
    } else {
        "`plimsoll config show` lists all there are".to_owned()
    };
    format!("there is no `{name}`{in_place}; {advice}{known}")
}

impl FoundSetting {
    pub(crate) fn line(&self) -> Option<usize> {
        self.origin.line()
    }

    /// Returns the name and the line.
    pub(crate) fn named(&self) -> String {
        match &self.origin {
            Origin::File(_, line) => format!("`{}` (line {line})", self.written),
            _ => format!("`{}`", self.written),
        }
    }
}

impl Origin {
    pub(crate) fn line(&self) -> Option<usize> {
        match self {
            Self::File(_, line) => Some(*line),
            _ => None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => write!(f, "${name}"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
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
        name.starts_with(PREFIX) && !others.contains(name) && !ours.iter().any(|our| our == name)
    });
    let warnings = strange.map(|name| {
        let name_of = |known: &str| known.to_ascii_lowercase();
        let lower: Vec<String> = ours.iter().map(|our| name_of(our)).collect();
        let near = nearest(&name_of(name), lower.iter().map(String::as_str));
        let near = near.map_or(String::new(), |near| {
            format!("; did you mean {}?", near.to_ascii_uppercase())
        });
        format!("there is no setting {name}{near}")
    });
    warnings.collect()
}
