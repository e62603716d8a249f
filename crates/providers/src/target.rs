//! [`target`]: the rules for a request to a model, for programs that repair requests or write their
//! own. Sends nothing.

use plimsoll_wire::Target;
use plimsoll_wire::anthropic;
use plimsoll_wire::openai_chat::Reach;
use serde_json::Value;

use crate::model_ref::ModelRef;
use crate::models::ModelBook;
use crate::protocol::{dialect_of, responses_profile};
use crate::thinking::chat_reach;
use crate::vendor::Wire;

/// The vendor whose models are served through two protocols.
const OPENAI: &str = "openai";

/// The reasons why there are no rules for a request to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTarget {
    /// The vendor uses none of the supported protocols.
    #[error("requests to {model} are in none of the shapes that can be repaired: {known}", known = Target::PROTOCOLS.join(", "))]
    OtherWire {
        /// The model, as the user wrote it.
        model: String,
    },
    /// The request uses Chat Completions, which does not serve the model.
    #[error(
        "{model} is served over Responses only, and this is a request to Chat Completions: write it \
         with `input` in place of `messages`, or name a model that Chat Completions serves"
    )]
    ResponsesOnly {
        /// The model, as the user wrote it.
        model: String,
    },
}

/// Returns the target that must accept this request to a model. OpenAI's models are served through
/// both of its protocols, so the form of the request decides.
///
/// # Errors
/// A [`NoTarget`] if no supported protocol serves the model.
pub fn target_of(model: &ModelRef, request: &Value) -> Result<Target, NoTarget> {
    if model.vendor().name == OPENAI {
        let responses = responses(model);
        if Target::of_request(request).protocol() == responses.protocol() {
            return Ok(responses);
        }
        // A history is not sent to a server.
        let is_request = request.get("messages").is_some() && request.get("model").is_some();
        if is_request && chat_reach(model) == Reach::Nothing {
            return Err(NoTarget::ResponsesOnly {
                model: model.to_string(),
            });
        }
    }
    target(model).ok_or_else(|| NoTarget::OtherWire {
        model: model.to_string(),
    })
}

/// Returns the target that must accept requests to a model, judged by its name. `None` for a vendor
/// with none of the supported protocols.
#[must_use]
pub fn target(model: &ModelRef) -> Option<Target> {
    let facts = ModelBook::built_in().facts(model);
    match model.vendor().wire {
        Wire::Chat => Some(facts.dialect(dialect_of(model)).into()),
        Wire::Responses => Some(responses(model)),
        Wire::Messages => {
            let profile = anthropic::MessagesProfile::of_model(model.name());
            Some(facts.messages(profile).into())
        }
        _ => None,
    }
}

fn responses(model: &ModelRef) -> Target {
    let facts = ModelBook::built_in().facts(model);
    facts.responses(responses_profile(model.name())).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
            assert_eq!(
                target.map(|target| target.protocol().name()),
                protocol,
                "{model}"
            );
        }
    }

    #[test]
    fn a_request_to_a_model_of_openais_says_over_which_wire() {
        let chat = json!({"model": "gpt", "messages": []});
        let history = json!({"messages": []});
        let items =
            json!([{"type": "function_call", "call_id": "c", "name": "n", "arguments": ""}]);
        let input = json!({"model": "gpt", "input": []});
        for (model, request, protocol) in [
            ("openai/gpt-5.4", &input, Ok("openai-responses")),
            ("openai/gpt-4o", &input, Ok("openai-responses")),
            ("openai/gpt-5.4-pro", &input, Ok("openai-responses")),
            ("openai/gpt-5.4-pro", &items, Ok("openai-responses")),
            ("openai/gpt-5.4", &chat, Ok("openai")),
            ("openai/gpt-5.4-pro", &history, Ok("openai")),
            ("openai/gpt-5.4-pro", &chat, Err("write it with `input`")),
            (
                "openai-responses/gpt-5.4-pro",
                &chat,
                Ok("openai-responses"),
            ),
            ("mistral/devstral", &input, Ok("openai")),
            ("gemini/gemini-3", &chat, Err("none of the shapes")),
        ] {
            let target = target_of(&ModelRef::parse(model).unwrap(), request);
            match (target, protocol) {
                (Ok(target), Ok(name)) => {
                    assert_eq!(target.protocol().name(), name, "{model} {request}")
                }
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
                (target, _) => panic!("{model} {request}: {target:?}"),
            }
        }
    }
}
