//! What models cost, as far as it is known. Not what a run has cost; that is usage times rates.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_context::{Money, Rates};

use crate::model_ref::ModelRef;
use crate::vendor::Place;
use crate::windows::undated;

/// The file, read once; empty if it cannot be read, which a test rules out.
static PRICES: LazyLock<BTreeMap<String, BTreeMap<String, Vec<f64>>>> =
    LazyLock::new(|| toml::from_str(include_str!("../data/prices.toml")).unwrap_or_default());

/// What a million tokens of a model cost; `None` where it is not known. A model on this machine
/// costs nothing.
#[must_use]
pub fn known_rates(model: &ModelRef) -> Option<Rates> {
    if matches!(model.vendor().place, Place::ThisMachine | Place::Ours) {
        return Some(Rates::FREE);
    }
    let models = PRICES.get(model.vendor().name)?;
    let name = model.name().to_ascii_lowercase();
    let row = models.get(&name).or_else(|| models.get(undated(&name)?))?;
    let at = |index: usize| row.get(index).copied().and_then(Money::from_dollars);
    let input = at(0)?;
    Some(Rates {
        input,
        output: at(1)?,
        cache_read: at(2),
        cache_write: at(3).or(Some(input)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_the_unknown_stays_unknown() {
        assert!(!PRICES.is_empty());
        for (vendor, models) in PRICES.iter() {
            for name in models.keys() {
                let model = ModelRef::parse(&format!("{vendor}/{name}")).unwrap();
                assert!(known_rates(&model).is_some(), "{model}");
            }
        }
        let dated = ModelRef::parse("openai/gpt-4o-2024-08-06").unwrap();
        assert_eq!(
            known_rates(&dated).unwrap().input,
            Money::from_dollars(2.5).unwrap()
        );
        assert_eq!(known_rates(&ModelRef::parse("openai/new").unwrap()), None);
        for here in ["llama.cpp/x", "local"] {
            let model = ModelRef::parse(here).unwrap();
            assert_eq!(known_rates(&model).unwrap().output, Money(0));
        }
    }
}
