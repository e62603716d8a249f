//! Generates texts from the structure of settings: a template of `plimsoll.toml`, and the tables of the
//! documentation.

use std::fmt::Write;

use schemars::Schema;

use super::hook::HookTable;
use super::key::{Preset, Scope, SettingKey, description, fields_of, keys};
use super::keys::schema_of;
use super::mcp::McpTable;
use super::permission::RuleTable;
use super::provider::ProviderTable;
use super::retention::SessionTable;

const HEAD: &str = "\
# Settings of plimsoll. Everything here is a comment that says a default; take the `#` away to set it.
# What stands before the first table holds for all agents; [[agents]] at the end is one agent.
# `plimsoll config check` says what it comes to, `plimsoll config show --origin` where it comes from.
# Editors complete it: plimsoll config schema > plimsoll.schema.json
#:schema ./plimsoll.schema.json
";

const TAIL: &str = "
# An agent, for `plimsoll run --agent reviewer`: all that stands above may stand in it too, in
# [agents.compaction] and so on.
# [[agents]]
# name = \"reviewer\"
# description = \"Reviews a change.\"
# model = \"openai/gpt-5-mini\"
# tools = [\"read\", \"grep\"]
# context_strategy = \"summarize\"
# trigger = 100_000

# How a provider is reached; the key stays in the environment.
# [providers.mine]
# base_url = \"http://127.0.0.1:8080/v1\"
# api_key_env = \"MY_KEY\"

# What a model has and costs: its window, its longest answer, dollars for a million tokens, and more.
# [models.openai.\"gpt-9\"]
# window = 400_000
# input = 2.0
# output = 8.0
";

/// Returns a template of `plimsoll.toml` with every key as a comment.
#[must_use]
pub fn template() -> String {
    let mut text = HEAD.to_owned();
    let mut tables: Vec<&str> = Vec::new();
    for key in everywhere() {
        if !tables.contains(&key.table) {
            tables.push(key.table);
        }
    }
    // Keys without a table must precede the first table.
    tables.sort_by_key(|table| !table.is_empty());
    for table in tables {
        if !table.is_empty() {
            line(&mut text, &format!("\n# [{table}]"));
        }
        for key in everywhere().filter(|key| key.table == table) {
            line(&mut text, &format!("# {}", key.doc));
            match &key.default {
                Preset::Value(value) => line(&mut text, &format!("# {} = {value}", key.name)),
                Preset::Words(words) => {
                    line(
                        &mut text,
                        &format!("# {} = …   (default: {words})", key.name),
                    );
                }
            }
        }
    }
    text + TAIL
}

fn everywhere() -> impl Iterator<Item = &'static SettingKey> {
    keys().filter(|key| key.scope == Scope::Everywhere)
}

/// Returns the tables of the documentation.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::new();
    line(&mut text, "| key | takes | default | what | flag |");
    line(&mut text, "| --- | --- | --- | --- | --- |");
    for key in keys() {
        let default = match &key.default {
            Preset::Value(value) => format!("`{value}`"),
            Preset::Words(words) => words.clone(),
        };
        let flag = key.flag.as_ref();
        let cells = [
            format!("`{}`", key.path()),
            key.takes.clone(),
            default,
            key.doc.clone(),
            flag.map_or(String::new(), |flag| format!("`--{flag}`")),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|")).join(" | ");
        line(&mut text, &format!("| {cells} |"));
    }
    for (title, schema) in [
        ("`[[permissions]]`", schema_of::<RuleTable>()),
        ("`[[hooks]]`", schema_of::<HookTable>()),
        ("`[[mcp]]`", schema_of::<McpTable>()),
        ("`[providers.NAME]`", schema_of::<ProviderTable>()),
        ("`[sessions]`", schema_of::<SessionTable>()),
    ] {
        line(&mut text, &format!("\n### {title}\n"));
        table(&mut text, schema);
    }
    text
}

fn table(text: &mut String, schema: Schema) {
    line(text, "| key | takes | what |");
    line(text, "| --- | --- | --- |");
    for (name, field) in fields_of(schema) {
        let takes = field.get("x-takes").and_then(|takes| takes.as_str());
        let takes = takes.unwrap_or_default();
        let doc = field.as_object().map(description).unwrap_or_default();
        line(text, &format!("| `{name}` | {takes} | {doc} |"));
    }
}

fn line(text: &mut String, words: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{words}");
}
