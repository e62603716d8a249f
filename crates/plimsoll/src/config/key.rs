//! [`SettingKey`]: a field of a table with its names, default and description, from the declarations in
//! [`keys`](super::keys).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::document::{Located, parse_value};
use super::fault::Faults;
use super::kind::SettingKind;
use super::layer::Layer;
use super::settings::AgentSettings;

/// One setting, with everything there is to know of it.
#[derive(Debug)]
pub struct SettingKey {
    /// The heading in `--help`. Empty for a field of a table that is not one of settings.
    pub group: &'static str,
    /// The table of the setting; empty for the agent's own table.
    pub table: &'static str,
    /// The name within the table.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: SettingKind,
    /// The default, written as in a file, or described.
    pub default: String,
    /// The default as a value, if it is one.
    pub value: Option<Json>,
    /// The description, in one line.
    pub doc: String,
    /// The command-line flag.
    pub flag: Option<&'static str>,
    /// Another name of the flag.
    pub alias: Option<&'static str>,
    /// Whether it can be set for one agent only, and not for all.
    pub is_of_one_agent: bool,
    /// Whether a table without it is faulty.
    pub(crate) is_required: bool,
    /// The path of the field of `AgentSettings` that it sets.
    pub(crate) target: &'static [&'static str],
    /// Sets a value that its kind has read. Returns `None` if the field does not take it.
    pub(crate) apply: fn(Json, &mut AgentSettings) -> Option<()>,
}

/// The fields of all tables, in the order of the documentation.
static FIELDS: LazyLock<Vec<SettingKey>> = LazyLock::new(super::keys::all);

/// The fields of all tables by their full names.
static NAMES: LazyLock<BTreeMap<String, &'static SettingKey>> =
    LazyLock::new(|| FIELDS.iter().map(|key| (key.path(), key)).collect());

/// Every key, in the order of the documentation.
pub fn keys() -> impl Iterator<Item = &'static SettingKey> {
    FIELDS.iter().filter(|key| !key.group.is_empty())
}

/// Returns the key with this full name, or `None` if there is no such setting.
#[must_use]
pub fn key(path: &str) -> Option<&'static SettingKey> {
    field(path).filter(|key| !key.group.is_empty())
}

/// Returns the field of any table with this full name, such as `[[mcp]].url`.
pub(crate) fn field(path: &str) -> Option<&'static SettingKey> {
    NAMES.get(path).copied()
}

/// The tables whose fields the documentation lists, in this order.
pub(crate) const TABLES: [&str; 4] = [
    "[[permissions]]",
    "[[hooks]]",
    "[[mcp]]",
    "[providers.NAME]",
];

/// Returns the fields of a table, in the order of the documentation.
pub(crate) fn fields(table: &str) -> impl Iterator<Item = &'static SettingKey> {
    FIELDS.iter().filter(move |key| key.table == table)
}

impl SettingKey {
    /// Creates a field. `doc` ends with the default.
    pub(crate) fn of(
        group: &'static str,
        table: &'static str,
        name: &'static str,
        kind: SettingKind,
        doc: &str,
    ) -> Self {
        let doc: Vec<&str> = doc.split_whitespace().collect();
        let doc = doc.join(" ");
        let (doc, default) = doc.rsplit_once(" Default: ").unwrap_or((&doc, "none."));
        let default = default.trim_end_matches('.');
        let value = default
            .strip_prefix('`')
            .and_then(|it| it.strip_suffix('`'));
        let value = value.filter(|value| !value.contains('`'));
        Self {
            group,
            table,
            name,
            kind,
            default: value.unwrap_or(default).to_owned(),
            value: value.map(parse_value),
            doc: doc.to_owned(),
            flag: None,
            alias: None,
            is_of_one_agent: false,
            is_required: false,
            target: &[],
            apply: |_, _| Some(()),
        }
    }

    /// Returns its full name, such as `compaction.keep_recent_turns`.
    #[must_use]
    pub fn path(&self) -> String {
        join(self.table, self.name)
    }

    /// Checks whether it is one of a run's [limits](plimsoll_agent::ExecutionLimits), which a durable
    /// run takes with its task.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.target.starts_with(&["builder", "limits"])
    }

    /// Returns its environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        let path = self.path().replace('.', "_").to_ascii_uppercase();
        format!("{PREFIX}{path}")
    }

    /// Converts a value to the form in which serde reads the field. Returns `None` if it is not accepted.
    pub(crate) fn convert(&self, value: &Json) -> Option<Json> {
        let value = self.kind.read(value)?;
        (self.apply)(value.clone(), &mut AgentSettings::default())?;
        Some(value)
    }

    /// Converts a value, or reports why it is not accepted.
    pub(crate) fn read(&self, given: &Located, faults: &mut Faults) -> Option<Json> {
        let before = faults.faults.len();
        if let Some(table) = self.kind.items() {
            for item in given.items().unwrap_or_default() {
                Layer::of_table(table, table, item, faults);
            }
        }
        let value = self.convert(&given.value());
        if value.is_none() && faults.faults.len() == before {
            let accepts = |value| self.convert(&value).is_some();
            let fault = self.kind.refuse(self.name, given, &accepts);
            faults.push(&fault.origin, fault.text);
        }
        value
    }

    /// Parses a text of the command line or the environment: a value as in a file, or else a text.
    pub(crate) fn parse(&self, raw: &str) -> Json {
        let (value, text) = (parse_value(raw), Json::from(raw));
        if self.convert(&value).is_none() && self.convert(&text).is_some() {
            return text;
        }
        value
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

/// Checks whether there is a table of this name.
pub(crate) fn is_table(path: &str) -> bool {
    !path.is_empty() && keys().any(|key| key.table == path)
}

/// Returns the known names directly within a table, including tables.
pub(crate) fn known_in(table: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = fields(table).map(|key| key.name).collect();
    if table.is_empty() {
        names.extend(keys().map(|key| key.table).filter(|name| !name.is_empty()));
        names.sort_unstable();
        names.dedup();
    }
    names
}
