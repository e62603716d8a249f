//! The JSON Schema of `plimsoll.toml`, for editors: names, types and documentation, from the rows that the
//! parser reads. `plimsoll config check` checks the values.

use plimsoll_providers::MODEL_KEYS;
use serde_json::{Map, Value, json};

use super::key::{SettingKey, fields, keys};

/// Returns the schema.
#[must_use]
pub fn schema() -> Value {
    let agent = settings(&|_| true);
    let agent = json!({
        "type": "object", "properties": agent, "required": ["name"], "additionalProperties": false,
    });
    let models = json!({
        "description": "Properties of models: a table per provider with one table per model in it.",
        "type": "object",
        "additionalProperties": { "type": "object", "additionalProperties": model() },
    });
    let mut top = settings(&|key| !key.is_of_one_agent);
    let more = [
        ("agents", json!({ "type": "array", "items": agent })),
        ("mcp", json!({ "type": "array", "items": table("[[mcp]]") })),
        (
            "providers",
            json!({ "type": "object", "additionalProperties": table("[providers.NAME]") }),
        ),
        ("models", models),
    ];
    top.extend(more.map(|(name, schema)| (name.to_owned(), schema)));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "plimsoll.toml",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
    })
}

/// Returns the schemas of an agent's settings, and of the tables within.
fn settings(has: &dyn Fn(&SettingKey) -> bool) -> Map<String, Value> {
    let own = keys().filter(|key| key.table.is_empty() && has(key));
    let own = own.map(|key| (key.name.clone(), of_key(key)));
    let tables = keys().filter(|key| !key.table.is_empty());
    let tables = tables.map(|key| (key.table.clone(), table(&key.table)));
    own.chain(tables).collect()
}

/// Returns the schema of a table.
fn table(name: &str) -> Value {
    let properties = fields(name).map(|key| (key.name.clone(), of_key(key)));
    let required = fields(name).filter(|key| key.is_required);
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": required.map(|key| &key.name).collect::<Vec<_>>(),
        "additionalProperties": false,
    })
}

fn of_key(key: &SettingKey) -> Value {
    let schema = match key.kind.word() {
        "flag" => json!({ "type": "boolean" }),
        "whole" => json!({ "type": "integer" }),
        "number" | "dollars" => json!({ "type": "number" }),
        "tokens" | "time" => json!({ "type": ["number", "string"] }),
        "text" | "path" => json!({ "type": "string" }),
        "paths" | "names" | "texts" => json!({ "type": ["string", "array"] }),
        "rules" | "tables" => {
            json!({ "type": "array", "items": table(key.kind.items().unwrap_or_default()) })
        }
        _ if !key.kind.choices().is_empty() => json!({ "enum": key.kind.choices() }),
        _ => json!({}),
    };
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    let is_described = key.value.is_none() && !key.group.is_empty();
    let default = is_described.then(|| format!(" Default: {}.", key.default()));
    let doc = format!("{}{}", key.doc, default.unwrap_or_default());
    schema.insert("description".to_owned(), doc.into());
    if let Some(value) = &key.value {
        schema.insert("default".to_owned(), value.clone());
    }
    schema.into()
}

/// Returns the schema of the facts about a model, whose values the table of models checks.
fn model() -> Value {
    let properties = MODEL_KEYS
        .into_iter()
        .map(|key| (key.to_owned(), json!({})));
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "additionalProperties": false,
    })
}
