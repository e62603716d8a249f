//! Generates texts from the structure of settings: a template of `plimsoll.toml`, and the tables of the
//! documentation.

use std::fmt::Write;

use super::form::SettingKind;
use super::key::{Preset, SettingKey, TABLES, fields, keys};

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
    let mut tables: Vec<&str> = everywhere().map(|key| key.table).collect();
    // Keys without a table must precede the first table.
    tables.sort_by_key(|table| !table.is_empty());
    tables.dedup();
    for table in tables {
        if !table.is_empty() {
            line(&mut text, &format!("\n# [{table}]"));
        }
        for key in everywhere().filter(|key| key.table == table) {
            line(&mut text, &format!("# {}", key.doc));
            let value = match &key.default {
                Preset::Value(value) => value.clone(),
                Preset::Words(words) => format!("…   # {}; default: {words}", key.takes),
            };
            line(&mut text, &format!("# {} = {value}", key.name));
        }
    }
    text + TAIL
}

fn everywhere() -> impl Iterator<Item = &'static SettingKey> {
    keys().filter(|key| !key.is_of_one_agent)
}

/// Returns the tables of the documentation.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::new();
    row(&mut text, ["key", "value", "default", "what", "flag"]);
    row(&mut text, ["---"; 5]);
    for key in keys() {
        let flag = key.flag.as_ref();
        let flag = flag.map_or(String::new(), |flag| format!("`--{flag}`"));
        let (path, default) = (format!("`{}`", key.path()), default(key));
        row(&mut text, [&path, &value(key), &default, &key.doc, &flag]);
    }
    for table in TABLES {
        line(&mut text, &format!("\n### `{table}`\n"));
        row(&mut text, ["key", "value", "default", "what"]);
        row(&mut text, ["---"; 4]);
        for key in fields(table) {
            let name = format!("`{}`", key.name);
            row(&mut text, [&name, &value(key), &default(key), &key.doc]);
        }
    }
    text
}

fn default(key: &SettingKey) -> String {
    match &key.default {
        _ if key.is_required => "required".to_owned(),
        Preset::Value(value) => format!("`{value}`"),
        Preset::Words(words) => words.clone(),
    }
}

/// Returns a word for the form of a value, which the documentation explains, or the form itself.
fn value(key: &SettingKey) -> String {
    let is_own = key.kind == SettingKind::Tables && key.items().is_none();
    if is_own || matches!(key.kind, SettingKind::Flag | SettingKind::Choice) {
        return key.takes.clone();
    }
    let word = format!("{:?}", key.kind).to_ascii_lowercase();
    if key.takes.ends_with("or \"none\"") {
        format!("{word} or \"none\"")
    } else {
        word
    }
}

/// Adds a row of a table.
fn row<const CELLS: usize>(text: &mut String, cells: [&str; CELLS]) {
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    line(text, &format!("| {} |", cells.join(" | ")));
}

fn line(text: &mut String, words: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{words}");
}
