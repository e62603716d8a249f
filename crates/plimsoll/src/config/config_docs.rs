//! [`markdown`]: the tables of the documentation, from the structure of settings. [`TEMPLATE`]: a file to
//! begin with.

use super::key::{SettingKey, TABLES, fields, keys};

/// A `plimsoll.toml` to begin with, in which each setting is a comment.
pub const TEMPLATE: &str = include_str!("template.toml");

/// Returns the tables of the documentation.
#[must_use]
pub fn markdown() -> String {
    let mut text = row(["key", "value", "default", "what", "flag"]) + &row(["---"; 5]);
    for key in keys() {
        let flag = key.flag.as_ref();
        let flag = flag.map_or(String::new(), |flag| format!("`--{flag}`"));
        let (path, default) = (format!("`{}`", key.path()), default(key));
        text += &row([&path, &value(key), &default, &key.doc, &flag]);
    }
    for table in TABLES {
        text += &format!("\n### `{table}`\n\n");
        text += &(row(["key", "value", "default", "what"]) + &row(["---"; 4]));
        for key in fields(table) {
            let name = format!("`{}`", key.name);
            text += &row([&name, &value(key), &default(key), &key.doc]);
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
    match key.description().word.as_str() {
        "flag" | "choice" => key.takes(),
        word if key.or_none => format!("{word} or \"none\""),
        word => word.to_owned(),
    }
}

/// Returns a row of a table.
fn row<const CELLS: usize>(cells: [&str; CELLS]) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}
