//! [`MergedSettings`]: merges layers, the upper ones first, and reports contradictions. The
//! combined effect of the settings is checked by a builder.

use std::collections::BTreeMap;

use super::fault::Faults;
use super::key::Merge;
use super::keys;
use super::kind::SettingValue;
use super::layer::{FoundSetting, Layer, Origin, two_of_one};
use super::provider::COMPATIBLE;
use super::settings::AgentSettings;

/// Pairs of key groups of which one layer may set only one. An upper layer's group replaces a lower
/// one's.
const EITHER_OR: [(&[&str], &[&str]); 5] = [
    (&["system"], &["system_file"]),
    (
        &["compaction.trigger"],
        &[
            "compaction.compact_at_pct",
            "compaction.compact_budget_threshold_pct",
        ],
    ),
    (
        &["cache.strategy"],
        &[
            "cache.strategy.manual.cache_system",
            "cache.strategy.manual.cache_tools",
            "cache.strategy.manual.cache_messages",
        ],
    ),
    (&["context_strategy"], CONTEXT),
    (&["trigger", "target"], CONTEXT),
];
/// Pairs that one layer may set both if they agree. A builder checks that.
const OR_BOTH: [(&[&str], &[&str]); 1] = [(&["max_parallel_tools"], &["tool_execution"])];
/// Represents every key of `[context]` and `[compaction]`, and the tables themselves.
const CONTEXT: &[&str] = &["[context]"];
/// The tables whose presence selects a context that is limited by its size.
const CONTEXT_TABLES: [&str; 2] = ["context", "compaction"];

/// The merged settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergedSettings {
    pub(crate) settings: AgentSettings,
    /// The settings that were set, by full name.
    pub(crate) found: BTreeMap<String, FoundSetting>,
}

/// A setting with the rank of its layer; 0 is the uppermost.
#[derive(Debug, Clone)]
struct RankedSetting {
    rank: usize,
    path: String,
    found: FoundSetting,
}

impl MergedSettings {
    /// Merges layers, uppermost first.
    pub(crate) fn of(layers: &[&Layer], faults: &mut Faults, warnings: &mut Faults) -> Self {
        let mut all: Vec<RankedSetting> = Vec::new();
        let mut tables: Vec<(usize, &str, &Origin)> = Vec::new();
        for (rank, layer) in layers.iter().enumerate() {
            all.extend(layer.found.iter().map(|found| RankedSetting {
                rank,
                path: found.key.path(),
                found: found.clone(),
            }));
            let of_layer = layer.tables.iter();
            tables.extend(of_layer.map(|(name, origin)| (rank, name.as_str(), origin)));
        }
        tables.retain(|(_, name, _)| CONTEXT_TABLES.contains(name));
        for (one, other) in EITHER_OR {
            either_or(one, other, &mut all, &mut tables, faults, warnings);
        }
        for (one, other) in OR_BOTH {
            let mut agreed = Faults::default();
            either_or(one, other, &mut all, &mut tables, &mut agreed, warnings);
        }
        foreign_address(&mut all, warnings);
        let mut resolved = Self::default();
        resolved.settings.has_context = !tables.is_empty() || all.iter().any(is_of_context);
        for key in keys::all() {
            let path = key.path();
            let mut of_key = all.iter().filter(|ranked| ranked.path == path);
            let Some(first) = of_key.next() else {
                continue;
            };
            let mut found = first.found.clone();
            if key.merge == Merge::Adds {
                for lower in of_key {
                    add(&mut found.value, &lower.found.value);
                }
            }
            key.kind.set(&mut resolved.settings, &found.value);
            resolved.found.insert(path, found);
        }
        resolved
    }

    /// Adds the lines of the settings to a fault that names them.
    pub(crate) fn placed(&self, fault: &str) -> (Option<usize>, String) {
        let words: Vec<&str> = fault
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .collect();
        let named = self.found.values().filter(|found| {
            let names = [found.key.name, found.written.as_str()];
            found.key.name.len() > 4 && names.iter().any(|name| words.contains(name))
        });
        let mut named: Vec<&FoundSetting> = named.collect();
        named.sort_by_key(|found| found.line());
        let line = named.iter().find_map(|found| found.line());
        let others = named.len() > 1 || named.iter().any(|found| found.line().is_none());
        let places: Vec<String> = named
            .iter()
            .map(|found| match found.line() {
                Some(line) => format!("`{}` is on line {line}", found.written),
                None => format!("`{}` is {}", found.key.name, found.origin),
            })
            .collect();
        if others {
            (line, format!("{fault} ({})", places.join(", ")))
        } else {
            (line, fault.to_owned())
        }
    }
}

/// Removes an address that was set for another model, because a key would be sent to its server. An
/// address belongs to the model that is set in its layer or below, and to other models of the same
/// provider.
fn foreign_address(all: &mut Vec<RankedSetting>, warnings: &mut Faults) {
    let first = |all: &[RankedSetting], name: &str, from: usize| {
        let of_name = all.iter().filter(|ranked| ranked.path == name);
        let of_name = of_name.filter(|ranked| ranked.rank >= from);
        of_name.min_by_key(|ranked| ranked.rank).cloned()
    };
    let name = |ranked: &RankedSetting| super::kind::as_text(&ranked.found.value);
    let vendor = |model: &str| model.split('/').next().unwrap_or_default().to_owned();
    while let (Some(url), Some(model)) = (first(all, "base_url", 0), first(all, "model", 0)) {
        if model.rank >= url.rank {
            return;
        }
        let beside = first(all, "model", url.rank);
        // An address without a model belongs to any compatible server.
        let of = beside.as_ref().map_or(COMPATIBLE.to_owned(), &name);
        let model = name(&model);
        if vendor(&of) == vendor(&model) {
            return;
        }
        let text = format!(
            "{} is left out: it is the address of {of}, and the model is {model}; set both in one place",
            url.found.named(),
        );
        if !warnings.0.iter().any(|warning| warning.text == text) {
            warnings.push(url.found.line(), text);
        }
        all.retain(|ranked| ranked.path != "base_url" || ranked.rank != url.rank);
    }
}

fn is_of_context(ranked: &RankedSetting) -> bool {
    matches!(ranked.found.key.table, "context" | "compaction")
}

fn add(upper: &mut SettingValue, lower: &SettingValue) {
    match (upper, lower) {
        (SettingValue::Texts(upper), SettingValue::Texts(lower)) => {
            upper.extend(lower.iter().cloned())
        }
        (SettingValue::Rules(upper), SettingValue::Rules(lower)) => {
            upper.extend(lower.iter().cloned())
        }
        (SettingValue::Hooks(upper), SettingValue::Hooks(lower)) => {
            upper.extend(lower.iter().cloned())
        }
        _ => {}
    }
}

/// Keeps one of two groups, or reports that both are set in one layer.
fn either_or(
    one: &[&str],
    other: &[&str],
    all: &mut Vec<RankedSetting>,
    tables: &mut Vec<(usize, &str, &Origin)>,
    faults: &mut Faults,
    warnings: &mut Faults,
) {
    let is_in = |side: &[&str], ranked: &RankedSetting| {
        side.contains(&ranked.path.as_str()) || (side == CONTEXT && is_of_context(ranked))
    };
    let highest = |side: &[&str]| {
        let of_keys = all.iter().filter(|ranked| is_in(side, ranked));
        let key = of_keys.min_by_key(|ranked| ranked.rank).cloned();
        let of_tables = tables.iter().filter(|_| side == CONTEXT);
        let table = of_tables.min_by_key(|(rank, ..)| *rank).copied();
        match (key, table) {
            (Some(key), Some(table)) if table.0 <= key.rank => Some(Side::Table(table)),
            (Some(key), _) => Some(Side::Key(key)),
            (None, table) => table.map(Side::Table),
        }
    };
    let (Some(first), Some(second)) = (highest(one), highest(other)) else {
        return;
    };
    if first.rank() == second.rank() {
        let text = match (&first, &second) {
            (Side::Key(first), Side::Key(second)) => two_of_one(&first.found, &second.found),
            _ => format!(
                "{} and {} are two settings of one thing; keep the one you mean",
                first.named(),
                second.named()
            ),
        };
        return faults.push(first.line().max(second.line()), text);
    }
    let (upper, lower, side) = if first.rank() < second.rank() {
        (first, second, other)
    } else {
        (second, first, one)
    };
    if upper.line().is_none() {
        let text = format!("{} replaces {}", upper.named(), lower.named());
        warnings.push(lower.line(), text);
    }
    all.retain(|ranked| !is_in(side, ranked) || ranked.rank <= upper.rank());
    if side == CONTEXT {
        tables.retain(|(rank, ..)| *rank <= upper.rank());
    }
}

/// A setting of one group.
enum Side<'a> {
    Key(RankedSetting),
    Table((usize, &'a str, &'a Origin)),
}

impl Side<'_> {
    fn rank(&self) -> usize {
        match self {
            Self::Key(ranked) => ranked.rank,
            Self::Table((rank, ..)) => *rank,
        }
    }

    fn line(&self) -> Option<usize> {
        match self {
            Self::Key(ranked) => ranked.found.line(),
            Self::Table((_, _, origin)) => origin.line(),
        }
    }

    fn named(&self) -> String {
        match self {
            Self::Key(ranked) => ranked.found.named(),
            Self::Table((_, name, Origin::File(_, line))) => format!("[{name}] (line {line})"),
            Self::Table((_, name, _)) => format!("[{name}]"),
        }
    }
}
