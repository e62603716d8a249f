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
            let list = fault
                .settings
                .first()
                .and_then(|path| self.layer.0.get(*path));
            let items = list.and_then(|list| list.given.items());
            let item = items.and_then(|mut items| items.nth(fault.item?));
            match item.map(|item| &item.origin) {
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
        let origin = found.first().map(|first| &first.given.origin);
        let origin = origin.unwrap_or(&Origin::Default);
        let places = found.iter().map(|found| {
            let beside = found.given.origin.beside(origin);
            format!("`{}`: {beside}", found.key.name)
        });
        let places: Vec<String> = places.collect();
        match places.as_slice() {
            [] | [_] => faults.push(origin, text),
            places => faults.push(origin, format!("{text} ({})", places.join(", "))),
        }
    }
}
