//! The JSON Schema of `plimsoll.toml`, for editors: names, types and documentation, from the rows that the
//! parser reads. `plimsoll config check` checks the values.

use plimsoll_providers::MODEL_KEYS;
use serde_json::{Map, Value, json};

use super::key::{SettingKey, fields, keys, put};
use super::kind::SettingKind;

/// Returns the schema.
#[must_use]
pub fn schema() -> Value {
    let mut agent = settings(&|_| true);
    set(&mut agent, "required", json!(["name"]));
    // The table of models checks the values.
    let model = MODEL_KEYS.map(|key| (key.to_owned(), json!({})));
    let models = json!({
        "description": "Properties of models: a table per provider with one table per model in it.",
        "type": "object",
        "additionalProperties": { "type": "object", "additionalProperties": object(model) },
    });
    let providers = json!({ "type": "object", "additionalProperties": table("[providers.NAME]") });
    let mut file = settings(&|key| !key.is_of_one_agent);
    for (path, schema) in [
        (
            "$schema",
            "https://json-schema.org/draft/2020-12/schema".into(),
        ),
        ("title", "plimsoll.toml".into()),
        ("properties.agents", list(agent)),
        ("properties.mcp", list(table("[[mcp]]"))),
        ("properties.providers", providers),
        ("properties.models", models),
    ] {
        set(&mut file, path, schema);
    }
    file
}

fn set(schema: &mut Value, path: &str, value: Value) {
    put(schema, path.split('.'), value);
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// Returns the schema of an agent's settings, or of those of all agents.
fn settings(has: &dyn Fn(&SettingKey) -> bool) -> Value {
    let own = keys().filter(|key| has(key));
    object(own.map(|key| match key.table.as_str() {
        "" => (key.name.clone(), of_key(key)),
        name => (name.to_owned(), table(name)),
    }))
}

/// Returns the schema of a table.
fn table(name: &str) -> Value {
    let mut schema = object(fields(name).map(|key| (key.name.clone(), of_key(key))));
    let required = fields(name).filter(|key| key.is_required);
    let required = required.map(|key| key.name.as_str()).collect();
    set(&mut schema, "required", required);
    schema
}

/// Returns the schema of a table with these entries and no others.
fn object(properties: impl IntoIterator<Item = (String, Value)>) -> Value {
    let properties: Map<_, _> = properties.into_iter().collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn of_key(key: &SettingKey) -> Value {
    let usual = key.description().map(|kind| kind.schema.clone());
    let mut schema: Value = match key.kind {
        SettingKind::Tables => list(table(&key.items)),
        _ if !key.choices.is_empty() => json!({ "enum": key.choices }),
        _ => usual.unwrap_or_default().into(),
    };
    let doc = match &key.value {
        None if !key.group.is_empty() => format!("{} Default: {}.", key.doc, key.default()),
        _ => key.doc.clone(),
    };
    set(&mut schema, "description", doc.into());
    if let Some(value) = &key.value {
        set(&mut schema, "default", value.clone());
    }
    schema
}
