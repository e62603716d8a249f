//! Finds the settings that cause a builder's fault: those without which it would not arise.

use std::cell::Cell;

use plimsoll_core::{AgentBuilder, Error};

use super::agent::AgentConfig;
use super::document::{Data, Located};
use super::fault::{ConfigError, Faults, Origin};
use super::key;
use super::layer::{FoundSetting, Layer};
use super::settings::AgentSettings;

/// Maximum number of builders that are tried to place the faults of a file, which may come from anybody.
/// Further faults have no place.
const MAX_TRIES: usize = 2_000;

/// Returns the faults of an agent.
type FaultsOf<'a> = dyn Fn(&AgentConfig) -> Vec<String> + 'a;

impl AgentConfig {
    /// Converts a builder's faults, and adds the origins of the settings that cause them. `make` creates
    /// the same builder for this agent with other settings.
    #[must_use]
    pub fn place(
        &self,
        error: &Error,
        make: &dyn Fn(&Self) -> Result<AgentBuilder, ConfigError>,
    ) -> ConfigError {
        let Error::Build(texts) = error else {
            return self.fault(error.to_string());
        };
        let faults_of = |agent: &Self| match make(agent).map(AgentBuilder::build) {
            Ok(Err(Error::Build(texts))) => texts,
            _ => Vec::new(),
        };
        let mut faults = Faults::default();
        self.place_all(texts.clone(), &faults_of, &mut faults);
        ConfigError {
            faults: faults.faults,
        }
    }

    /// Reports faults at the settings that cause them.
    pub(super) fn place_all(
        &self,
        texts: Vec<String>,
        faults_of: &FaultsOf<'_>,
        faults: &mut Faults,
    ) {
        let tries = Cell::new(faults.tries);
        for text in texts {
            let arises = |layer: Layer| {
                tries.set(tries.get() + 1);
                faults_of(&self.with(layer)).contains(&text)
            };
            let causes = if tries.get() > MAX_TRIES {
                let mut known = faults.faults.iter();
                if known.any(|fault| fault.text.starts_with(&text)) {
                    continue;
                }
                Vec::new()
            } else if arises(self.layer.clone()) {
                self.causes(&arises)
            } else {
                // The program has changed the settings.
                Vec::new()
            };
            let list = causes.iter().find(|found| found.key.items().is_some());
            match list {
                Some(list) => faults.push(list.cause(&self.layer, &arises), text),
                None => report(&causes, &text, faults),
            }
        }
        faults.tries = tries.get();
    }

    /// Reports a fault at the first of some settings. Names the places of all that are set.
    pub(super) fn report(&self, paths: &[&str], text: &str, faults: &mut Faults) {
        let found = paths.iter().filter_map(|path| self.layer.0.get(*path));
        report(&found.collect::<Vec<_>>(), text, faults);
    }

    /// Returns the settings without which a fault does not arise.
    fn causes(&self, arises: &dyn Fn(Layer) -> bool) -> Vec<&FoundSetting> {
        let is_cause = |path: &str| {
            let mut layer = self.layer.clone();
            layer.0.remove(path);
            !arises(layer)
        };
        let set = self.layer.0.iter();
        let causes = set.filter(|(path, _)| is_cause(path));
        causes.map(|(_, found)| found).collect()
    }

    /// Returns this agent with other settings.
    fn with(&self, layer: Layer) -> Self {
        let mut settings = AgentSettings::of(&layer);
        // The default depends on the other agents.
        settings.sub_agents.clone_from(&self.settings.sub_agents);
        Self {
            settings,
            layer,
            ..self.clone()
        }
    }
}

impl FoundSetting {
    /// Returns the place of the fault of a list of tables: in the item with which it arises, the field
    /// without which it does not, or the first required one.
    fn cause<'a>(&'a self, all: &Layer, arises: &dyn Fn(Layer) -> bool) -> &'a Origin {
        let items = self.given.items().unwrap_or_default();
        let arises_of = |items: &[Located]| {
            let mut layer = all.clone();
            if let Some(found) = layer.0.get_mut(self.key.name) {
                found.given.data = Data::List(items.to_vec());
            }
            arises(layer)
        };
        // With more items, it still arises.
        let counts: Vec<usize> = (1..=items.len()).collect();
        let of = |count: &usize| items.get(..*count).unwrap_or_default();
        let at = counts.partition_point(|count| !arises_of(of(count)));
        let Some((before, [item, ..])) = items.split_at_checked(at) else {
            return &self.given.origin;
        };
        let table = self.key.items().unwrap_or_default();
        let is_cause = |name: &str| {
            let mut item = item.clone();
            if let Data::Table(entries) = &mut item.data {
                entries.retain(|(field, _)| field != name);
            }
            let items = [before, &[item]].concat();
            !arises_of(&items)
        };
        let fields = || key::fields(&table).map(|field| (field.name, field.is_required));
        let optional = fields().filter(|(name, needed)| !needed && item.get(name).is_some());
        let mut causes = optional.filter(|(name, _)| is_cause(name));
        let cause = causes
            .next()
            .or_else(|| fields().find(|(_, needed)| *needed));
        item.origin_of(cause.map_or("", |(name, _)| name))
    }
}

/// Reports a fault at the first of some settings, with the places of all.
fn report(found: &[&FoundSetting], text: &str, faults: &mut Faults) {
    let mut found = found.to_vec();
    // The first place in a file comes before flags and variables.
    found.sort_by_key(|found| {
        let place = found.given.origin.place();
        (place.is_none(), place)
    });
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
