//! Reports faults at the places of the settings that cause them.

use plimsoll_core::Error;

use super::agent::AgentConfig;
use super::fault::{ConfigError, Faults, Origin};
use super::layer::FoundSetting;

impl AgentConfig {
    /// Converts the error of a builder. Each fault has the places of the settings that it names, or of the
    /// item of a list.
    #[must_use]
    pub fn place(&self, error: &Error) -> ConfigError {
        let Error::Build(found) = error else {
            return self.fault(error);
        };
        let mut faults = Faults::default();
        for fault in found {
            let list = fault.settings.first();
            let list = list.and_then(|path| self.layer.0.get(*path));
            match list.and_then(|list| list.items.get(fault.item?)) {
                Some(origin @ Origin::File(..)) => faults.push(origin, &fault.text),
                Some(origin) => faults.push(origin, fault.to_string()),
                None => self.report(fault.settings, &fault.text, &mut faults),
            }
        }
        ConfigError {
            faults: faults.faults,
        }
    }

    /// Reports a fault at the first of some settings. Names the places of all that are set.
    pub(super) fn report(&self, paths: &[&str], text: &str, faults: &mut Faults) {
        let found = paths.iter().filter_map(|path| self.layer.0.get(*path));
        let found: Vec<&FoundSetting> = found.collect();
        let origin = found.first().map(|first| &first.origin);
        let origin = origin.unwrap_or(&Origin::Default);
        let places = found.iter().map(|found| {
            let beside = found.origin.beside(origin);
            format!("`{}`: {beside}", found.key.name)
        });
        let places: Vec<String> = places.collect();
        match places.as_slice() {
            [] | [_] => faults.push(origin, text),
            places => faults.push(origin, format!("{text} ({})", places.join(", "))),
        }
    }
}
