//! Sentences about a server that several protocols share, each with the rules that cover it.

use plimsoll_context::{CacheRetention, LongerCache};
use plimsoll_judge::Rule;

use super::Peculiarity;
use crate::models::ModelFacts;

/// Sentences about more than one protocol.
pub(super) const CACHE_BY_KEY: &str = "It works by itself; `prompt_cache_key` names the session.";
pub(super) const CACHE_UNASKED: &str =
    "Nothing is asked of a prompt cache: it works by itself, or there is none.";
pub(super) const NO_MEDIA: &str = "Images and files: a note stands in their place.";
pub(super) const NO_TEMPERATURE: &str = "A temperature is not sent: the model refuses it.";

/// Creates a sentence.
pub(super) fn peculiarity(says: impl Into<String>, rules: &[Rule]) -> Peculiarity {
    Peculiarity {
        says: says.into(),
        rules: rules.iter().map(|rule| rule.name()).collect(),
    }
}

/// Returns the sentences whose condition holds.
pub(super) fn those<const N: usize>(all: [(bool, &str, &[Rule]); N]) -> Vec<Peculiarity> {
    let those = all.into_iter().filter(|(holds, ..)| *holds);
    those
        .map(|(_, says, rules)| peculiarity(says, rules))
        .collect()
}

/// Returns the rules of a protocol, by the beginning of their names.
pub(crate) fn rules_of(prefix: &str) -> Vec<&'static str> {
    let all = Rule::ALL.into_iter().map(Rule::name);
    all.filter(|name| name.starts_with(prefix) || *name == Rule::Shape.name())
        .collect()
}

/// Explains the effect of the requested cache retention; `gets` is the granted one.
pub(super) fn of_retention(
    wish: CacheRetention,
    gets: CacheRetention,
    longer: Option<LongerCache>,
) -> Option<Peculiarity> {
    let name = wish.name();
    let price = longer.map_or("at a price that is not known".to_owned(), |longer| {
        let minutes = longer.lives.as_secs() / 60;
        let write = longer.cache_write;
        format!("{minutes} minutes unused, a million tokens written for {write}")
    });
    let says = match gets {
        CacheRetention::Usual if wish == gets => return None,
        CacheRetention::Usual => format!(
            "`cache.retention` is \"{name}\": it has no such thing, and entries live as usual."
        ),
        CacheRetention::Head => {
            format!("Tools and system prompt are kept longer ({price}), messages as usual.")
        }
        CacheRetention::Long => format!("All of it is kept longer ({price})."),
    };
    Some(peculiarity(says, &[]))
}

/// Returns the smallest prompt that is cached, if it is known.
pub(super) fn minimum(facts: &ModelFacts) -> Option<Peculiarity> {
    let least = facts.min_cacheable.as_ref()?.value;
    let says = format!("A prompt of less than {least} tokens is not cached.");
    Some(peculiarity(says, &[]))
}

/// What the model cannot do, as far as that is known.
pub(super) fn unable(sent: bool, facts: &ModelFacts) -> Vec<Peculiarity> {
    let no =
        |fact: &Option<crate::models::Fact<bool>>| fact.as_ref().is_some_and(|fact| !fact.value);
    those([
        (
            sent && facts.takes_images() == Some(false),
            "Images: the model is said not to take them, though its wire does.",
            &[],
        ),
        (
            no(&facts.tools),
            "Tools: the model is said not to call any.",
            &[],
        ),
        (
            no(&facts.thinking),
            "Thinking: the model is said not to think.",
            &[],
        ),
    ])
}
