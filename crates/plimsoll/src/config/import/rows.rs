//! [`ImportRow`]: a setting of another system with its counterpart. The rows are data, in
//! `systems.txt`.
//!
//! A line is `PATH = HOW NAME + OTHER=VALUE`. NAME is Plimsoll's setting. HOW is an optional
//! conversion of the value, which `Translation::convert` or `models.rs` makes. `OTHER=VALUE` is
//! another setting that it implies. `PATH = - WHY` has no counterpart. Paths are always in snake case,
//! and those of the system's agents begin with `agents.`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::System;

const SYSTEMS: &str = include_str!("systems.txt");

/// The conversions of parts of a model, of its provider or its prices.
pub(super) const OF_MODELS: [&str; 6] = ["provider", "api", "model", "base_url", "key", "price"];

/// A setting of another system.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportRow {
    /// The conversion of the value. Empty if the value stays unchanged.
    pub(super) how: &'static str,
    /// The counterpart. Empty if there is none.
    pub(super) ours: &'static str,
    /// An implied setting, with its value.
    pub(super) implies: Option<(&'static str, &'static str)>,
    /// The reason why there is no counterpart.
    pub(super) why: &'static str,
}

/// All rows by system and path.
pub(super) static ROWS: LazyLock<BTreeMap<(System, &str), ImportRow>> = LazyLock::new(|| {
    let mut system = System::Heartbit;
    let mut rows = BTreeMap::new();
    for line in SYSTEMS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            system = name.trim_end_matches(']').parse().unwrap_or(system);
        } else if let Some((path, text)) = line.split_once(" = ") {
            rows.insert((system, path.trim()), ImportRow::of(text));
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

impl ImportRow {
    /// Returns the row of a setting.
    pub(super) fn find(system: System, path: &str) -> Option<Self> {
        ROWS.get(&(system, path)).copied()
    }

    fn of(text: &'static str) -> Self {
        let (text, implies) = text.split_once(" + ").unwrap_or((text, ""));
        let implies = implies.split_once('=');
        let (how, rest) = text.split_once(' ').unwrap_or(("", text));
        let (ours, why) = if how == "-" { ("", rest) } else { (rest, "") };
        Self {
            how,
            ours,
            implies,
            why,
        }
    }
}
