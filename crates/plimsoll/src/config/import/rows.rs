//! [`ImportRow`]: a setting of another system with its counterpart. The rows are data, in
//! `systems.toml`.
//!
//! A row is `PATH = [HOW, NAME, { OTHER = VALUE }]`. NAME is Plimsoll's setting, with PROVIDER and MODEL for
//! the names of the provider and the model that it belongs to. HOW is the conversion of the value, which
//! `translate.rs` makes, or is empty. OTHER is another setting that it implies. `PATH = ["-", WHY]` has no
//! counterpart. `PATH = ["as", OTHER]` is a table with the rows of another one. The tables at
//! `PATH = ["each", "agents"]` are agents, whose paths begin with `agents.`. Paths are always in snake case.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// A setting of another system.
#[derive(Debug, Deserialize)]
pub(super) struct ImportRow {
    /// The conversion of the value. Empty if the value stays unchanged, `-` if there is no counterpart.
    pub(super) how: String,
    /// The counterpart, or the reason why there is none.
    pub(super) ours: String,
    /// The implied settings, each with its value.
    #[serde(default)]
    pub(super) implied: Map<String, Json>,
}

/// The rows by their paths.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ImportRows {
    pub(super) settings: BTreeMap<String, ImportRow>,
    /// Providers by the beginnings of the names of their models.
    pub(super) models: BTreeMap<String, String>,
    pub(super) tools: BTreeMap<String, String>,
}

/// All rows. Empty if they cannot be parsed, which a test excludes.
pub(super) static ROWS: LazyLock<ImportRows> =
    LazyLock::new(|| toml::from_str(include_str!("systems.toml")).unwrap_or_default());
