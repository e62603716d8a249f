//! Explains the requests of Converse.

use plimsoll_judge::Rule;
use plimsoll_wire::anthropic::ThinkingStyle;
use plimsoll_wire::bedrock::{ConverseProfile, Maker};

use super::Explanation;
use super::sentences::{minimum, peculiarity, those};
use crate::models::ModelFacts;

/// Explains the requests of a profile.
pub(crate) fn explain(of: &ConverseProfile, facts: &ModelFacts) -> Explanation {
    let adaptive = matches!(&of.maker, Maker::Anthropic(claude)
        if claude.thinking == ThinkingStyle::Adaptive);
    let peculiarities = those([
        (
            true,
            "User and assistant take turns, and all results of a batch are in the next message.",
            &[Rule::Br1, Rule::Br2, Rule::Br3],
        ),
        (
            !of.mixed_turn,
            "Results stand alone: a word of the assistant's stands between them and a text.",
            &[Rule::Br4],
        ),
        (
            true,
            "Tools are declared as long as the history has calls, also if none may be called.",
            &[Rule::Br5, Rule::Br6],
        ),
        (
            matches!(of.maker, Maker::Anthropic(_)) && !adaptive,
            "Thinking has a budget of tokens and leaves a quarter of the answer. It goes back to \
             the same model, while that thinks.",
            &[],
        ),
        (
            adaptive,
            "A level of thinking is not sent to this model.",
            &[],
        ),
    ]);
    let says = match of.cache_points {
        true => {
            "Cache points: the tools or the system prompt, and the newest messages; four at most."
        }
        false => "No cache points are sent to this model.",
    };
    let mut caching = vec![peculiarity(says, &[])];
    caching.extend(minimum(facts));
    let limitations = those([
        (
            true,
            "Media by address, and types that the API does not have: a note stands in their place.",
            &[],
        ),
        (
            true,
            "Images and files in tool results: they follow the batch.",
            &[],
        ),
        (true, "Thinking that another model wrote.", &[]),
        (
            !matches!(of.maker, Maker::Anthropic(_) | Maker::Amazon),
            "Whether a tool failed.",
            &[],
        ),
    ]);
    Explanation {
        peculiarities,
        caching,
        limitations,
        images: true,
    }
}
