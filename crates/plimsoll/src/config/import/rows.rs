//! [`ImportRow`]: a setting of another system with its counterpart. The rows are data, in
//! `systems.txt`.
//!
//! A line is `PATH = HOW NAME + OTHER=VALUE`. NAME is Plimsoll's setting. HOW is an optional
//! conversion of the value, which `translate.rs` makes. `OTHER=VALUE` is another setting that it
//! implies. `PATH = - WHY` has no counterpart. Paths are always in snake case, and those of the
//! system's agents begin with `agents.`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_context::snake_case;

use super::System;

const SYSTEMS: &str = include_str!("systems.txt");

/// The conversions of parts of a model, of its provider or its prices.
pub(super) const OF_MODELS: [&str; 6] = ["provider", "api", "model", "base_url", "key", "price"];

/// A setting of another system.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportRow {
    /// The conversion of the value. Empty if the value stays unchanged, `-` if there is no counterpart.
    pub(super) how: &'static str,
    /// The counterpart, or the reason why there is none.
    pub(super) ours: &'static str,
    /// An implied setting, with its value.
    pub(super) implies: Option<(&'static str, &'static str)>,
}

/// All rows by system and path.
pub(super) static ROWS: LazyLock<BTreeMap<(System, &str), ImportRow>> = LazyLock::new(|| {
    let mut system = System::Heartbit;
    let mut rows = BTreeMap::new();
    for line in SYSTEMS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            system = name.trim_end_matches(']').parse().unwrap_or(system);
        } else if let Some((path, text)) = line.split_once(" = ") {
            let (text, implies) = text.split_once(" + ").unwrap_or((text, ""));
            let (how, ours) = text.split_once(' ').unwrap_or(("", text));
            let implies = implies.split_once('=');
            rows.insert((system, path.trim()), ImportRow { how, ours, implies });
        }
    }
    rows
});

/// Names of phi-core's types, and the tables of its files with the same settings.
const TYPES: [(&str, &str); 10] = [
    ("agent_loop_config.", ""),
    (
        "context_config.tool_output_max_lines.",
        "compaction.legacy_max_lines.",
    ),
    ("context_config.compaction.", "compaction."),
    ("compaction.compaction.", "compaction."),
    ("context_config.", "compaction."),
    ("compaction_config.", "compaction."),
    ("execution_limits.", "execution."),
    ("retry_config.", "execution.retry."),
    ("cache_config.", "execution.cache."),
    ("model_config.", "provider."),
];

/// Returns a path without names of wrapping types.
pub(super) fn unwrapped(system: System, path: &str) -> String {
    let mut path = format!("{path}.");
    while system == System::PhiCore
        && let Some((name, table)) = TYPES.iter().find(|(name, _)| path.starts_with(name))
    {
        path = path.replacen(name, table, 1);
    }
    path.pop();
    path
}

/// Returns a sentence about a name that is a setting of another system.
pub(in super::super) fn setting_hint(name: &str) -> Option<String> {
    let name = snake_case(name);
    let is_same = |path: &str, row: &ImportRow| {
        let is_plain = row.how != "-" && !OF_MODELS.contains(&row.how);
        is_plain && path.rsplit('.').next() == Some(name.as_str())
    };
    let mut rows = ROWS.iter();
    let ((system, _), row) = rows.find(|((_, path), row)| is_same(path, row))?;
    let ours = row.ours;
    Some(format!("this setting of {system} is `{ours}` here"))
}

/// Returns a sentence about a name that is a table of another system.
pub(in super::super) fn table_hint(name: &str) -> Option<String> {
    let table = format!("{}.", snake_case(name));
    let mut rows = ROWS.keys();
    let (system, _) = rows.find(|(_, path)| path.starts_with(&table))?;
    Some(format!(
        "`plimsoll config import` translates a file of {system}"
    ))
}
