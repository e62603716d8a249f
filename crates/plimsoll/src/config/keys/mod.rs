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

use schemars::{Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::settings::AgentSettings;

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
            /// Reads settings by their full names, such as `retry.max_attempts`. Unknown names
            /// are ignored.
            ///
            /// # Errors If a value has another form.
            pub(crate) fn read(set: &Table) -> Result<Self, toml::de::Error> {
                Ok(Self { $($field: table(set, $name)?,)* })
            }

            /// Overwrites settings with those that are set.
            pub(crate) fn apply(&self, settings: &mut AgentSettings) {
                $(self.$field.apply(settings);)*
            }
        }

        /// Returns the tables in their order in the documentation: heading, name and schema.
        pub(crate) fn tables() -> Vec<(&'static str, &'static str, Schema)> {
            vec![$(($group, $name, schema_of::<$table>())),*]
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

/// Returns the schema of a table, without references.
pub(crate) fn schema_of<T: schemars::JsonSchema>() -> Schema {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    SchemaGenerator::from(settings).into_root_schema_for::<T>()
}

/// Reads one table from settings by their full names.
fn table<T: DeserializeOwned>(set: &Table, name: &str) -> Result<T, toml::de::Error> {
    let own = set.iter().filter_map(|(path, value)| {
        let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
        (table == name).then(|| (key.to_owned(), value.clone()))
    });
    T::deserialize(Value::Table(own.collect()))
}
