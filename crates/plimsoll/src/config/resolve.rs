//! [`MergedSettings`]: merges layers, the upper ones first, and reports contradictions. The
//! combined effect of the settings is checked by a builder.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::fault::{Faults, Place};
use super::keys::OptionalSettings;
use super::layer::{FoundSetting, Layer, Origin};
use super::provider::COMPATIBLE;
use super::settings::AgentSettings;

/// Pairs of groups of settings for one thing: names, or beginnings of names. An upper layer's group
/// replaces a lower one's. The flag is `true` if one layer may set both, because a builder checks
/// that they agree.
const RIVALS: [(&[&str], &[&str], bool); 5] = [
    (&["system"], &["system_file"], false),
    (&["compaction.trigger"], &["compaction.compact_"], false),
    (&["context_strategy"], CONTEXT, false),
    (&["trigger", "target"], CONTEXT, false),
    (&["max_parallel_tools"], &["tool_execution"], true),
];
/// The tables whose presence, even if they are empty, selects a context that is limited by its size.
const CONTEXT: &[&str] = &["context.", "compaction."];

/// Lists whose values of all layers apply, those of the upper ones first.
const ADDED: [&str; 3] = ["pins", "permissions", "hooks"];

/// The merged settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergedSettings {
    pub(crate) settings: AgentSettings,
    /// The settings that were set, by full name.
    pub(crate) found: BTreeMap<String, FoundSetting>,
}

impl MergedSettings {
    /// Merges layers, uppermost first.
    pub(crate) fn of(layers: &[&Layer], faults: &mut Faults, warnings: &mut Faults) -> Self {
        let mut merged = Layer::default();
        let mut addresses: Vec<(FoundSetting, String)> = Vec::new();
        for layer in layers.iter().rev() {
            for (one, other, may_be_both) in RIVALS {
                match (layer.mention(one), layer.mention(other)) {
                    (Some(_), Some(_)) if may_be_both => {}
                    (Some((first, at)), Some((second, place))) => {
                        let text = format!(
                            "{first} and {second} are two settings of one thing; keep the one you mean"
                        );
                        faults.push(at.max(place), text);
                    }
                    (Some(upper), None) => merged.replace(other, upper, warnings),
                    (None, Some(upper)) => merged.replace(one, upper, warnings),
                    (None, None) => {}
                }
            }
            merged.add(layer);
            if let Some(url) = layer.found.get("base_url") {
                // An address without a model belongs to any compatible server.
                let model = merged.text("model").unwrap_or(COMPATIBLE).to_owned();
                addresses.push((url.clone(), model));
            }
        }
        merged.choose_address(addresses, warnings);
        let mut settings = AgentSettings::default();
        merged.typed().apply(&mut settings);
        if merged.mention(CONTEXT).is_some() {
            settings.builder.context_config.get_or_insert_default();
        }
        let found = merged.found;
        Self { settings, found }
    }

    /// Adds the places of the settings to a fault that names them.
    pub(crate) fn placed(&self, fault: &str) -> (Option<Place>, String) {
        let words: Vec<&str> = fault
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .collect();
        let named = self
            .found
            .values()
            .filter(|found| found.key.name.len() > 4 && words.contains(&found.key.name.as_str()));
        let mut named: Vec<&FoundSetting> = named.collect();
        named.sort_by_key(|found| found.place());
        let place = named.iter().find_map(|found| found.place());
        if named.len() == usize::from(place.is_some()) {
            return (place, fault.to_owned());
        }
        let places = named.iter().map(|found| match found.place() {
            Some(place) => format!("`{}` is on line {}", found.key.name, place.line),
            None => format!("`{}` is {}", found.key.name, found.origin),
        });
        let places: Vec<String> = places.collect();
        (place, format!("{fault} ({})", places.join(", ")))
    }
}

impl Layer {
    /// Returns the settings with their types. Each value has been accepted before.
    pub(crate) fn typed(&self) -> OptionalSettings {
        let found = self.found.iter();
        let values: Table = found
            .map(|(path, found)| (path.clone(), found.value.clone()))
            .collect();
        OptionalSettings::read(&values).unwrap_or_default()
    }

    /// Adds the settings of an upper layer.
    fn add(&mut self, upper: &Self) {
        self.tables.extend(upper.tables.clone());
        for (path, found) in &upper.found {
            let lower = self.found.insert(path.clone(), found.clone());
            let lower = lower.filter(|_| ADDED.contains(&path.as_str()));
            if let (Some(Value::Array(lower)), Some(found)) =
                (lower.map(|lower| lower.value), self.found.get_mut(path))
                && let Value::Array(own) = &mut found.value
            {
                own.extend(lower);
            }
        }
    }

    /// Removes the settings of a group that `upper`, a setting of an upper layer, replaces. Warns if
    /// it is a flag or a variable, since the reader of the file does not see it.
    fn replace(&mut self, group: &[&str], upper: (String, Option<Place>), warnings: &mut Faults) {
        let Some((lower, place)) = self.mention(group) else {
            return;
        };
        let (upper, upper_place) = upper;
        if upper_place.is_none() {
            warnings.push(place, format!("{upper} replaces {lower}"));
        }
        self.found.retain(|path, _| !is_in(group, path));
        self.tables
            .retain(|table, _| !is_in(group, &format!("{table}.")));
    }

    /// Returns the name and the place of a setting of a group, or of its table, if one is set.
    fn mention(&self, group: &[&str]) -> Option<(String, Option<Place>)> {
        let mut tables = self.tables.iter();
        if let Some((name, origin)) =
            tables.find(|(name, _)| group.contains(&format!("{name}.").as_str()))
            && let Origin::File(_, place) = origin
        {
            return Some((format!("[{name}] (line {})", place.line), Some(*place)));
        }
        let mut found = self.found.iter();
        let (_, found) = found.find(|(path, _)| is_in(group, path))?;
        Some((found.named(), found.place()))
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
            warnings.push(url.place(), text);
            self.found.remove("base_url");
        }
    }
}

/// Checks whether a setting is in a group: by its name, or by the beginning of its name.
fn is_in(group: &[&str], path: &str) -> bool {
    group
        .iter()
        .any(|name| path == *name || name.ends_with(['.', '_']) && path.starts_with(name))
}
