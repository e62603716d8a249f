//! The JSON Schema of `plimsoll.toml`, for editors. It is generated from the tables of keys and
//! fields, so it always agrees with the parser.

use plimsoll_wire::Effort;
use serde_json::{Map, Value, json};

use super::fields::{Field, FieldKind};
use super::hook::HOOK_FIELDS;
use super::key::{Preset, Scope, SettingKey};
use super::keys;
use super::kind::SettingKind;
use super::mcp::MCP_FIELDS;
use super::permission::PERMISSION_FIELDS;
use super::provider::PROVIDER_FIELDS;
use super::retention::SESSION_FIELDS;
use plimsoll_providers::MODEL_KEYS;

/// Returns the schema.
#[must_use]
pub fn schema() -> Value {
    let mut agent = Map::new();
    let mut top = Map::new();
    for key in keys::all() {
        put(&mut agent, &key.path(), of_key(key));
        if key.scope == Scope::Everywhere {
            put(&mut top, &key.path(), of_key(key));
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
    let more = [
        ("agents", json!({ "type": "array", "items": agent })),
        (
            "mcp",
            json!({ "type": "array", "items": of_fields(MCP_FIELDS, &["name"]) }),
        ),
        (
            "providers",
            json!({ "type": "object", "additionalProperties": of_fields(PROVIDER_FIELDS, &[]) }),
        ),
        ("sessions", of_fields(SESSION_FIELDS, &[])),
        ("models", models),
    ];
    for (name, schema) in more {
        top.insert(name.to_owned(), schema);
    }
    let mut schema = table(top);
    put_word(
        &mut schema,
        "$schema",
        "https://json-schema.org/draft/2020-12/schema",
    );
    put_word(&mut schema, "title", "plimsoll.toml");
    schema
}

/// Adds a key's schema to the tables that lead to it.
fn put(table: &mut Map<String, Value>, path: &str, schema: Value) {
    let Some((first, rest)) = path.split_once('.') else {
        // A key that is a table and a value accepts either.
        let schema = match table.remove(path) {
            Some(other) => json!({ "anyOf": [schema, other] }),
            None => schema,
        };
        table.insert(path.to_owned(), schema);
        return;
    };
    let inner = table
        .entry(first)
        .or_insert_with(|| self::table(Map::new()));
    let object = match inner.get_mut("anyOf") {
        Some(Value::Array(either)) => match either.iter().position(is_object) {
            Some(at) => either.get_mut(at),
            None => {
                either.push(self::table(Map::new()));
                either.last_mut()
            }
        },
        _ => Some(inner),
    };
    let Some(object) = object else {
        return;
    };
    if !is_object(object) {
        let value = object.take();
        *object = json!({ "anyOf": [value, self::table(Map::new())] });
        return put(table, path, schema);
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        put(properties, rest, schema);
    }
}

fn is_object(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// Adds a keyword to a schema.
fn put_word(schema: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(object) = schema.as_object_mut() {
        object.insert(name.to_owned(), value.into());
    }
}

fn table(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn of_key(key: &SettingKey) -> Value {
    let mut schema = of_kind(key.kind);
    let doc = match key.default {
        Preset::Words(words) => format!("{} Default: {words}.", key.doc),
        Preset::Value(_) => key.doc.to_owned(),
    };
    put_word(&mut schema, "description", doc);
    if let Some(value) = key.preset() {
        put_word(&mut schema, "default", value.json());
    }
    schema
}

fn of_kind(kind: SettingKind) -> Value {
    let whole = |least: u64| json!({ "type": "integer", "minimum": least });
    let or_text = |schema: Value, pattern: &str| json!({ "anyOf": [schema, { "type": "string", "pattern": pattern }] });
    let seconds = json!({ "type": "number", "exclusiveMinimum": 0 });
    let time = r"^ *[0-9.]+ *(ms|s|m|min|h)? *$";
    let tokens = "^[0-9][0-9_]*[kKmM]?$";
    match kind {
        SettingKind::Flag(_) => json!({ "type": "boolean" }),
        SettingKind::Whole(least, _) => whole(least),
        SettingKind::Tokens(least, _) => or_text(whole(least), tokens),
        SettingKind::Count(least, _) => whole(least as u64),
        SettingKind::TokensOrNone(_) => or_text(whole(1), &format!("^(none|unlimited)$|{tokens}")),
        SettingKind::Window(_) => or_text(whole(1), &format!("^unknown$|{tokens}")),
        SettingKind::Share(_) => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        SettingKind::Size(_) => or_text(json!({ "type": "number", "minimum": 0 }), tokens),
        SettingKind::Number(most, _) => json!({ "type": "number", "minimum": 0, "maximum": most }),
        SettingKind::Dollars(_) => json!({ "type": "number", "exclusiveMinimum": 0 }),
        SettingKind::Time(_) => or_text(seconds, time),
        SettingKind::TimeOrNone(_) => json!({
            "anyOf": [seconds, { "type": "string", "pattern": time }, { "enum": ["none", "unlimited"] }]
        }),
        SettingKind::Text(_) | SettingKind::Path(_) => json!({ "type": "string" }),
        SettingKind::Choice(names, _) => json!({ "enum": names }),
        SettingKind::Names(_) | SettingKind::Paths(_) | SettingKind::Texts(_) => json!({
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
        }),
        SettingKind::Counts(_) => json!({ "type": "object", "additionalProperties": whole(0) }),
        SettingKind::Execution(_) => json!({
            "anyOf": [
                { "enum": ["sequential", "parallel"] },
                {
                    "type": "object",
                    "properties": { "batched": whole(1) },
                    "required": ["batched"],
                    "additionalProperties": false,
                },
            ]
        }),
        SettingKind::Rules(_) => json!({
            "type": "array", "items": of_fields(PERMISSION_FIELDS, &["tool", "then"])
        }),
        SettingKind::Hooks(_) => json!({
            "type": "array", "items": of_fields(HOOK_FIELDS, &["on", "command"])
        }),
        SettingKind::Hosted(_) => json!({
            "type": "array",
            "items": { "type": "object", "properties": { "type": { "type": "string" } },
                "required": ["type"] },
        }),
        SettingKind::Earlier(_) => json!({
            "anyOf": [
                { "enum": ["token_budget"] },
                {
                    "type": "object",
                    "properties": { "fixed_count": whole(0) },
                    "required": ["fixed_count"],
                    "additionalProperties": false,
                },
            ]
        }),
    }
}

fn of_fields(fields: &[Field], required: &[&str]) -> Value {
    let properties = fields.iter().map(|field| {
        let mut schema = match field.kind {
            FieldKind::Flag => json!({ "type": "boolean" }),
            FieldKind::Text => json!({ "type": "string" }),
            FieldKind::Texts => json!({
                "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
            }),
            FieldKind::Map => json!({
                "type": "object", "additionalProperties": { "type": "string" }
            }),
            FieldKind::Whole => json!({ "type": "integer", "minimum": 1 }),
            FieldKind::Time => json!({ "type": ["number", "string"] }),
            FieldKind::Choice(names) => json!({ "enum": names }),
        };
        put_word(&mut schema, "description", field.doc);
        (field.name.to_owned(), schema)
    });
    let mut schema = table(properties.collect());
    put_word(&mut schema, "required", json!(required));
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
