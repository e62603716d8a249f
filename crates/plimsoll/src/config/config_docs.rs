//! [`markdown`]: the tables of the documentation, from the structure of settings. [`TEMPLATE`]: a file to
//! begin with.

use std::fmt::Write;

use super::key::{SettingKey, TABLES, fields, keys};

/// A `plimsoll.toml` to begin with, in which each setting is a comment.
pub const TEMPLATE: &str = include_str!("template.toml");

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
    match key.value {
        _ if key.is_required => "required".to_owned(),
        Some(_) => format!("`{}`", key.default()),
        None => key.default(),
    }
}

/// Returns a word for the form of a value, which the documentation explains, or the form itself.
fn value(key: &SettingKey) -> String {
    match key.word() {
        "flag" | "choice" => key.takes(),
        word if key.or_none => format!("{word} or \"none\""),
        word => word.to_owned(),
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
