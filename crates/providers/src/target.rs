//! [`target`]: whose rules a request to a model has to keep, for those who mend one or write one
//! themselves. Calls nobody.

use plimsoll_wire::anthropic;
use plimsoll_wire::canonical::Target;

use crate::builder::dialect_of;
use crate::model_ref::ModelRef;
use crate::models::ModelBook;
use crate::responses::responses_profile;
use crate::vendor::Wire;

/// Who is to accept a request to a model, as far as its name tells; `None` for a vendor whose API is
/// none of the three wires.
#[must_use]
pub fn target(model: &ModelRef) -> Option<Target> {
    let facts = ModelBook::built_in().facts(model);
    match model.vendor().wire {
        Wire::Chat => Some(Target::Chat(facts.dialect(dialect_of(model)))),
        Wire::Responses => {
            let profile = responses_profile(model.name());
            Some(Target::Responses(facts.responses(profile)))
        }
        Wire::Messages => {
            let profile = anthropic::Profile::of_model(model.name());
            Some(Target::Messages(facts.messages(profile)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_says_whose_rules_hold() {
        for (model, protocol) in [
            ("openai/gpt-5", Some("openai")),
            ("mistral/devstral", Some("openai")),
            ("openai-responses/gpt-5", Some("openai-responses")),
            ("anthropic/claude-opus-4-6", Some("anthropic")),
            ("gemini/gemini-3", None),
        ] {
            let target = ModelRef::parse(model).ok().as_ref().and_then(target);
            assert_eq!(target.map(|target| target.protocol()), protocol, "{model}");
        }
    }
}
