//! Merges layers, and reports the contradictions within one. The combined effect of the settings is
//! checked by a builder.

use super::fault::Faults;
use super::layer::{FoundSetting, Layer};
use super::provider::COMPATIBLE;

/// Pairs of groups of settings for one thing: names, or beginnings of names. An upper layer's group
/// replaces a lower one's.
const RIVALS: [(&[&str], &[&str]); 5] = [
    (&["system"], &["system_file"]),
    (&["compaction.trigger"], &["compaction.compact_"]),
    (&["context_strategy"], CONTEXT),
    (&["trigger", "target"], CONTEXT),
    (&["max_parallel_tools"], &["tool_execution"]),
];
/// Groups of fields that exclude each other: a table has one field of each group.
const TABLE_RIVALS: [(&[&str], &[&str]); 2] = [
    (
        &["command", "args", "env"],
        &["url", "headers", "bearer_env"],
    ),
    (&["api_key"], &["api_key_env"]),
];
/// A context that is limited by its size.
const CONTEXT: &[&str] = &["context.", "compaction."];
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
            layer.0.values_mut().for_each(|found| found.depth = depth);
            for (one, other) in RIVALS {
                match (layer.first(one), layer.first(other)) {
                    (Some(_), Some(_)) if one == CHECKED => {}
                    (Some(first), Some(second)) => {
                        first.contradicts(second, faults);
                        // What follows from both is not reported as well.
                        layer.0.retain(|path, _| !is_in(other, path));
                    }
                    (Some(_), None) => merged.0.retain(|path, _| !is_in(other, path)),
                    (None, Some(_)) => merged.0.retain(|path, _| !is_in(one, path)),
                    (None, None) => {}
                }
            }
            if let Some(model) = layer.text("model")
                && !layer.0.contains_key("base_url")
            {
                merged.keep_address(&model, faults);
            }
            merged.add(layer);
        }
        merged
    }

    /// Reports the contradictions within a table that is not one of settings.
    pub(super) fn check_table(&self, faults: &mut Faults) {
        for (one, other) in TABLE_RIVALS {
            if let (Some(first), Some(second)) = (self.first(one), self.first(other)) {
                first.contradicts(second, faults);
            }
        }
    }

    /// Removes an address that was set for another model, because a key would be sent to its server.
    /// An address belongs to the model that is set in its layer or below (without one, to any compatible
    /// server), and to other models of the same provider.
    fn keep_address(&mut self, model: &str, faults: &mut Faults) {
        let owner = self.text("model");
        let owner = owner.unwrap_or_else(|| COMPATIBLE.to_owned());
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

    /// Adds the settings of an upper layer.
    fn add(&mut self, upper: Self) {
        for (path, mut found) in upper.0 {
            let lower = self.0.remove(&path);
            if let Some(lower) = lower.filter(|_| ADDED.contains(&path.as_str())) {
                found.append(lower);
            }
            self.0.insert(path, found);
        }
    }

    /// Returns a setting of a group, if one is set.
    fn first(&self, group: &[&str]) -> Option<&FoundSetting> {
        let mut found = self.0.iter();
        let found = found.find(|(path, _)| is_in(group, path));
        found.map(|(_, found)| found)
    }
}

impl FoundSetting {
    /// Reports two settings of one layer, at the lower one.
    fn contradicts(&self, other: &Self, faults: &mut Faults) {
        let is_first = self.given.origin.place() <= other.given.origin.place();
        let (upper, lower) = if is_first {
            (self, other)
        } else {
            (other, self)
        };
        let origin = &lower.given.origin;
        let text = format!(
            "`{}` and `{}` ({}) are two settings of one thing; keep the one you mean",
            lower.key.path(),
            upper.key.path(),
            upper.given.origin.beside(origin),
        );
        faults.push(origin, text);
    }
}

/// Checks whether a setting is in a group: by its name, or by the beginning of its name.
fn is_in(group: &[&str], path: &str) -> bool {
    group
        .iter()
        .any(|name| path == *name || name.ends_with(['.', '_']) && path.starts_with(name))
}
