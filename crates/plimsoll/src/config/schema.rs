//! The JSON Schema of `plimsoll.toml`, for editors. It is generated from the structures that the
//! parser reads, so it always agrees with it.

use plimsoll_providers::MODEL_KEYS;
use plimsoll_wire::Effort;
use serde_json::{Map, Value, json};

use super::key::{Preset, Scope, SettingKey, keys};
use super::keys::schema_of;
use super::mcp::McpTable;
use super::provider::ProviderTable;
use super::retention::SessionTable;

/// Returns the schema.
#[must_use]
pub fn schema() -> Value {
    let (mut agent, mut top) = (Map::new(), Map::new());
    for key in keys() {
        put(&mut agent, key);
        if key.scope == Scope::Everywhere {
            put(&mut top, key);
        }
    }
    let mut agent = table(agent);
    put_word(&mut agent, "required", json!(["name"]));
    let models = json!({
        "description": "Properties of models: a table per provider with one table per model in \
         it, or one table per \"provider/model\".",
        "type": "object",
        "additionalProperties": { "anyOf": [
            model(), { "type": "object", "additionalProperties": model() },
        ] },
    });
    let mcp = schema_of::<McpTable>().to_value();
    let provider = schema_of::<ProviderTable>().to_value();
    let more = [
        ("agents", json!({ "type": "array", "items": agent })),
        ("mcp", json!({ "type": "array", "items": mcp })),
        (
            "providers",
            json!({ "type": "object", "additionalProperties": provider }),
        ),
        ("sessions", schema_of::<SessionTable>().to_value()),
        ("models", models),
    ];
    top.extend(more.map(|(name, schema)| (name.to_owned(), schema)));
    let mut schema = table(top);
    strip(&mut schema);
    put_word(
        &mut schema,
        "$schema",
        "https://json-schema.org/draft/2020-12/schema",
    );
    put_word(&mut schema, "title", "plimsoll.toml");
    schema
}

/// Adds a key's schema to its table.
fn put(properties: &mut Map<String, Value>, key: &SettingKey) {
    let schema = of_key(key);
    if key.table.is_empty() {
        properties.insert(key.name.clone(), schema);
        return;
    }
    let entry = properties.entry(key.table);
    let entry = entry.or_insert_with(|| table(Map::new()));
    if let Some(Value::Object(inner)) = entry.get_mut("properties") {
        inner.insert(key.name.clone(), schema);
    }
}

/// Adds a keyword to a schema.
fn put_word(schema: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(object) = schema.as_object_mut() {
        object.insert(name.to_owned(), value.into());
    }
}

/// Removes the keywords that only this crate knows, and those of a whole document.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object
                .retain(|name, _| !name.starts_with("x-") && name != "$schema" && name != "title");
            object.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

fn table(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn of_key(key: &SettingKey) -> Value {
    let mut schema = Value::Object(key.schema.clone());
    let doc = match &key.default {
        Preset::Words(words) => format!("{} Default: {words}.", key.doc),
        Preset::Value(_) => key.doc.clone(),
    };
    put_word(&mut schema, "description", doc);
    if let Some(value) = key.preset() {
        put_word(&mut schema, "default", json!(value));
    }
    schema
}

fn model() -> Value {
    let dollars = json!({ "type": "number", "minimum": 0 });
    let whole = json!({ "type": "integer", "minimum": 1 });
    let flag = json!({ "type": "boolean" });
    let efforts = json!({ "type": "array", "items": { "enum": Effort::ALL.map(Effort::name) } });
    let properties = MODEL_KEYS.into_iter().map(|key| {
        let schema = match key {
            "cache_lives" | "longer_lives" | "min_cacheable" | "window" | "max_output" => &whole,
            "images" | "thinking" | "tools" => &flag,
            "efforts" => &efforts,
            _ => &dollars,
        };
        (key.to_owned(), schema.clone())
    });
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "dependentRequired": { "input": ["output"], "output": ["input"] },
        "additionalProperties": false,
    })
}
