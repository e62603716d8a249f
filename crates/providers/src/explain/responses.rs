//! What is said of Responses.

use plimsoll_judge::Rule;
use plimsoll_wire::openai_chat::{Images, ParallelCalls, Reach};
use plimsoll_wire::openai_responses::{CacheKey, Profile, ReasoningItems, Sampling};

use super::Peculiarity;
use super::sentences::{minimum, peculiarity, those, unable};
use crate::efforts::goes;
use crate::model_ref::ModelRef;
use crate::models::ModelFacts;
use crate::vendor::Wire;

/// What is peculiar to a profile of Responses.
pub(crate) fn peculiarities(of: &Profile) -> Vec<Peculiarity> {
    let mut all = those([
        (
            true,
            "Nothing is stored at the provider: the whole history goes with each request.",
            &[Rule::Or1, Rule::Or2],
        ),
        (
            of.reasoning == ReasoningItems::Encrypted,
            "Reasoning goes back encrypted, in pairs with what came of it.",
            &[Rule::Or3, Rule::Or4],
        ),
        (
            of.reasoning == ReasoningItems::Plain,
            "Reasoning goes back as it came, in pairs with what came of it.",
            &[Rule::Or3],
        ),
        (
            of.reasoning == ReasoningItems::None,
            "The model does not reason, and is not asked to.",
            &[Rule::Or3],
        ),
        (
            true,
            "Ids of items begin as their kind does, and long ones are mapped.",
            &[Rule::Or5],
        ),
        (
            of.sampling == Sampling::Refused,
            "A temperature is not sent: the model refuses it.",
            &[Rule::Shape],
        ),
        (
            of.parallel_calls == ParallelCalls::OneAtATime,
            "Calls made at once are sent one by one.",
            &[Rule::Or1],
        ),
    ]);
    if !of.efforts.is_empty() {
        let efforts: Vec<&str> = of.efforts.iter().map(|effort| effort.name()).collect();
        let says = format!("Efforts that it takes: {}.", efforts.join(", "));
        all.push(peculiarity(says, &[]));
    }
    all
}

/// How the prompt cache is used.
pub(crate) fn caching(of: &Profile, facts: &ModelFacts) -> Vec<Peculiarity> {
    let mut all = those([
        (
            of.cache == CacheKey::Sent,
            "It works by itself; `prompt_cache_key` names the session.",
            &[],
        ),
        (
            of.cache == CacheKey::Unsent,
            "Nothing is asked of a prompt cache: it works by itself, or there is none.",
            &[],
        ),
    ]);
    all.extend(minimum(facts));
    all
}

/// What a request cannot contain.
pub(crate) fn limitations(of: &Profile, facts: &ModelFacts) -> Vec<Peculiarity> {
    let mut all = those([
        (
            of.images == Images::Unsupported,
            "Images and files: a note stands in their place.",
            &[Rule::Shape],
        ),
        (
            true,
            "Reasoning of another provider, or without its encrypted content.",
            &[Rule::Or4],
        ),
    ]);
    all.extend(unable(of.images, facts));
    all
}

/// Why a model of a vendor that speaks Chat Completions goes over Responses.
pub(crate) fn detour(model: &ModelRef) -> Option<Peculiarity> {
    let says = match goes(model) {
        _ if model.vendor().wire != Wire::Chat => return None,
        Reach::Nothing => "Chat Completions does not serve this model, so it goes over Responses.",
        _ => {
            "Chat Completions does not take tools and thinking at once of this model, so it goes \
             over Responses."
        }
    };
    Some(peculiarity(says, &[Rule::Shape]))
}
