//! What is said of `generateContent`.

use plimsoll_judge::Rule;
use plimsoll_wire::gemini::{Profile, Signatures, Thinking};
use plimsoll_wire::openai_chat::{Images, Prefill};

use super::Peculiarity;
use super::sentences::{minimum, peculiarity, those, unable};
use crate::models::ModelFacts;

/// What is peculiar to a profile of `generateContent`.
pub(crate) fn peculiarities(of: &Profile) -> Vec<Peculiarity> {
    let mut all = those([
        (
            true,
            "All results of a batch are one content, in the order of the calls, and nothing else \
             is in it.",
            &[Rule::Gm1, Rule::Gm2, Rule::Gm4],
        ),
        (
            of.signatures == Signatures::Required,
            "Each thought signature goes back in the part that it came with. Calls of other \
             providers get the mark that Google has for them.",
            &[Rule::Gm3],
        ),
        (
            of.prefill == Prefill::Refused,
            "The model never has the last word.",
            &[Rule::Gm5],
        ),
        (
            of.thinking == Thinking::None,
            "The model does not think, and is not asked to.",
            &[],
        ),
        (
            matches!(of.thinking, Thinking::Budget { .. }),
            "Thinking has a budget of tokens, at most half of the longest answer.",
            &[],
        ),
    ]);
    if let Thinking::Levels(levels) = &of.thinking {
        let levels: Vec<&str> = levels.iter().map(|level| level.name()).collect();
        let says = format!("Levels of thinking that it takes: {}.", levels.join(", "));
        all.push(peculiarity(says, &[]));
    }
    all
}

/// How the prompt cache is used.
pub(crate) fn caching(facts: &ModelFacts) -> Vec<Peculiarity> {
    let says = "By itself: what was sent before is read from the cache. No cache is created.";
    let mut all = vec![peculiarity(says, &[])];
    all.extend(minimum(facts));
    all
}

/// What a request cannot contain.
pub(crate) fn limitations(facts: &ModelFacts) -> Vec<Peculiarity> {
    let mut all = those([
        (
            true,
            "Images and files in tool results: they follow the batch.",
            &[],
        ),
        (
            true,
            "Media by an address that does not end like a known type: a note stands in their place.",
            &[],
        ),
        (true, "Thinking that another provider wrote.", &[Rule::Gm3]),
    ]);
    all.extend(unable(Images::Supported, facts));
    all
}
