//! OpenAI Responses, of OpenAI and compatible servers, without storage on the server: every request
//! contains the whole history, by the [`ResponsesProfile`] of a model or a server. Chat Completions is in
//! `openai_chat`.

mod document;
pub(crate) mod hosted;
pub(crate) mod items;
mod read;
pub(crate) mod render;
mod reply;
pub(crate) mod settings;
mod stream;
mod usage;
mod write;

use serde::{Deserialize, Serialize};

use crate::request::Effort;

pub use crate::compose::render;
pub use document::FORMAT;
pub use hosted::{hosted_kinds, not_hosted};
pub use items::ORIGIN;
pub use read::read;
pub use settings::MIN_OUTPUT;
pub use stream::{ResponsesStreamState, read_reply};

/// The requirements of a model or a server. The default is `openai`. A configuration may start from a
/// named profile and change single fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponsesProfile {
    /// The name of the profile.
    pub name: String,
    /// Whether and how reasoning is sent back.
    pub reasoning: ReasoningItems,
    /// The accepted values of `reasoning.effort`, the lowest first. Empty if the key is not accepted.
    pub efforts: Vec<Effort>,
    /// Whether summaries of the reasoning are requested. OpenAI gives them to verified organisations
    /// only, and rejects the requests of others.
    pub summaries: bool,
    /// Whether `temperature` is accepted.
    pub sampling: bool,
    /// Whether one turn may call several tools.
    pub parallel_calls: bool,
    /// Whether images and files are read. If not, a note replaces them.
    pub images: bool,
    /// Whether the role of a system message within the input is `developer`, and not `system`.
    pub developer_role: bool,
    /// Whether `prompt_cache_key` is sent.
    pub cache_key: bool,
}

/// Whether and how reasoning is sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningItems {
    /// Never: the model does not reason, and refuses reasoning settings.
    None,
    /// Encrypted. Because the server stores nothing, an item without encrypted content is useless.
    Encrypted,
    /// Unchanged and readable.
    Plain,
}

impl ResponsesProfile {
    /// Returns the profile of OpenAI's reasoning models, with the efforts that nearly all of them
    /// accept.
    #[must_use]
    pub fn openai() -> Self {
        Self {
            name: "openai".into(),
            reasoning: ReasoningItems::Encrypted,
            efforts: vec![Effort::Low, Effort::Medium, Effort::High],
            summaries: false,
            sampling: false,
            parallel_calls: true,
            images: true,
            developer_role: true,
            cache_key: true,
        }
    }

    /// Returns the profile of OpenAI's models without reasoning.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            name: "openai-plain".into(),
            reasoning: ReasoningItems::None,
            efforts: Vec::new(),
            sampling: true,
            ..Self::openai()
        }
    }

    /// Returns the profile of a compatible server, whose models give their reasoning unencrypted.
    #[must_use]
    pub fn compatible() -> Self {
        Self {
            name: "compatible".into(),
            reasoning: ReasoningItems::Plain,
            sampling: true,
            cache_key: false,
            ..Self::openai()
        }
    }
}

impl Default for ResponsesProfile {
    fn default() -> Self {
        Self::openai()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_changes_single_fields() {
        let profile: ResponsesProfile =
            serde_json::from_str(r#"{"efforts":["none","xhigh"]}"#).unwrap();
        let efforts = vec![Effort::None, Effort::Xhigh];
        assert_eq!(
            profile,
            ResponsesProfile {
                efforts,
                ..ResponsesProfile::openai()
            }
        );
        assert!(serde_json::from_str::<ResponsesProfile>(r#"{"effort":"low"}"#).is_err());
    }

    #[test]
    fn an_effort_is_the_nearest_that_is_accepted() {
        let of = |efforts: &[Effort]| ResponsesProfile {
            efforts: efforts.to_vec(),
            ..ResponsesProfile::openai()
        };
        let newer = of(&[Effort::None, Effort::Low, Effort::Medium, Effort::High]);
        for (profile, effort, sent) in [
            (&newer, Effort::Minimal, Some(Effort::Low)),
            (&newer, Effort::None, Some(Effort::None)),
            (&newer, Effort::Low, Some(Effort::Low)),
            (&newer, Effort::Max, Some(Effort::High)),
            (
                &ResponsesProfile::openai(),
                Effort::Minimal,
                Some(Effort::Low),
            ),
            (&of(&[Effort::High]), Effort::Minimal, Some(Effort::High)),
            (&ResponsesProfile::plain(), Effort::High, None),
        ] {
            assert_eq!(effort.nearest(&profile.efforts), sent);
        }
        for effort in Effort::ALL {
            let json = serde_json::to_value(effort).unwrap();
            assert_eq!(json, effort.name());
        }
    }
}
