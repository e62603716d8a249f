//! How far Chat Completions goes with a model, and why one goes over Responses, in a sentence each.
//! Decides nothing; `efforts.rs` does.

use plimsoll_wire::Rule;
use plimsoll_wire::openai_chat::{Reach, takes_temperature};

use super::Peculiarity;
use super::sentences::peculiarity;
use crate::efforts::goes;
use crate::model_ref::ModelRef;
use crate::vendor::{Place, Wire};

/// What is peculiar to how a model thinks over Chat Completions.
pub(super) fn of_thinking(model: &ModelRef) -> Vec<Peculiarity> {
    let name = model.name();
    let all = format!("openai-responses/{name} takes all of it.");
    let says = match goes(model) {
        Reach::Whole => None,
        Reach::ToolsUnasked => Some("With tools it is not asked to think: this API refuses both"),
        Reach::ToolsAtNone => Some("With tools it is told not to think: this API refuses both"),
        Reach::NoTools => Some("It thinks always, and this API refuses tools then"),
        Reach::Nothing => Some("This API does not serve it"),
    };
    let said = says.map(|says| peculiarity(format!("{says}; {all}"), &[Rule::Shape]));
    let cold = !takes_temperature(name, None, 0.0) && model.vendor().place != Place::ThisMachine;
    let cold = cold.then(|| {
        let says = "A temperature is not sent: the model refuses it.";
        peculiarity(says, &[Rule::Shape])
    });
    said.into_iter().chain(cold).collect()
}

/// Why a model of a vendor that speaks Chat Completions goes over Responses.
pub(super) fn of_detour(model: &ModelRef) -> Option<Peculiarity> {
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
