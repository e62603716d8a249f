//! [`SettingKey`]: a setting with its names, default and description, from the schema of its table.
//! [`Preset`]: its default.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use super::document::parse_value;
use super::form::SettingKind;
use super::keys::{TableForm, tables};

/// One setting, with everything there is to know of it.
#[derive(Debug)]
pub struct SettingKey {
    /// The heading in `--help`.
    pub group: &'static str,
    /// The table of the setting; empty for the agent's own table.
    pub table: &'static str,
    /// The name within the table.
    pub name: String,
    /// The kind of its value.
    pub kind: SettingKind,
    /// The accepted spellings.
    pub takes: String,
    /// The accepted names, if it is a choice.
    pub choices: Vec<String>,
    /// The default.
    pub default: Preset,
    /// The description, in one line.
    pub doc: String,
    /// The command-line flag.
    pub flag: Option<String>,
    /// The places that may set it.
    pub scope: Scope,
    /// Whether a session that comes from another machine may bring it along. Not if the setting
    /// instructs the model, runs commands, allows tools or names addresses.
    pub is_portable: bool,
    /// Whether a table without it is faulty.
    pub(crate) is_required: bool,
    /// Whether its value is a key, or contains some, and is never printed.
    pub(crate) is_secret: bool,
    /// The schema of its value.
    pub(crate) schema: Map<String, Json>,
    /// Checks whether its table can be read with a value.
    accepts: fn(Table) -> bool,
}

/// The default of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preset {
    /// A value, written as in a file.
    Value(String),
    /// A description of a default that is not a value.
    Words(String),
}

/// The places that may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For all agents, and for each.
    Everywhere,
    /// For one agent only.
    AgentOnly,
}

/// The fields of all tables, in the order of the documentation.
static FIELDS: LazyLock<Vec<SettingKey>> = LazyLock::new(|| {
    let tables = tables().into_iter();
    tables.flat_map(SettingKey::all_of).collect()
});

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

/// Returns the fields of a table, in the order of the documentation.
pub(crate) fn fields(table: &str) -> impl Iterator<Item = &'static SettingKey> {
    FIELDS.iter().filter(move |key| key.table == table)
}

impl SettingKey {
    fn all_of(table: TableForm) -> Vec<Self> {
        let schema = table.schema.as_value();
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<&str> = required.filter_map(Json::as_str).collect();
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields = fields.map(|(name, schema)| {
            let is_required = required.contains(&name.as_str());
            Self::of(&table, name, schema.as_object().cloned(), is_required)
        });
        fields.collect()
    }

    fn of(
        table: &TableForm,
        name: &str,
        schema: Option<Map<String, Json>>,
        is_required: bool,
    ) -> Self {
        let mut schema = schema.unwrap_or_default();
        let doc = schema.get("description").and_then(Json::as_str);
        let doc: Vec<&str> = doc.unwrap_or_default().split_whitespace().collect();
        let doc = doc.join(" ");
        let (doc, default) = doc.rsplit_once(" Default: ").unwrap_or((&doc, "none."));
        let words = default.trim_end_matches('.');
        let value = words
            .strip_prefix('`')
            .and_then(|rest| rest.strip_suffix('`'));
        let mut take = |word: &str| schema.remove(word).unwrap_or_default();
        let kind = serde_json::from_value(take("x-kind")).unwrap_or_default();
        let takes = take("x-takes").as_str().unwrap_or_default().to_owned();
        let flag = take("x-flag").as_str().map(str::to_owned);
        let is_portable = !take("x-private").as_bool().unwrap_or_default();
        let is_secret = take("x-secret").as_bool().unwrap_or_default();
        let scope = match take("x-one-agent") {
            Json::Bool(true) => Scope::AgentOnly,
            _ => Scope::Everywhere,
        };
        let choices = schema.get("enum").and_then(Json::as_array);
        let choices = choices.into_iter().flatten().filter_map(Json::as_str);
        Self {
            group: table.group,
            table: table.name,
            name: name.to_owned(),
            kind,
            takes,
            choices: choices.map(str::to_owned).collect(),
            default: match value.filter(|value| !value.contains('`')) {
                Some(value) => Preset::Value(value.to_owned()),
                None => Preset::Words(words.to_owned()),
            },
            doc: doc.to_owned(),
            flag,
            scope,
            is_portable,
            is_required,
            is_secret,
            schema,
            accepts: table.accepts,
        }
    }

    /// Returns its full name, such as `compaction.keep_recent_turns`.
    #[must_use]
    pub fn path(&self) -> String {
        join(self.table, &self.name)
    }

    /// Returns its environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        let path = self.path().replace('.', "_").to_ascii_uppercase();
        format!("{PREFIX}{path}")
    }

    /// Returns the name of the table that each item of its list is, such as `[[hooks]]`.
    pub(crate) fn items(&self) -> Option<String> {
        let is_list = matches!(self.kind, SettingKind::Rules | SettingKind::Tables);
        let table = format!("[[{}]]", self.name);
        (is_list && is_table(&table)).then_some(table)
    }

    /// Returns the default as a value, if it is one.
    pub(crate) fn preset(&self) -> Option<Value> {
        match &self.default {
            Preset::Value(text) => Some(parse_value(text)),
            Preset::Words(_) => None,
        }
    }

    /// Checks whether a value has one of the accepted spellings.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        (self.accepts)(Table::from_iter([(self.name.clone(), value.clone())]))
    }

    /// Parses a text of the command line or the environment: a text, or a value as in a file. If
    /// none is accepted, returns the value.
    pub(crate) fn parse(&self, raw: &str) -> Value {
        let text = Value::String(raw.to_owned());
        let value = parse_value(raw);
        let entries = parse_value(&format!("{{{raw}}}"));
        // A list may be written as in a file, and so may a table, with or without its braces.
        let is_list = raw.trim_start().starts_with('[');
        let is_number = matches!(self.kind, SettingKind::Tokens | SettingKind::Time);
        let forms = if is_list || is_number {
            [&value, &text, &entries]
        } else {
            [&text, &value, &entries]
        };
        let accepted = forms.into_iter().find(|form| self.accepts(form));
        accepted.unwrap_or(&value).clone()
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
    !path.is_empty() && fields(path).next().is_some()
}

/// Returns the known names directly within a table, including tables.
pub(crate) fn known_in(table: &str) -> Vec<&'static str> {
    let begin = match table {
        "" => String::new(),
        table => format!("{table}."),
    };
    let within = NAMES.keys().filter_map(|name| name.strip_prefix(&begin));
    let mut names: Vec<&'static str> = within
        .filter(|name| !name.starts_with('['))
        .map(|rest| rest.split_once('.').map_or(rest, |(first, _)| first))
        .collect();
    names.dedup();
    names
}
