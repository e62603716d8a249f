//! Merges layers, and reports the contradictions within one. The combined effect of the settings is
//! checked by a builder.

use super::fault::Faults;
use super::layer::Layer;
use super::provider::COMPATIBLE;

/// Settings for one thing that one layer may set together, because a builder checks that they agree.
const CHECKED: [&str; 2] = ["max_parallel_tools", "tool_execution"];
/// Lists whose values of all layers apply, those of the upper ones first.
const ADDED: [&str; 3] = ["pins", "permissions", "hooks"];

impl Layer {
    /// Merges layers, uppermost first.
    pub(crate) fn merged(layers: &[&Self], faults: &mut Faults) -> Self {
        let mut merged = Self::default();
        for (depth, layer) in layers.iter().rev().enumerate() {
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

    /// Reports the contradictions, each at the lower setting. Excluded settings are removed, so that the
    /// consequences of both are not reported as well.
    pub(super) fn check_rivals(&mut self, faults: &mut Faults) {
        let mut paths: Vec<String> = self.0.keys().cloned().collect();
        paths.retain(|path| !CHECKED.contains(&path.as_str()));
        for path in &paths {
            let Some(first) = self.0.get(path) else {
                continue;
            };
            let key = first.key;
            let second = self.0.iter().find(|(path, _)| key.excludes(path));
            let Some((_, second)) = second else { continue };
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
            self.0.retain(|path, _| !key.excludes(path));
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
}
