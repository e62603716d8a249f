//! Merges layers, and reports the contradictions within one. The combined effect of the settings is
//! checked by a builder.

use super::fault::Faults;
use super::layer::{FoundSetting, Layer};
use super::provider::COMPATIBLE;

/// Pairs of groups of settings for one thing: names, or beginnings of names. A layer has one of each pair,
/// and an upper layer's group replaces a lower one's. The last two are of tables that are not settings.
const RIVALS: [(&[&str], &[&str]); 6] = [
    (&["system"], &["system_file"]),
    (&["compaction.trigger"], &["compaction.compact_"]),
    (
        &["context_strategy", "trigger", "target"],
        &["context.", "compaction."],
    ),
    (CHECKED, &["tool_execution"]),
    (
        &["command", "args", "env"],
        &["url", "headers", "bearer_env"],
    ),
    (&["api_key"], &["api_key_env"]),
];
/// A group that one layer may set together with its rival, because a builder checks that they agree.
const CHECKED: &[&str] = &["max_parallel_tools"];
/// Lists whose values of all layers apply, those of the upper ones first.
const ADDED: [&str; 3] = ["pins", "permissions", "hooks"];

impl Layer {
    /// Merges layers, uppermost first.
    pub(crate) fn merged(layers: &[&Self], faults: &mut Faults) -> Self {
        let mut merged = Self::default();
        for (depth, layer) in layers.iter().rev().enumerate() {
            let mut layer = Self::clone(layer);
            layer.check_rivals(faults);
            for (one, other) in RIVALS {
                for (own, lower) in [(one, other), (other, one)] {
                    if layer.first(own).is_some() {
                        merged.0.retain(|path, _| !is_in(lower, path));
                    }
                }
            }
            if let Some(model) = layer.get::<String>("model")
                && !layer.0.contains_key("base_url")
            {
                merged.keep_address(&model, faults);
            }
            for (path, mut found) in layer.0 {
                found.depth = depth;
                let lower = merged.0.remove(&path);
                if let Some(lower) = lower.filter(|_| ADDED.contains(&path.as_str())) {
                    found.append(lower);
                }
                merged.0.insert(path, found);
            }
        }
        merged
    }

    /// Reports the contradictions, each at the lower setting. One group is removed, so that what follows from
    /// both is not reported as well.
    pub(super) fn check_rivals(&mut self, faults: &mut Faults) {
        for (one, other) in RIVALS.iter().filter(|(one, _)| *one != CHECKED) {
            let (Some(first), Some(second)) = (self.first(one), self.first(other)) else {
                continue;
            };
            let mut both = [first, second];
            both.sort_by_key(|found| found.given.origin.place());
            let [upper, lower] = both;
            let origin = &lower.given.origin;
            let text = format!(
                "`{}` and `{}` ({}) are two settings of one thing; keep the one you mean",
                lower.key.path(),
                upper.key.path(),
                upper.given.origin.beside(origin),
            );
            faults.push(origin, text);
            self.0.retain(|path, _| !is_in(other, path));
        }
    }

    /// Removes an address that was set for another model, because a key would be sent to its server.
    /// An address belongs to the model that is set in its layer or below (without one, to any compatible
    /// server), and to other models of the same provider.
    fn keep_address(&mut self, model: &str, faults: &mut Faults) {
        let owner = self.get("model");
        let owner: String = owner.unwrap_or_else(|| COMPATIBLE.to_owned());
        if owner.split('/').next() == model.split('/').next() {
            return;
        }
        if let Some(url) = self.0.remove("base_url") {
            let text = format!(
                "`base_url` is left out: it is the address of {owner}, and the model is {model}; set both in one place"
            );
            faults.warn(&url.given.origin, text);
        }
    }

    /// Returns a setting of a group, if one is set.
    fn first(&self, group: &[&str]) -> Option<&FoundSetting> {
        let mut found = self.0.iter();
        let found = found.find(|(path, _)| is_in(group, path));
        found.map(|(_, found)| found)
    }
}

/// Checks whether a setting is in a group: by its name, or by the beginning of its name.
fn is_in(group: &[&str], path: &str) -> bool {
    group
        .iter()
        .any(|name| path == *name || name.ends_with(['.', '_']) && path.starts_with(name))
}
