//! [`OptionalSettings`]: everything that a file, a variable or a flag may set for an agent. To add a
//! setting, add a field with its documentation and its default: parsing, flags, variables, the schema,
//! the documentation and the tests follow from it.

/// Declares a table of settings: each with its documentation, its form, and the field of
/// [`AgentSettings`] that it sets. `[get_or_insert_default]` creates an optional structure.
macro_rules! settings_table {
    ($(#[$doc:meta])* $table:ident {
        $($(#[$meta:meta])* $field:ident: $form:ty => $($target:ident $([$insert:ident])?).+;)*
    }) => {
        $(#[$doc])*
        #[derive(Default, Deserialize, JsonSchema)]
        #[serde(default)]
        pub(crate) struct $table {
            $($(#[$meta])* pub(crate) $field: Set<$form>,)*
        }

        impl $table {
            pub(crate) fn apply(&self, settings: &mut AgentSettings) {
                $(if let Some(value) = &self.$field.0 {
                    settings.$($target $(.$insert())?).+ = value.clone().into();
                })*
            }
        }
    };
}

mod agent;
mod context;
mod limits;
mod model;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::hook::HookTable;
use super::mcp::McpTable;
use super::permission::RuleTable;
use super::provider::ProviderTable;
use super::retention::SessionTable;
use super::settings::AgentSettings;

/// A table of a file.
pub(crate) struct TableForm {
    /// The heading in `--help`; empty if its fields are not settings of an agent.
    pub(crate) group: &'static str,
    /// The name: empty for an agent's own table, `retry` for a table within it, or with its brackets
    /// for any other.
    pub(crate) name: &'static str,
    pub(crate) schema: Schema,
    /// Checks whether a table with some of the fields can be read.
    pub(crate) accepts: fn(Table) -> bool,
}

impl TableForm {
    fn of<T: JsonSchema + DeserializeOwned>(group: &'static str, name: &'static str) -> Self {
        let settings = schemars::generate::SchemaSettings::draft2020_12();
        let settings = settings.with(|settings| settings.inline_subschemas = true);
        Self {
            group,
            name,
            schema: SchemaGenerator::from(settings).into_root_schema_for::<T>(),
            accepts: |fields| T::deserialize(Value::Table(fields)).is_ok(),
        }
    }
}

/// Declares the tables of an agent's settings: the field, its type, the heading in `--help`, and
/// the name of the table in a file (empty for the agent's own table).
macro_rules! tables {
    ($($field:ident: $table:ty, $group:literal, $name:literal;)*) => {
        /// The settings of an agent that are set. The others keep their values.
        #[derive(Default)]
        pub(crate) struct OptionalSettings {
            $(pub(crate) $field: $table,)*
        }

        impl OptionalSettings {
            /// Reads settings by their full names, such as `retry.max_attempts`, whose values have
            /// been accepted.
            pub(crate) fn read(set: &Table) -> Self {
                Self { $($field: read_table(set, $name),)* }
            }

            /// Overwrites settings with those that are set.
            pub(crate) fn apply(&self, settings: &mut AgentSettings) {
                $(self.$field.apply(settings);)*
            }
        }

        /// Returns all tables of a file, in their order in the documentation.
        pub(crate) fn tables() -> Vec<TableForm> {
            vec![
                $(TableForm::of::<$table>($group, $name),)*
                TableForm::of::<RuleTable>("", "[[permissions]]"),
                TableForm::of::<HookTable>("", "[[hooks]]"),
                TableForm::of::<McpTable>("", "[[mcp]]"),
                TableForm::of::<ProviderTable>("", "[providers.NAME]"),
                TableForm::of::<SessionTable>("", "[sessions]"),
            ]
        }
    };
}

tables! {
    agent: agent::AgentTable, "Agent and tools", "";
    model: model::ModelTable, "Model", "";
    retry: model::RetryTable, "Model", "retry";
    cache: model::CacheTable, "Model", "cache";
    limits: limits::LimitTable, "Limits", "";
    context: context::ContextTable, "Context", "";
    summary: context::SummaryTable, "Context", "summary";
    session_prune: context::PruneTable, "Context", "session_prune";
    context_size: context::ContextSizeTable, "Context", "context";
    compaction: context::CompactionTable, "Context", "compaction";
}

/// Reads one table from fields by their full names, whose values have been accepted.
pub(crate) fn read_table<T: DeserializeOwned + Default>(set: &Table, name: &str) -> T {
    let own = set.iter().filter_map(|(path, value)| {
        let key = match name {
            "" => path.as_str(),
            name => path.strip_prefix(name)?.strip_prefix('.')?,
        };
        Some((key.to_owned(), value.clone()))
    });
    T::deserialize(Value::Table(own.collect())).unwrap_or_default()
}
