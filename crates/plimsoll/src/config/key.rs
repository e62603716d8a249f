//! [`Key`]: one row of the table that says what can be set: its names, kind, default and place.
//! Not the rows; those are in `keys/`. Not their reading; that is in `kind.rs`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::keys;
use super::kind::Kind;

/// One setting: everything there is to know of it stands here, once.
#[derive(Debug)]
pub struct Key {
    /// The table in which it stands, "" for the agent's own.
    pub table: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// What it takes, and what it does with that.
    pub kind: Kind,
    /// What holds where it is not set: a value as TOML, or words.
    pub default: Preset,
    /// What it is, in one line.
    pub doc: &'static str,
    /// Its flag at the command line.
    pub flag: Option<&'static str>,
    /// The method of the builder that does the same.
    pub method: &'static str,
    /// Where it may be set.
    pub scope: Scope,
    /// What becomes of it where it is set in several layers.
    pub merge: Merge,
    /// Whether a file that was found, not named, may set it.
    pub trust: Trust,
}

/// What holds where nothing is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// A value, written as in a file.
    Value(&'static str),
    /// Something that is no value, in words.
    Words(&'static str),
}

/// Where a key may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For all agents, and for each.
    Everywhere,
    /// For one agent only.
    AgentOnly,
}

/// What becomes of a key that is set in several layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The upper one holds.
    Replaces,
    /// All hold, the upper one first.
    Adds,
}

/// Which files may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Any file.
    Any,
    /// Only a file that the user has named or trusts: the key instructs the model, runs commands, allows
    /// tools or names addresses.
    Named,
}

/// Every key by its name.
pub(crate) static NAMES: LazyLock<BTreeMap<String, &'static Key>> =
    LazyLock::new(|| keys::all().map(|key| (key.path(), key)).collect());

/// A row: a key of this table.
pub(crate) const fn key(
    table: &'static str,
    name: &'static str,
    kind: Kind,
    default: Preset,
    doc: &'static str,
) -> Key {
    Key {
        table,
        name,
        kind,
        default,
        doc,
        flag: None,
        method: "",
        scope: Scope::Everywhere,
        merge: Merge::Replaces,
        trust: Trust::Any,
    }
}

impl Key {
    pub(crate) const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
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

    pub(crate) const fn trusted(mut self) -> Self {
        self.trust = Trust::Named;
        self
    }

    /// Its full name, such as `compaction.keep_recent_turns`.
    #[must_use]
    pub fn path(&self) -> String {
        join(self.table, self.name)
    }

    /// Its variable in the environment.
    #[must_use]
    pub fn variable(&self) -> String {
        let path = self.path().replace('.', "_").to_ascii_uppercase();
        format!("{PREFIX}{path}")
    }
}

/// What the variables of settings begin with.
pub(crate) const PREFIX: &str = "PLIMSOLL_";

/// A table's name and a key's in one.
pub(crate) fn join(table: &str, name: &str) -> String {
    match table.is_empty() {
        true => name.to_owned(),
        false => format!("{table}.{name}"),
    }
}

/// Whether there are keys within the table of this name.
pub(crate) fn is_table(path: &str) -> bool {
    let begin = format!("{path}.");
    let after = NAMES.range(begin.clone()..).next();
    after.is_some_and(|(name, _)| name.starts_with(&begin))
}

/// The names that are known directly within a table, tables too.
pub(crate) fn known_in(table: &str) -> Vec<&'static str> {
    let begin = match table.is_empty() {
        true => String::new(),
        false => format!("{table}."),
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
