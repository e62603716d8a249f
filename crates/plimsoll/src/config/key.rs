//! [`SettingKey`]: a field of a table with its names, default and description, from the rows of
//! `data/settings.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use smart_default::SmartDefault;

use super::document::{Located, parse_value};
use super::fault::{Faults, Origin};
use super::kind::SettingKind;
use super::layer::Layer;
use super::permission::Rule;
use super::settings::AgentSettings;

/// One setting, with everything there is to know of it.
#[derive(Debug, SmartDefault, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingKey {
    /// The heading in `--help`. Empty for a field of a table that is not one of settings.
    pub group: String,
    /// The table of the setting; empty for the agent's own table.
    pub table: String,
    /// The name within the table.
    pub name: String,
    /// The kind of its value.
    pub kind: SettingKind,
    /// The description of the accepted spellings, if it is not that of the kind.
    takes: String,
    /// The least number.
    pub(super) least: Option<u64>,
    /// The accepted names, if it is a choice of names.
    pub choices: Vec<String>,
    /// The name of the table that each item of its list is.
    pub(super) items: String,
    /// Whether "none" is accepted, for no limit.
    pub(super) or_none: bool,
    /// The default, if it is a value.
    #[serde(rename = "default")]
    pub value: Option<Json>,
    /// The description of a default that is not a value.
    #[default("none".to_owned())]
    otherwise: String,
    /// The description, in one line.
    pub doc: String,
    /// The command-line flag.
    pub flag: Option<String>,
    /// Another name of the flag.
    pub alias: Option<String>,
    /// Settings for the same thing, or beginnings of their names.
    excludes: Vec<String>,
    /// Its effect requires this. Empty if it requires nothing.
    pub(super) needs: String,
    /// Whether the short help lists the flag.
    pub is_common: bool,
    /// The name of the flag's value, if it is not that of the kind.
    value_name: Option<String>,
    /// Whether it can be set for one agent only, and not for all.
    pub is_of_one_agent: bool,
    /// Whether a table without it is faulty.
    pub(super) is_required: bool,
    /// The path of the field of `AgentSettings` that it sets.
    sets: String,
}

/// The description of a kind of values.
#[derive(Debug, SmartDefault, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct KindDescription {
    /// A word for it, which `docs/configuration.md` explains.
    pub(super) word: String,
    takes: String,
    #[default("TEXT".to_owned())]
    value_name: String,
    pub(super) schema: Map<String, Json>,
}

/// A setting that others need to have an effect.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Need {
    setting: String,
    /// The value, or the default without one, with which the others have no effect.
    off: Json,
    why: String,
    cure: String,
}

/// The data file.
#[derive(Debug, Default, Deserialize)]
struct Rows {
    /// The fields of all tables, in the order of the documentation.
    setting: Vec<SettingKey>,
    kinds: BTreeMap<SettingKind, KindDescription>,
    needs: BTreeMap<String, Need>,
}

/// The rows. Empty if they cannot be parsed, which a test excludes.
static ROWS: LazyLock<Rows> =
    LazyLock::new(|| toml::from_str(include_str!("../../data/settings.toml")).unwrap_or_default());

/// The fields of all tables by their full names.
static NAMES: LazyLock<BTreeMap<String, &'static SettingKey>> =
    LazyLock::new(|| ROWS.setting.iter().map(|key| (key.path(), key)).collect());

/// Every key, in the order of the documentation.
pub fn keys() -> impl Iterator<Item = &'static SettingKey> {
    ROWS.setting.iter().filter(|key| !key.group.is_empty())
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

/// Returns the setting that decides whether this need is met.
pub(super) fn needed(need: &str) -> Option<&'static str> {
    Some(ROWS.needs.get(need)?.setting.as_str())
}

/// Returns the reason why a setting that needs this has no effect beside the others, which `get` returns in
/// the form of a file, and the cure.
pub(super) fn lacks(
    need: &str,
    get: impl FnOnce(&str) -> Option<Json>,
) -> Option<(&'static str, &'static str)> {
    let need = ROWS.needs.get(need)?;
    let default = || key(&need.setting)?.value.clone();
    let value = get(&need.setting).or_else(default).unwrap_or(json!([]));
    (value == need.off).then_some((&need.why, &need.cure))
}

/// Returns the fields of a table, in the order of the documentation.
pub(crate) fn fields(table: &str) -> impl Iterator<Item = &'static SettingKey> {
    ROWS.setting.iter().filter(move |key| key.table == table)
}

impl SettingKey {
    /// Returns its full name, such as `compaction.keep_recent_turns`.
    #[must_use]
    pub fn path(&self) -> String {
        join(&self.table, &self.name)
    }

    /// Checks whether it is one of a run's [limits](plimsoll_agent::ExecutionLimits), which a durable
    /// run takes with its task.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.sets.starts_with("builder.limits.")
    }

    /// Checks whether another setting is for the same thing.
    pub(super) fn excludes(&self, path: &str) -> bool {
        let is_part = |name: &str| name.ends_with(['.', '_']) && path.starts_with(name);
        let mut names = self.excludes.iter();
        names.any(|name| path == name || is_part(name))
    }

    pub(super) fn description(&self) -> &'static KindDescription {
        static NONE: LazyLock<KindDescription> = LazyLock::new(KindDescription::default);
        ROWS.kinds.get(&self.kind).unwrap_or(&NONE)
    }

    /// Returns a name for its value, such as `TOKENS`.
    #[must_use]
    pub fn value_name(&self) -> &str {
        let usual = &self.description().value_name;
        self.value_name.as_ref().unwrap_or(usual)
    }

    /// Describes the accepted spellings.
    #[must_use]
    pub fn takes(&self) -> String {
        let names = self.choices.iter().map(|name| format!("{name:?}"));
        let names: Vec<String> = names.collect();
        let mut takes = match names.split_last() {
            Some((last, before)) => format!("{} or {last}", before.join(", ")),
            None if self.takes.is_empty() => self.description().takes.clone(),
            None => self.takes.clone(),
        };
        if let Some(least) = self.least {
            takes.push_str(&format!(", {least} or more"));
        }
        if self.or_none {
            takes.push_str(", or \"none\"");
        }
        takes
    }

    /// Returns its environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        let path = self.path().replace('.', "_").to_ascii_uppercase();
        format!("{PREFIX}{path}")
    }

    /// Converts a value to the form in which serde reads the field. Returns `None` if it is not accepted.
    pub(crate) fn convert(&self, value: &Json) -> Option<Json> {
        let given = Located::new(value.clone(), &Origin::Default);
        self.read(&given, &mut Faults::default())
    }

    /// Writes a value that was [read](Self::read) to the field of `AgentSettings`, if it has one.
    pub(crate) fn set(&self, settings: &mut Json, value: Json) {
        if !self.sets.is_empty() {
            put(settings, self.sets.split('.'), value);
        }
    }

    /// Returns the default, written as in a file, or its description.
    #[must_use]
    pub fn default(&self) -> String {
        let value = self.value.as_ref();
        let value = value.and_then(|value| toml::Value::try_from(value).ok());
        value.map_or_else(|| self.otherwise.clone(), |value| value.to_string())
    }

    /// Converts a value to the form in which serde reads the field, or reports why it is not accepted.
    pub(crate) fn read(&self, given: &Located, faults: &mut Faults) -> Option<Json> {
        let value = match self.kind {
            SettingKind::Tables if given.value.is_array() => {
                let mut own = Faults::default();
                let items = given.items().into_iter().flatten();
                let tables = items.map(|it| Layer::of_table(&self.items, &it, &mut own).object());
                let tables: Json = tables.collect();
                let is_good = own.faults.is_empty();
                faults.extend(own);
                return is_good.then_some(tables);
            }
            SettingKind::Tables => given.value.as_str().and_then(Rule::tables_of),
            _ => self.converted(given),
        };
        let value = value.filter(|value| {
            let mut settings = json!({});
            self.set(&mut settings, value.clone());
            AgentSettings::deserialize(settings).is_ok()
        });
        if value.is_none() {
            self.refuse(given, faults);
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

/// Writes a value into a table, or into a table within.
pub(crate) fn put<'p>(table: &mut Json, path: impl Iterator<Item = &'p str>, value: Json) {
    *path.fold(table, |table, name| &mut table[name]) = value;
}

/// Joins the names of a table and a key.
pub(crate) fn join(table: &str, name: &str) -> String {
    format!("{table}.{name}").trim_start_matches('.').to_owned()
}

/// Checks whether there is a table of this name.
pub(crate) fn is_table(path: &str) -> bool {
    !path.is_empty() && keys().any(|key| key.table == path)
}

/// Returns the known names directly within a table, including tables.
pub(crate) fn known_in(table: &str) -> Vec<&'static str> {
    let own = fields(table).map(|key| key.name.as_str());
    let tables = keys().map(|key| key.table.as_str());
    own.chain(tables.filter(|name| table.is_empty() && !name.is_empty()))
        .collect()
}
