//! Explains the requests of Responses.

use plimsoll_judge::Rule;
use plimsoll_wire::openai_chat::Reach;
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};

use super::sentences::{
    CACHE_BY_KEY, CACHE_UNASKED, NO_MEDIA, NO_TEMPERATURE, minimum, peculiarity, those,
};
use super::{Explanation, Peculiarity};
use crate::connection::Connection;
use crate::efforts::goes;
use crate::model_ref::ModelRef;
use crate::vendor::Wire;

/// Explains the requests of a profile.
pub(crate) fn explain(of: &ResponsesProfile, connection: &Connection) -> Explanation {
    let mut peculiarities = those([
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
        (!of.sampling, NO_TEMPERATURE, &[Rule::Shape]),
        (
            !of.parallel_calls,
            "Calls made at once are sent one by one.",
            &[Rule::Or1],
        ),
    ]);
    if !of.efforts.is_empty() {
        let efforts: Vec<&str> = of.efforts.iter().map(|effort| effort.name()).collect();
        let says = format!("Efforts that it takes: {}.", efforts.join(", "));
        peculiarities.push(peculiarity(says, &[]));
    }
    peculiarities.extend(detour(&connection.model));
    let mut caching = those([
        (of.cache_key, CACHE_BY_KEY, &[]),
        (!of.cache_key, CACHE_UNASKED, &[]),
    ]);
    caching.extend(minimum(&connection.facts));
    let limitations = those([
        (!of.images, NO_MEDIA, &[Rule::Shape]),
        (
            true,
            "Reasoning of another provider, or without its encrypted content.",
            &[Rule::Or4],
        ),
    ]);
    Explanation {
        peculiarities,
        caching,
        limitations,
        images: of.images,
    }
}

/// Explains why a model of a Chat Completions vendor is called through Responses.
fn detour(model: &ModelRef) -> Option<Peculiarity> {
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
