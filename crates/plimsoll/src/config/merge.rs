//! Merges layers, and reports the contradictions within one. The combined effect of the settings is
//! checked by a builder.

use std::collections::BTreeSet;

use super::fault::Faults;
use super::key::SettingKey;
use super::layer::{FoundSetting, Layer};
use super::provider::COMPATIBLE;

/// Lists whose values of all layers apply, those of the upper ones first.
const ADDED: [&str; 3] = ["pins", "permissions", "hooks"];

impl Layer {
    /// Merges layers, uppermost first.
    pub(crate) fn merged(layers: &[&Self], faults: &mut Faults) -> Self {
        let mut merged = Self::default();
        for layer in layers.iter().rev() {
            let mut layer = Self::clone(layer);
            layer.check_rivals(faults);
            for found in layer.0.values() {
                merged.0.retain(|path, _| !found.key.excludes(path));
            }
            if let Some(model) = layer.get::<String>("model")
                && !layer.0.contains_key("base_url")
            {
                merged.keep_address(&model, faults);
            }
            for (path, mut found) in layer.0 {
                let lower = merged.0.remove(&path);
                if let Some(lower) = lower.filter(|_| ADDED.contains(&path.as_str())) {
                    found.append(lower);
                }
                merged.0.insert(path, found);
            }
        }
        merged
    }

    /// Reports the contradictions, each at the lower setting, which is removed, so that its consequences are
    /// not reported as well. One table and a setting, or another table, contradict each other once.
    pub(super) fn check_rivals(&mut self, faults: &mut Faults) {
        let mut found = Vec::from_iter(std::mem::take(&mut self.0));
        found.sort_by_key(|(_, found)| found.origin.place());
        let mut told = BTreeSet::new();
        for (at, (path, lower)) in found.iter().enumerate() {
            let rivals = found.iter().take(at);
            let rivals = rivals.filter(|(upper, _)| lower.key.excludes(upper));
            let rivals: Vec<&FoundSetting> = rivals.map(|(_, upper)| upper).collect();
            if rivals.is_empty() {
                self.0.insert(path.clone(), lower.clone());
                continue;
            }
            let is_new = |upper: &&FoundSetting| {
                let of = |key: &SettingKey| match key.table.as_str() {
                    "" => key.path(),
                    _ if lower.key.table == upper.key.table => key.path(),
                    table => table.to_owned(),
                };
                told.insert([of(lower.key), of(upper.key)])
            };
            let origin = &lower.origin;
            let rivals = rivals
                .into_iter()
                .filter(is_new)
                .map(|upper| format!("`{}` ({})", upper.key.path(), upper.origin.beside(origin)));
            let rivals: Vec<String> = rivals.collect();
            if !rivals.is_empty() {
                let (path, rivals) = (lower.key.path(), rivals.join(" and "));
                let text = format!(
                    "`{path}` and {rivals} are settings of one thing; keep the one you mean"
                );
                faults.push(origin, text);
            }
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
            faults.warn(&url.origin, text);
        }
    }
}
