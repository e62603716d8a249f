//! The JSON Schema of `plimsoll.toml`, for editors: names, types and documentation, from the rows that the
//! parser reads. `plimsoll config check` checks the values.

use plimsoll_providers::MODEL_KEYS;
use serde_json::{Map, Value, json};

use super::key::{SettingKey, fields, keys, put};
use super::kind::SettingKind;

/// Returns the schema.
#[must_use]
pub fn schema() -> Value {
    let agent = object(settings(|_| true), &["name"]);
    // The table of models checks the values.
    let model = object(MODEL_KEYS.map(|key| (key, json!({}))), &[]);
    let models = json!({
        "description": "Properties of models: a table per provider with one table per model in it.",
        "type": "object",
        "additionalProperties": { "type": "object", "additionalProperties": model },
    });
    let tables = [
        ("agents", list(agent)),
        ("mcp", list(table("[[mcp]]"))),
        (
            "providers",
            json!({ "type": "object", "additionalProperties": table("[providers.NAME]") }),
        ),
        ("models", models),
    ];
    let mut file = object(settings(|key| !key.is_of_one_agent).chain(tables), &[]);
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    put(&mut file, ["$schema"].into_iter(), dialect.into());
    put(&mut file, ["title"].into_iter(), "plimsoll.toml".into());
    file
}

/// Returns the schemas of an agent's settings, or of those of all agents, and of the tables within.
fn settings(has: impl Fn(&SettingKey) -> bool) -> impl Iterator<Item = (&'static str, Value)> {
    let keys = keys().filter(move |key| has(key));
    keys.map(|key| match key.table.as_str() {
        "" => (key.name.as_str(), of_key(key)),
        name => (name, table(name)),
    })
}

/// Returns the schema of a table.
fn table(name: &str) -> Value {
    let required = fields(name).filter(|key| key.is_required);
    let required: Vec<&str> = required.map(|key| key.name.as_str()).collect();
    object(
        fields(name).map(|key| (key.name.as_str(), of_key(key))),
        &required,
    )
}

/// Returns the schema of a table with these entries and no others.
fn object<'n>(entries: impl IntoIterator<Item = (&'n str, Value)>, required: &[&str]) -> Value {
    let entries = entries
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), schema));
    json!({
        "type": "object",
        "properties": entries.collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn of_key(key: &SettingKey) -> Value {
    let mut schema: Value = match key.kind {
        SettingKind::Tables => list(table(&key.items)),
        _ if !key.choices.is_empty() => json!({ "enum": key.choices }),
        _ => key.description().schema.clone().into(),
    };
    let doc = match &key.value {
        None if !key.group.is_empty() => format!("{} Default: {}.", key.doc, key.default()),
        _ => key.doc.clone(),
    };
    put(&mut schema, ["description"].into_iter(), doc.into());
    if let Some(value) = &key.value {
        put(&mut schema, ["default"].into_iter(), value.clone());
    }
    schema
}
