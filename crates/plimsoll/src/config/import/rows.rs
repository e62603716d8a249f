//! [`ImportRow`]: a setting of another system with its counterpart. The rows are data, in
//! `systems.txt`.
//!
//! A line is `PATH = HOW NAME + OTHER=VALUE`. NAME is Plimsoll's setting. HOW is an optional
//! conversion of the value (see [`ValueConversion`]). `OTHER=VALUE` are other settings that it
//! implies.
//! `FROM=TO` after NAME replaces a value. `PATH = - WHY` has no counterpart. Paths are always in
//! snake case, and those of the system's agents begin with `agents.`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::System;

const SYSTEMS: &str = include_str!("systems.txt");

/// A setting of another system.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportRow {
    pub(super) how: ValueConversion,
    /// The counterpart. Empty if there is none.
    pub(super) ours: &'static str,
    /// A value of the other system and its counterpart.
    pub(super) value: Option<(&'static str, &'static str)>,
    /// An implied setting, with its value.
    pub(super) implies: Option<(&'static str, &'static str)>,
    /// The reason why there is no counterpart.
    pub(super) why: &'static str,
}

/// The conversion of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ValueConversion {
    /// The value stays unchanged.
    #[serde(skip)]
    Same,
    /// Unchanged, for the agent that calls the others.
    Main,
    /// Milliseconds become a time.
    Millis,
    /// Incremented, because the other system does not count the first attempt.
    Retries,
    /// Bytes or characters become tokens.
    Bytes,
    /// Whether tool calls run in batches, or the size of a batch.
    Batch,
    /// Tool names are translated.
    Tools,
    /// Permission rules.
    Permissions,
    /// Tool servers.
    Servers,
    /// A part of the model, of its provider or its prices.
    #[serde(skip)]
    Model(ModelField),
    /// No counterpart.
    #[serde(skip)]
    Nothing,
}

/// A part of the specification of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModelField {
    Provider,
    Api,
    Model,
    BaseUrl,
    Key,
    Price,
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

impl ImportRow {
    fn of(text: &'static str) -> Self {
        let (text, implies) = match text.split_once(" + ") {
            Some((text, implies)) => (text, implies.split_once('=')),
            None => (text, None),
        };
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let how = ValueConversion::named(word);
        let (ours, value) = match how {
            Some(_) => (rest, None),
            None => (word, rest.split_once('=')),
        };
        let (ours, why) = match how {
            Some(ValueConversion::Nothing) => ("", rest),
            _ => (ours, ""),
        };
        let how = how.unwrap_or(ValueConversion::Same);
        Self {
            how,
            ours,
            value,
            implies,
            why,
        }
    }
}

impl ValueConversion {
    fn named(word: &str) -> Option<Self> {
        if word == "-" {
            return Some(Self::Nothing);
        }
        let part = || serde_json::from_value(word.into()).ok().map(Self::Model);
        serde_json::from_value(word.into()).ok().or_else(part)
    }
}
