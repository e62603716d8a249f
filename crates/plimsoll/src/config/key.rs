//! [`SettingKey`]: one row of the table of settings, with its names, type, default and place. The
//! rows are in `keys/`; values are parsed in `kind.rs`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::keys;
use super::kind::SettingKind;

/// One setting, with everything there is to know of it.
#[derive(Debug)]
pub struct SettingKey {
    /// The table of the setting; empty for the agent's own table.
    pub table: &'static str,
    /// The name within the table.
    pub name: &'static str,
    /// The type of the value, and the effect of setting it.
    pub kind: SettingKind,
    /// The default: a value as TOML, or a description.
    pub default: Preset,
    /// The description, in one line.
    pub doc: &'static str,
    /// The command-line flag.
    pub flag: Option<&'static str>,
    /// The method of the builder with the same effect.
    pub method: &'static str,
    /// The places that may set it.
    pub scope: Scope,
    /// How values of several layers are merged.
    pub merge: Merge,
    /// Whether a session that comes from another machine may bring it along. Not if the setting
    /// instructs the model, runs commands, allows tools or names addresses.
    pub is_portable: bool,
}

/// The default of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// A value, written as in a file.
    Value(&'static str),
    /// A description of a default that is not a value.
    Words(&'static str),
}

/// The places that may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For all agents, and for each.
    Everywhere,
    /// For one agent only.
    AgentOnly,
}

/// How the values of several layers are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The upper one replaces the lower one.
    Replaces,
    /// All apply, the upper one first.
    Adds,
}

/// A table of settings below the agent's own: its name, and the method of the builder that takes all
/// of its settings.
#[derive(Clone, Copy)]
pub(crate) struct SettingTable(pub(crate) &'static str, pub(crate) &'static str);

/// All keys by name.
pub(crate) static NAMES: LazyLock<BTreeMap<String, &'static SettingKey>> =
    LazyLock::new(|| keys::all().map(|key| (key.path(), key)).collect());

/// Creates a row: a key of the agent's own table, with a method of the builder that has its name.
pub(crate) const fn key(
    name: &'static str,
    kind: SettingKind,
    default: Preset,
    doc: &'static str,
) -> SettingKey {
    SettingKey {
        table: "",
        name,
        kind,
        default,
        doc,
        flag: None,
        method: name,
        scope: Scope::Everywhere,
        merge: Merge::Replaces,
        is_portable: true,
    }
}

impl SettingKey {
    pub(crate) const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    pub(crate) const fn of(mut self, table: SettingTable) -> Self {
        self.table = table.0;
        self.method = table.1;
        self
    }

    pub(crate) const fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(crate) const fn of_one_agent(mut self) -> Self {
        self.scope = Scope::AgentOnly;
        self
    }

    pub(crate) const fn adds(mut self) -> Self {
        self.merge = Merge::Adds;
        self
    }

    pub(crate) const fn not_portable(mut self) -> Self {
        self.is_portable = false;
        self
    }

    /// Returns its full name, such as `compaction.keep_recent_turns`.
    #[must_use]
    pub fn path(&self) -> String {
        join(self.table, self.name)
    }

    /// Returns its environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        let path = self.path().replace('.', "_").to_ascii_uppercase();
        format!("{PREFIX}{path}")
    }
}

/// The prefix of the environment variables for settings.
pub(crate) const PREFIX: &str = "PLIMSOLL_";

/// Joins the names of a table and a key.
pub(crate) fn join(table: &str, name: &str) -> String {
    if table.is_empty() {
        name.to_owned()
    } else {
        format!("{table}.{name}")
    }
}

/// Checks whether there are keys within the table of this name.
pub(crate) fn is_table(path: &str) -> bool {
    let begin = format!("{path}.");
    let after = NAMES.range(begin.clone()..).next();
    after.is_some_and(|(name, _)| name.starts_with(&begin))
}

/// Returns the known names directly within a table, including tables.
pub(crate) fn known_in(table: &str) -> Vec<&'static str> {
    let begin = if table.is_empty() {
        String::new()
    } else {
        format!("{table}.")
    };
    let within = NAMES
        .keys()
        .filter_map(|name| name.strip_prefix(begin.as_str()));
    let mut names: Vec<&'static str> = within
        .map(|rest| rest.split_once('.').map_or(rest, |(first, _)| first))
        .collect();
    names.dedup();
    names
}
