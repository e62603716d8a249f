//! [`MergedSettings`]: merges layers, the upper ones first, and reports contradictions. The
//! combined effect of the settings is checked by a builder.

use std::collections::BTreeMap;

use toml::Value;

use super::fault::Faults;
use super::keys::OptionalSettings;
use super::layer::{FoundSetting, Layer, Origin};
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

/// Lists whose values of all layers apply, those of the upper ones first.
const ADDED: [&str; 3] = ["pins", "permissions", "hooks"];

/// The merged settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergedSettings {
    pub(crate) settings: AgentSettings,
    /// The settings that were set, by full name.
    pub(crate) found: BTreeMap<String, FoundSetting>,
}

/// A setting of a group, for a sentence.
struct Mention {
    text: String,
    line: Option<usize>,
}

impl MergedSettings {
    /// Merges layers, uppermost first.
    pub(crate) fn of(layers: &[&Layer], faults: &mut Faults, warnings: &mut Faults) -> Self {
        let mut merged = Layer::default();
        let mut addresses: Vec<(FoundSetting, String)> = Vec::new();
        for layer in layers.iter().rev() {
            for (one, other) in EITHER_OR {
                merged.make_way(layer, one, other, faults, warnings);
            }
            for (one, other) in OR_BOTH {
                merged.make_way(layer, one, other, &mut Faults::default(), warnings);
            }
            merged.add(layer);
            if let Some(url) = layer.found.get("base_url") {
                // An address without a model belongs to any compatible server.
                let model = merged.text("model").unwrap_or(COMPATIBLE).to_owned();
                addresses.push((url.clone(), model));
            }
        }
        merged.choose_address(addresses, warnings);
        // Each value has been accepted before.
        let set = OptionalSettings::read(&merged.values()).unwrap_or_default();
        let mut settings = AgentSettings::default();
        set.apply(&mut settings);
        settings.has_context = merged.mention(CONTEXT).is_some();
        let found = merged.found;
        Self { settings, found }
    }

    /// Adds the lines of the settings to a fault that names them.
    pub(crate) fn placed(&self, fault: &str) -> (Option<usize>, String) {
        let words: Vec<&str> = fault
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .collect();
        let named = self.found.values().filter(|found| {
            let names = [found.key.name.as_str(), found.written.as_str()];
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

impl Layer {
    /// Adds the settings of an upper layer.
    fn add(&mut self, upper: &Self) {
        self.tables.extend(upper.tables.clone());
        for (path, found) in &upper.found {
            let mut found = found.clone();
            if let (true, Value::Array(own), Some(lower)) = (
                ADDED.contains(&path.as_str()),
                &mut found.value,
                self.found.get(path),
            ) {
                own.extend(lower.value.as_array().into_iter().flatten().cloned());
            }
            self.found.insert(path.clone(), found);
        }
    }

    /// Removes the settings of one group if an upper layer sets the other. Reports an upper layer
    /// that sets both.
    fn make_way(
        &mut self,
        upper: &Self,
        one: &[&str],
        other: &[&str],
        faults: &mut Faults,
        warnings: &mut Faults,
    ) {
        let side = match (upper.mention(one), upper.mention(other)) {
            (Some(first), Some(second)) => {
                let text = format!(
                    "{} and {} are two settings of one thing; keep the one you mean",
                    first.text, second.text
                );
                return faults.push(first.line.max(second.line), text);
            }
            (Some(upper), None) => (upper, other),
            (None, Some(upper)) => (upper, one),
            (None, None) => return,
        };
        let (upper, side) = side;
        let Some(lower) = self.mention(side) else {
            return;
        };
        if upper.line.is_none() {
            let text = format!("{} replaces {}", upper.text, lower.text);
            warnings.push(lower.line, text);
        }
        self.found.retain(|_, found| !is_in(side, found));
        if side == CONTEXT {
            self.tables.clear();
        }
    }

    /// Returns a setting of a group, if one is set.
    fn mention(&self, side: &[&str]) -> Option<Mention> {
        let tables = CONTEXT_TABLES.iter().filter(|_| side == CONTEXT);
        let mut tables = tables.filter_map(|name| Some((name, self.tables.get(*name)?)));
        if let Some((name, origin)) = tables.next() {
            let text = match origin {
                Origin::File(_, line) => format!("[{name}] (line {line})"),
                _ => format!("[{name}]"),
            };
            let line = origin.line();
            return Some(Mention { text, line });
        }
        let found = self.found.values().find(|found| is_in(side, found))?;
        Some(Mention {
            text: found.named(),
            line: found.line(),
        })
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.found.get(path)?.value.as_str()
    }

    /// Removes an address that was set for another model, because a key would be sent to its server.
    /// An address belongs to the model that is set in its layer or below, and to other models of the
    /// same provider. The uppermost address that belongs to the model counts.
    fn choose_address(&mut self, addresses: Vec<(FoundSetting, String)>, warnings: &mut Faults) {
        let Some(model) = self.text("model").map(str::to_owned) else {
            return;
        };
        let vendor = |model: &str| model.split('/').next().unwrap_or_default().to_owned();
        for (url, of) in addresses.into_iter().rev() {
            if vendor(&of) == vendor(&model) {
                self.found.insert("base_url".to_owned(), url);
                return;
            }
            let text = format!(
                "{} is left out: it is the address of {of}, and the model is {model}; set both in one place",
                url.named(),
            );
            warnings.push(url.line(), text);
            self.found.remove("base_url");
        }
    }
}

fn is_in(side: &[&str], found: &FoundSetting) -> bool {
    match side {
        CONTEXT => CONTEXT_TABLES.contains(&found.key.table),
        paths => paths.contains(&found.key.path().as_str()),
    }
}
