//! [`ImportRow`]: a setting of another system with its counterpart. The rows are data, in
//! `systems.txt`.
//!
//! A line is `PATH = HOW NAME + OTHER=VALUE`. NAME is Plimsoll's setting, with PROVIDER and MODEL for the
//! names of the provider and the model that it belongs to. HOW is an optional
//! conversion of the value, which `translate.rs` makes. `OTHER=VALUE` is another setting that it
//! implies. `PATH = - WHY` has no counterpart. `PATH = as OTHER` is a table with the rows of another
//! one. The tables at `PATH = each agents` are agents, whose
//! paths begin with `agents.`. Paths are always in snake case.

use std::collections::BTreeMap;
use std::sync::LazyLock;

const SYSTEMS: &str = include_str!("systems.txt");
/// The sections of settings, of models by the beginnings of their names, and of tools.
pub(super) const SETTINGS: &str = "settings";
pub(super) const MODELS: &str = "models";
pub(super) const TOOLS: &str = "tools";

/// A setting of another system.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportRow {
    /// The conversion of the value. Empty if the value stays unchanged, `-` if there is no counterpart.
    pub(super) how: &'static str,
    /// The counterpart, or the reason why there is none.
    pub(super) ours: &'static str,
    /// The implied settings.
    implied: &'static str,
}

impl ImportRow {
    /// Returns the implied settings, each with its value.
    pub(super) fn implied(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let implied = self.implied.split(" + ");
        implied.filter_map(|setting| setting.split_once('='))
    }
}

/// All rows by the name of their section and their path.
pub(super) static ROWS: LazyLock<BTreeMap<(&str, &str), ImportRow>> = LazyLock::new(|| {
    let mut section = "";
    let mut rows = BTreeMap::new();
    for line in SYSTEMS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((path, text)) = line.split_once(" = ") {
            let (text, implied) = text.split_once(" + ").unwrap_or((text, ""));
            let (how, ours) = text.split_once(' ').unwrap_or(("", text));
            rows.insert((section, path.trim()), ImportRow { how, ours, implied });
        }
    }
    rows
});

/// Returns the rows of a section, with their paths.
pub(super) fn rows(section: &str) -> impl Iterator<Item = (&'static str, ImportRow)> {
    let rows = ROWS.iter().filter(move |((own, _), _)| *own == section);
    rows.map(|((_, path), row)| (*path, *row))
}

/// Returns the row of a path.
pub(super) fn row(section: &str, path: &str) -> Option<ImportRow> {
    ROWS.get(&(section, path)).copied()
}
