//! Bedrock's `Converse`, one format for the models of many makers: requests, by the [`ConverseProfile`] of a
//! model, and streamed replies. `InvokeModel`, with a format for each maker, is not supported.

mod render;
mod settings;
mod stream;
mod write;

use serde::{Deserialize, Serialize};

use crate::anthropic;

pub use crate::compose::render;
pub use stream::ConverseStreamState;

/// The origin of reasoning that is sent back to Bedrock.
pub const ORIGIN: &str = "bedrock";

/// Makers whose models accept text beside results, identified by a part of the model's id.
const MIXING: [&str; 2] = ["anthropic.", "amazon.nova"];

/// Models that accept breakpoints of the prompt cache, identified by a part of their ids.
const CACHING: [&str; 5] = [
    "claude-3-7",
    "claude-sonnet-",
    "claude-opus-",
    "claude-haiku-",
    "claude-3-5-haiku",
];

/// The requirements of a model. A configuration may start from a model's profile and change single
/// fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConverseProfile {
    /// The id of the model.
    pub name: String,
    /// Whether results of tools may share their message with other content (BR4).
    pub mixed_turn: bool,
    /// Whether the last message may be the assistant's.
    pub prefill: bool,
    /// The maker of the model.
    pub maker: Maker,
    /// Whether the model accepts breakpoints of the prompt cache.
    pub cache_points: bool,
    /// Whether images and files are read. If not, a note replaces them.
    pub images: bool,
}

/// The maker of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// Anthropic, with the model's requirements for Messages.
    Anthropic(Box<anthropic::MessagesProfile>),
    /// Amazon.
    Amazon,
    /// OpenAI.
    OpenAi,
    /// Any other maker.
    Other,
}

impl ConverseProfile {
    /// Returns the profile of a model by its id in the URL of a request, with or without a region
    /// (`eu.`) or the beginning of an ARN. An unknown model gets the strictest requirements.
    #[must_use]
    pub fn of_model(id: &str) -> Self {
        let id = id.to_ascii_lowercase();
        let maker = if id.contains("anthropic.") {
            Maker::Anthropic(Box::new(anthropic::MessagesProfile::of_model(&id)))
        } else if id.contains("amazon.") {
            Maker::Amazon
        } else if id.contains("openai.") {
            Maker::OpenAi
        } else {
            Maker::Other
        };
        Self {
            mixed_turn: MIXING.iter().any(|maker| id.contains(maker)),
            prefill: match &maker {
                Maker::Anthropic(claude) => claude.prefill,
                _ => false,
            },
            cache_points: CACHING.iter().any(|name| id.contains(name)),
            maker,
            images: true,
            name: id,
        }
    }
}

impl Default for ConverseProfile {
    fn default() -> Self {
        Self::of_model("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_demands_of_its_maker() {
        for (id, mixed_turn, prefill) in [
            ("anthropic.claude-sonnet-4-5-20250929-v1:0", true, true),
            ("eu.anthropic.claude-opus-4-6-v1", true, false),
            ("us.amazon.nova-lite-v1:0", true, false),
            ("mistral.mistral-large-2407-v1:0", false, false),
            ("", false, false),
        ] {
            let profile = ConverseProfile::of_model(id);
            assert_eq!(profile.mixed_turn, mixed_turn, "{id}");
            assert_eq!(profile.prefill, prefill, "{id}");
        }
    }
}
