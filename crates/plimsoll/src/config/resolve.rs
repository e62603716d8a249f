//! [`MergedSettings`]: merges layers, the upper ones first, and reports contradictions. The
//! combined effect of the settings is checked by a builder.

use super::document::Data;
use super::fault::{ConfigFault, Faults, Origin};
use super::layer::{FoundSetting, Layer};
use super::provider::COMPATIBLE;
use super::settings::AgentSettings;

/// Pairs of groups of settings for one thing: names, or beginnings of names. An upper layer's group
/// replaces a lower one's.
const RIVALS: [(&[&str], &[&str]); 5] = [
    (&["system"], &["system_file"]),
    (&["compaction.trigger"], &["compaction.compact_"]),
    (&["context_strategy"], CONTEXT),
    (&["trigger", "target"], CONTEXT),
    (&["max_parallel_tools"], &["tool_execution"]),
];
/// A context that is limited by its size.
const CONTEXT: &[&str] = &["context.", "compaction."];
/// A group that one layer may set together with its rival, because a builder checks that they agree.
const CHECKED: &[&str] = &["max_parallel_tools"];

/// Lists whose values of all layers apply, those of the upper ones first.
const ADDED: [&str; 3] = ["pins", "permissions", "hooks"];

/// The merged settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct MergedSettings {
    pub(crate) settings: AgentSettings,
    /// The settings that were set.
    pub(crate) layer: Layer,
}

impl MergedSettings {
    /// Merges layers, uppermost first.
    pub(crate) fn of(layers: &[&Layer], faults: &mut Faults, warnings: &mut Faults) -> Self {
        let mut merged = Layer::default();
        let mut addresses: Vec<(FoundSetting, String)> = Vec::new();
        for layer in layers.iter().rev() {
            let mut layer = Layer::clone(layer);
            for (one, other) in RIVALS {
                match (layer.first(one), layer.first(other)) {
                    (Some(_), Some(_)) if one == CHECKED => {}
                    (Some(first), Some(second)) => {
                        faults.add([first.contradicts(second)]);
                        // What follows from both is not reported as well.
                        layer.0.retain(|path, _| !is_in(other, path));
                    }
                    (Some(upper), None) => merged.replace(other, upper, warnings),
                    (None, Some(upper)) => merged.replace(one, upper, warnings),
                    (None, None) => {}
                }
            }
            if let Some(url) = layer.0.get("base_url").cloned() {
                // An address without a model belongs to any compatible server.
                let model = layer.text("model").or_else(|| merged.text("model"));
                addresses.push((url, model.unwrap_or_else(|| COMPATIBLE.to_owned())));
            }
            merged.add(layer);
        }
        merged.choose_address(addresses, warnings);
        let mut settings = AgentSettings::default();
        for found in merged.0.values() {
            (found.key.apply)(&found.given.value(), &mut settings);
        }
        if merged.first(CONTEXT).is_some() {
            settings.builder.context_config.get_or_insert_default();
        }
        let layer = merged;
        Self { settings, layer }
    }

    /// Converts a builder's fault: adds the origins of the settings that it names. `rules` are the
    /// numbers of the permission rules that the builder has.
    pub(crate) fn placed(&self, fault: &str, rules: &[usize]) -> ConfigFault {
        if let Some(origin) = self.rule_origin(fault, rules) {
            let (origin, text) = (origin.clone(), fault.to_owned());
            return ConfigFault { origin, text };
        }
        let words: Vec<&str> = fault
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .collect();
        let named = self.layer.0.values().filter(|found| {
            let name = found.key.name;
            let is_hook = name == "hooks" && words.contains(&"hook");
            is_hook || name.len() > 4 && words.contains(&name)
        });
        let mut named: Vec<&FoundSetting> = named.collect();
        // The first place in a file comes before flags and variables.
        named.sort_by_key(|found| {
            let place = found.given.origin.place();
            (place.is_none(), place)
        });
        let Some((first, others)) = named.split_first() else {
            let (origin, text) = (Origin::Default, fault.to_owned());
            return ConfigFault { origin, text };
        };
        let origin = first.given.origin.clone();
        let mut text = fault.to_owned();
        if !others.is_empty() {
            let places = named.iter().map(|found| {
                let beside = found.given.origin.beside(&origin);
                format!("`{}`: {beside}", found.key.name)
            });
            text = format!("{text} ({})", places.collect::<Vec<_>>().join(", "));
        }
        ConfigFault { origin, text }
    }

    /// Returns the origin of the key of a permission rule that a fault is about.
    fn rule_origin(&self, fault: &str, rules: &[usize]) -> Option<&Origin> {
        let permissions = &self.layer.0.get("permissions")?.given;
        let number = fault.strip_prefix("permission rule ")?.split(' ').next();
        let number: usize = number?.parse().ok()?;
        let Some(rule) = rules.get(number.checked_sub(1)?) else {
            return Some(&permissions.origin);
        };
        let is_of_arguments = fault.contains("argument") || fault.contains("given to");
        let key = if is_of_arguments { "arguments" } else { "tool" };
        Some(permissions.items()?.get(*rule)?.origin_of(key))
    }
}

impl FoundSetting {
    /// Returns its full name as part of a fault.
    fn name(&self) -> String {
        match self.given.entries() {
            Some([]) => format!("[{}]", self.key.table),
            _ => format!("`{}`", self.key.path()),
        }
    }

    /// Returns the fault of two settings of one layer, at the lower one.
    fn contradicts(&self, other: &Self) -> ConfigFault {
        let is_first = self.given.origin.place() <= other.given.origin.place();
        let (upper, lower) = if is_first {
            (self, other)
        } else {
            (other, self)
        };
        let origin = lower.given.origin.clone();
        let text = format!(
            "{} and {} ({}) are two settings of one thing; keep the one you mean",
            lower.name(),
            upper.name(),
            upper.given.origin.beside(&origin),
        );
        ConfigFault { origin, text }
    }
}

impl Layer {
    /// Adds the settings of an upper layer.
    fn add(&mut self, upper: Self) {
        for (path, mut found) in upper.0 {
            let lower = self.0.remove(&path).map(|lower| lower.given.data);
            if let (true, Some(Data::List(lower)), Data::List(own)) =
                (ADDED.contains(&path.as_str()), lower, &mut found.given.data)
            {
                own.extend(lower);
            }
            self.0.insert(path, found);
        }
    }

    /// Removes the settings of a group that `upper`, a setting of an upper layer, replaces. Warns if
    /// it is a flag or a variable, since the reader of the file does not see it.
    fn replace(&mut self, group: &[&str], upper: &FoundSetting, warnings: &mut Faults) {
        let Some(lower) = self.first(group) else {
            return;
        };
        if upper.given.origin.place().is_none() {
            let text = format!("{} replaces {}", upper.given.origin, lower.name());
            warnings.push(&lower.given.origin, text);
        }
        self.0.retain(|path, _| !is_in(group, path));
    }

    /// Returns a setting of a group, if one is set.
    fn first(&self, group: &[&str]) -> Option<&FoundSetting> {
        let mut found = self.0.iter();
        let found = found.find(|(path, _)| is_in(group, path));
        found.map(|(_, found)| found)
    }

    /// Removes an address that was set for another model, because a key would be sent to its server.
    /// An address belongs to the model that is set in its layer or below, and to other models of the
    /// same provider. The uppermost address that belongs to the model counts.
    fn choose_address(&mut self, addresses: Vec<(FoundSetting, String)>, warnings: &mut Faults) {
        let Some(model) = self.text("model") else {
            return;
        };
        let vendor = |model: &str| model.split('/').next().unwrap_or_default().to_owned();
        for (url, of) in addresses.into_iter().rev() {
            if vendor(&of) == vendor(&model) {
                self.0.insert("base_url".to_owned(), url);
                return;
            }
            let text = format!(
                "`base_url` is left out: it is the address of {of}, and the model is {model}; set both in one place"
            );
            warnings.push(&url.given.origin, text);
            self.0.remove("base_url");
        }
    }
}

/// Checks whether a setting is in a group: by its name, or by the beginning of its name.
fn is_in(group: &[&str], path: &str) -> bool {
    group
        .iter()
        .any(|name| path == *name || name.ends_with(['.', '_']) && path.starts_with(name))
}
