//! Explains the requests of `generateContent`.

use plimsoll_judge::Rule;
use plimsoll_wire::gemini::{GeminiProfile, Thinking};

use super::Explanation;
use super::sentences::{minimum, peculiarity, those};
use crate::models::ModelFacts;

/// Explains the requests of a profile.
pub(crate) fn explain(of: &GeminiProfile, facts: &ModelFacts) -> Explanation {
    let mut peculiarities = those([
        (
            true,
            "All results of a batch are one content, in the order of the calls, and nothing else \
             is in it.",
            &[Rule::Gm1, Rule::Gm2, Rule::Gm4],
        ),
        (
            of.signatures_required,
            "Each thought signature goes back in the part that it came with. Calls of other \
             providers get the mark that Google has for them.",
            &[Rule::Gm3],
        ),
        (
            !of.prefill,
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
        peculiarities.push(peculiarity(says, &[]));
    }
    let says = "By itself: what was sent before is read from the cache. No cache is created.";
    let mut caching = vec![peculiarity(says, &[])];
    caching.extend(minimum(facts));
    let limitations = those([
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
    Explanation {
        peculiarities,
        caching,
        limitations,
        images: true,
    }
}
