//! [`Layer`]: the settings of one source (a file, one of its agents, the environment, the command
//! line), each with its origin. `resolve.rs` merges layers.

use std::fmt;
use std::path::{Path, PathBuf};

use plimsoll_context::nearest;

use super::document::{Node, Table, TableEntry, WrittenValue};
use super::fault::Faults;
use super::fields::Fields;
use super::hook::{self, HOOK_FIELDS};
use super::import;
use super::key::{self, NAMES, PREFIX, Scope, SettingKey, join};
use super::kind::{SettingKind, SettingValue};
use super::permission::{PERMISSION_FIELDS, Rule};

/// Maximum number of names that are suggested after a mistake.
const MAX_LISTED: usize = 16;

/// Tables of a file that are not settings of an agent.
const TABLES: [&str; 5] = ["agents", "mcp", "models", "providers", "sessions"];

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
    pub(crate) value: SettingValue,
    pub(crate) origin: Origin,
    /// The name as written.
    pub(crate) written: String,
}

/// The settings of one source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layer {
    pub(crate) found: Vec<FoundSetting>,
    /// The tables in the source, empty or not.
    pub(crate) tables: Vec<(String, Origin)>,
}

/// The owner of a layer's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    All,
    OneAgent,
}

/// Reads one table of a file.
pub(crate) struct TableReader<'a> {
    pub(crate) path: &'a Path,
    pub(crate) faults: &'a mut Faults,
    pub(crate) warnings: &'a mut Faults,
}

impl TableReader<'_> {
    pub(crate) fn layer(&mut self, owner: Owner, table: Table) -> Layer {
        let mut layer = Layer::default();
        self.table(&mut layer, owner, "", table);
        layer
    }

    fn table(&mut self, layer: &mut Layer, owner: Owner, table_path: &str, table: Table) {
        for entry in table.0 {
            let path = join(table_path, &entry.key);
            let known = NAMES.get(&path);
            match (known, &entry.node.value) {
                (_, WrittenValue::Table(_)) if key::is_table(&path) => {
                    let WrittenValue::Table(inner) = entry.node.value else {
                        continue;
                    };
                    let origin = Origin::File(self.path.to_owned(), entry.line);
                    layer.tables.push((path.clone(), origin));
                    self.table(layer, owner, &path, inner);
                }
                (Some(key), _) => self.setting(layer, owner, key, entry),
                (None, given) if key::is_table(&path) => {
                    let text = format!("[{path}] is {given}; give a table of settings");
                    self.faults.at(entry.line, text);
                }
                (None, _) => {
                    let text = unknown(table_path, &entry.key);
                    self.faults.at(entry.line, text);
                }
            }
        }
    }

    fn setting(
        &mut self,
        layer: &mut Layer,
        owner: Owner,
        key: &'static SettingKey,
        entry: TableEntry,
    ) {
        let TableEntry {
            key: name,
            line,
            node,
        } = entry;
        if key.scope == Scope::AgentOnly && owner == Owner::All {
            let text = format!("`{name}` is of one agent; write it in [[agents]]");
            return self.faults.at(line, text);
        }
        if let (SettingKind::Rules(_) | SettingKind::Hooks(_), WrittenValue::List(_)) =
            (key.kind, &node.value)
        {
            let value = self.tables(key.kind, node);
            return layer.found.push(FoundSetting {
                key,
                value,
                origin: Origin::File(self.path.to_owned(), line),
                written: name,
            });
        }
        let value = match key.kind.read(&node) {
            Ok(value) => value,
            Err(expected) => {
                let text = format!("`{name}` is {}; give {expected}", node.value);
                return self.faults.at(line, text);
            }
        };
        layer.found.push(FoundSetting {
            key,
            value: beside(self.path, value),
            origin: Origin::File(self.path.to_owned(), line),
            written: name,
        });
    }

    /// Parses a list of tables, each by its own fields.
    fn tables(&mut self, kind: SettingKind, node: Node) -> SettingValue {
        let WrittenValue::List(nodes) = node.value else {
            return SettingValue::None;
        };
        let (mut rules, mut hooks) = (Vec::new(), Vec::new());
        for node in nodes {
            let (line, given) = (node.line, node.value);
            if let SettingKind::Hooks(_) = kind {
                let fields = Fields::read(HOOK_FIELDS, "[[hooks]]", line, given, self.faults);
                hooks.extend(hook::read(&fields, self.faults));
                continue;
            }
            let fields = Fields::read(
                PERMISSION_FIELDS,
                "[[permissions]]",
                line,
                given,
                self.faults,
            );
            rules.extend(Rule::of(&fields, self.faults));
        }
        match kind {
            SettingKind::Hooks(_) => SettingValue::Hooks(hooks),
            _ => SettingValue::Rules(rules),
        }
    }
}

/// Resolves a path relative to its file.
fn beside(file: &Path, value: SettingValue) -> SettingValue {
    match (value, file.parent()) {
        (SettingValue::Path(path), Some(folder)) => SettingValue::Path(folder.join(path)),
        (SettingValue::Paths(paths), Some(folder)) => {
            SettingValue::Paths(paths.iter().map(|path| folder.join(path)).collect())
        }
        (value, _) => value,
    }
}

/// Returns the fault of two settings for the same thing.
pub(crate) fn two_of_one(first: &FoundSetting, second: &FoundSetting) -> String {
    format!(
        "{} and {} are two settings of one thing; keep the one you mean",
        first.named(),
        second.named()
    )
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
        let mut paths = super::keys::all().filter(|key| key.name == name);
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

impl Layer {
    /// Parses flags. Each has the flag as written, the key's full name and the text.
    pub(crate) fn of_flags<'a>(
        flags: impl IntoIterator<Item = &'a (String, String, String)>,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        for (flag, path, raw) in flags {
            let origin = Origin::Flag(flag.clone());
            layer.raw(flag, path, raw, origin, faults);
        }
        layer
    }

    /// Parses environment variables.
    pub(crate) fn of_variables(
        variables: &dyn Fn(&str) -> Option<String>,
        faults: &mut Faults,
    ) -> Self {
        let mut layer = Self::default();
        for key in super::keys::all() {
            let name = key.variable();
            // An empty variable counts as unset.
            let raw = variables(&name).filter(|raw| !raw.trim().is_empty());
            if let (Some(raw), Scope::Everywhere) = (raw, key.scope) {
                let origin = Origin::Variable(name.clone());
                layer.raw(&name, &key.path(), &raw, origin, faults);
            }
        }
        layer
    }

    fn raw(&mut self, written: &str, path: &str, raw: &str, origin: Origin, faults: &mut Faults) {
        let Some(key) = NAMES.get(path).copied() else {
            let (place, name) = path.rsplit_once('.').unwrap_or(("", path));
            return faults.push(None, format!("{written}: {}", unknown(place, name)));
        };
        let node: Node = key.kind.node(raw);
        let read = match (key.kind, &node.value) {
            (SettingKind::Rules(_), WrittenValue::List(_)) => {
                let mut reader = TableReader {
                    path: Path::new(""),
                    faults,
                    warnings: &mut Faults::default(),
                };
                return self.put(key, reader.tables(key.kind, node), origin, written);
            }
            _ => key.kind.read(&node),
        };
        let value = match read {
            Ok(value) => value,
            Err(expected) => {
                let text = format!("{written} is {}; give {expected}", node.value);
                return faults.push(None, text);
            }
        };
        self.put(key, value, origin, written);
    }

    /// Adds a value. If a key is given more than once, the last value applies; lists are joined.
    fn put(
        &mut self,
        key: &'static SettingKey,
        value: SettingValue,
        origin: Origin,
        written: &str,
    ) {
        let before = self
            .found
            .iter_mut()
            .find(|found| found.key.path() == key.path());
        match (before.map(|found| &mut found.value), value) {
            // Repeated texts form a list.
            (Some(SettingValue::Texts(before)), SettingValue::Texts(more)) => before.extend(more),
            (Some(SettingValue::Rules(before)), SettingValue::Rules(more)) => before.extend(more),
            (Some(before), value) => *before = value,
            (None, value) => self.found.push(FoundSetting {
                key,
                value,
                origin,
                written: written.to_owned(),
            }),
        }
    }
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
    let ours: Vec<String> = super::keys::all().map(SettingKey::variable).collect();
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
