//! [`MergedSettings`]: merges layers, the upper ones first, and reports contradictions. The
//! combined effect of the settings is checked by a builder.

use toml::Value;

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
/// The tables whose presence, even if they are empty, selects a context that is limited by its size.
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

/// A setting of a group, or its table.
struct Mention {
    name: String,
    origin: Origin,
}

impl MergedSettings {
    /// Merges layers, uppermost first.
    pub(crate) fn of(layers: &[&Layer], faults: &mut Faults, warnings: &mut Faults) -> Self {
        let mut merged = Layer::default();
        let mut addresses: Vec<(FoundSetting, String)> = Vec::new();
        for layer in layers.iter().rev() {
            let mut layer = Layer::clone(layer);
            for (one, other) in RIVALS {
                match (layer.mention(one), layer.mention(other)) {
                    (Some(_), Some(_)) if one == CHECKED => {}
                    (Some(first), Some(second)) => {
                        faults.add([first.contradicts(&second)]);
                        // What follows from both is not reported as well.
                        layer.remove(other);
                    }
                    (Some(upper), None) => merged.replace(other, &upper, warnings),
                    (None, Some(upper)) => merged.replace(one, &upper, warnings),
                    (None, None) => {}
                }
            }
            if let Some(url) = layer.found.get("base_url").cloned() {
                // An address without a model belongs to any compatible server.
                let model = layer.text("model").or(merged.text("model"));
                addresses.push((url, model.unwrap_or(COMPATIBLE).to_owned()));
            }
            merged.add(layer);
        }
        merged.choose_address(addresses, warnings);
        let mut settings = AgentSettings::default();
        for found in merged.found.values() {
            (found.key.apply)(&found.value, &mut settings);
        }
        if merged.mention(CONTEXT).is_some() {
            settings.builder.context_config.get_or_insert_default();
        }
        let layer = merged;
        Self { settings, layer }
    }

    /// Converts a builder's fault: adds the origins of the settings that it names.
    pub(crate) fn placed(&self, fault: &str) -> ConfigFault {
        let words: Vec<&str> = fault
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .collect();
        let named = self.layer.found.values();
        let named = named.filter(|found| {
            let name = found.key.name;
            let is_rule = name == "permissions" && words.contains(&"permission");
            is_rule || name.len() > 4 && words.contains(&name)
        });
        let mut named: Vec<&FoundSetting> = named.collect();
        named.sort_by_key(|found| found.origin.place());
        let placed = named.iter().find(|found| found.origin.place().is_some());
        let origin = placed.map_or(Origin::Default, |found| found.origin.clone());
        let text = if named.len() == usize::from(placed.is_some()) {
            fault.to_owned()
        } else {
            let places = named.iter().map(|found| {
                let name = &found.key.name;
                match &found.origin {
                    Origin::File(..) => format!("`{name}` is on {}", found.origin.beside(&origin)),
                    other => format!("`{name}` is {other}"),
                }
            });
            let places: Vec<String> = places.collect();
            format!("{fault} ({})", places.join(", "))
        };
        ConfigFault { origin, text }
    }
}

impl Mention {
    /// Returns the fault of two settings of one layer, at the lower one.
    fn contradicts(&self, other: &Self) -> ConfigFault {
        let is_first = self.origin.place() <= other.origin.place();
        let origin = if is_first {
            &other.origin
        } else {
            &self.origin
        };
        let named = |it: &Self| it.origin.named(&it.name, origin);
        let (first, second) = (named(self), named(other));
        ConfigFault {
            origin: origin.clone(),
            text: format!(
                "{first} and {second} are two settings of one thing; keep the one you mean"
            ),
        }
    }
}

impl Layer {
    /// Adds the settings of an upper layer.
    fn add(&mut self, upper: Self) {
        self.tables.extend(upper.tables);
        for (path, mut found) in upper.found {
            let lower = self.found.remove(&path).map(|lower| lower.value);
            if let (true, Some(Value::Array(lower)), Value::Array(own)) =
                (ADDED.contains(&path.as_str()), lower, &mut found.value)
            {
                own.extend(lower);
            }
            self.found.insert(path, found);
        }
    }

    /// Removes the settings of a group that `upper`, a setting of an upper layer, replaces. Warns if
    /// it is a flag or a variable, since the reader of the file does not see it.
    fn replace(&mut self, group: &[&str], upper: &Mention, warnings: &mut Faults) {
        let Some(lower) = self.mention(group) else {
            return;
        };
        if upper.origin.place().is_none() {
            let named = |it: &Mention| it.origin.named(&it.name, &lower.origin);
            let text = format!("{} replaces {}", named(upper), named(&lower));
            warnings.at(lower.origin, text);
        }
        self.remove(group);
    }

    /// Removes the settings of a group.
    fn remove(&mut self, group: &[&str]) {
        self.found.retain(|path, _| !is_in(group, path));
        self.tables
            .retain(|table, _| !is_in(group, &format!("{table}.")));
    }

    /// Returns a setting of a group, or its table, if one is set.
    fn mention(&self, group: &[&str]) -> Option<Mention> {
        let mut tables = self.tables.iter();
        let table = tables.find(|(name, _)| group.contains(&format!("{name}.").as_str()));
        let table = table.map(|(name, origin)| (format!("[{name}]"), origin));
        let mut found = self.found.iter();
        let found = || {
            let (_, found) = found.find(|(path, _)| is_in(group, path))?;
            Some((format!("`{}`", found.key.name), &found.origin))
        };
        let (name, origin) = table.or_else(found)?;
        let origin = origin.clone();
        Some(Mention { name, origin })
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
                url.origin.named("`base_url`", &url.origin),
            );
            warnings.at(url.origin, text);
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
