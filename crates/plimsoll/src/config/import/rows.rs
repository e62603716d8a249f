//! [`Row`]: a setting of another system, and what it is here. The rows are data, in `systems.txt`.
//!
//! A line is `PATH = HOW NAME + OTHER=VALUE`: the setting NAME of ours, after a change that HOW names (see
//! [`How`]; without it the value stays), and other settings that it implies. `FROM=TO` behind NAME replaces a
//! value. `PATH = - WHY` has no counterpart. Paths are in snake case, whatever their system does, and what a
//! system's agents may say begins with `agents.`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::System;

const SYSTEMS: &str = include_str!("systems.txt");

/// A setting of another system.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) how: How,
    /// The setting that it is here. Empty if there is none.
    pub(super) ours: &'static str,
    /// A value of theirs and what it is here.
    pub(super) value: Option<(&'static str, &'static str)>,
    /// A setting that it implies, with its value.
    pub(super) implies: Option<(&'static str, &'static str)>,
    /// Why there is no counterpart.
    pub(super) why: &'static str,
}

/// What happens to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Nothing.
    Same,
    /// Nothing, but it is for the agent that calls the others.
    Main,
    /// Milliseconds become a time.
    Millis,
    /// One more: the first attempt does not count there.
    Retries,
    /// Bytes or characters become tokens.
    Bytes,
    /// Nothing, and it is left out if summaries are off.
    Summaries,
    /// Nothing, and 0 is no limit.
    Limit,
    /// Raised to the least size of the history of tool calls.
    History,
    /// It says that tool calls run in batches, or how large those are.
    Batch,
    /// Names of tools become ours.
    Tools,
    /// Rules for what may run.
    Permissions,
    /// Servers of tools.
    Servers,
    /// A part of the model, of its provider or its prices.
    Model(Part),
    /// It has no counterpart.
    Nothing,
}

/// A part of what says which model is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Provider,
    Api,
    Model,
    BaseUrl,
    Key,
    Price,
}

/// All rows by system and path.
pub(super) static ROWS: LazyLock<BTreeMap<(System, &str), Row>> = LazyLock::new(|| {
    let mut system = System::Heartbit;
    let mut rows = BTreeMap::new();
    for line in SYSTEMS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            system = name.trim_end_matches(']').parse().unwrap_or(system);
        } else if let Some((path, text)) = line.split_once(" = ") {
            rows.insert((system, path.trim()), Row::of(text));
        }
    }
    rows
});

impl Row {
    fn of(text: &'static str) -> Self {
        let (text, implies) = match text.split_once(" + ") {
            Some((text, implies)) => (text, implies.split_once('=')),
            None => (text, None),
        };
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let how = How::named(word);
        let (ours, value) = match how {
            Some(_) => (rest, None),
            None => (word, rest.split_once('=')),
        };
        let (ours, why) = match how {
            Some(How::Nothing) => ("", rest),
            _ => (ours, ""),
        };
        let how = how.unwrap_or(How::Same);
        Self {
            how,
            ours,
            value,
            implies,
            why,
        }
    }
}

impl How {
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "main" => Self::Main,
            "millis" => Self::Millis,
            "retries" => Self::Retries,
            "bytes" => Self::Bytes,
            "summaries" => Self::Summaries,
            "limit" => Self::Limit,
            "history" => Self::History,
            "batch" => Self::Batch,
            "tools" => Self::Tools,
            "permissions" => Self::Permissions,
            "servers" => Self::Servers,
            "provider" => Self::Model(Part::Provider),
            "api" => Self::Model(Part::Api),
            "model" => Self::Model(Part::Model),
            "base_url" => Self::Model(Part::BaseUrl),
            "key" => Self::Model(Part::Key),
            "price" => Self::Model(Part::Price),
            "-" => Self::Nothing,
            _ => return None,
        })
    }
}
