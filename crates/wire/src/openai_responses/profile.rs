//! [`Profile`]: what one family of models, or one server, wants of a Responses request. Data
//! only: `render.rs` writes by it, `validate.rs` judges by it. No model names, windows or prices;
//! those are configuration.

use serde::{Deserialize, Serialize};

use crate::request::Effort;

/// What a model or a server wants. The default is `openai`; a configuration may start from a
/// named profile and change single fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Whether and how reasoning goes back.
    pub reasoning: ReasoningItems,
    /// The values of `reasoning.effort`, the lowest first; none where it is not accepted.
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
    /// Whether tools are held to their schemas, if these allow it. By default, the API does so for all
    /// tools, and requires every optional key.
    pub strict: bool,
    /// Whether `prompt_cache_key` is sent.
    pub cache_key: bool,
}

/// Whether and how reasoning goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningItems {
    /// The model does not reason, and refuses to be asked for it.
    None,
    /// Encrypted: an item without its encrypted content is of no use where nothing is stored.
    Encrypted,
    /// As it is.
    Plain,
}

impl Profile {
    /// The names that [`Profile::named`] knows.
    pub const NAMES: [&'static str; 3] = ["openai", "openai-plain", "compatible"];

    /// The profile of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "openai" => Some(Self::openai()),
            "openai-plain" => Some(Self::plain()),
            "compatible" => Some(Self::compatible()),
            _ => None,
        }
    }

    /// OpenAI's reasoning models, with the efforts that nearly all of them know.
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
            strict: false,
            cache_key: true,
        }
    }

    /// OpenAI's models that do not reason.
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

    /// Any other server that speaks this wire: what reasons there gives its reasoning in the
    /// open.
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

    /// The accepted effort that is nearest to the one asked for, the lower of two.
    #[must_use]
    pub fn effort(&self, asked: Effort) -> Option<Effort> {
        let far = |effort: &Effort| (*effort as u8).abs_diff(asked as u8);
        self.efforts
            .iter()
            .copied()
            .min_by_key(|effort| (far(effort), *effort))
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::openai()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_profile() {
        for name in Profile::NAMES {
            assert_eq!(Profile::named(name).map(|p| p.name), Some(name.to_owned()));
        }
        assert_eq!(Profile::named("gopher"), None);
    }

    #[test]
    fn a_configuration_changes_single_fields() {
        let profile: Profile = serde_json::from_str(r#"{"efforts":["none","xhigh"]}"#).unwrap();
        let efforts = vec![Effort::None, Effort::Xhigh];
        assert_eq!(
            profile,
            Profile {
                efforts,
                ..Profile::openai()
            }
        );
        assert!(serde_json::from_str::<Profile>(r#"{"effort":"low"}"#).is_err());
    }

    #[test]
    fn an_effort_is_the_nearest_that_is_accepted() {
        let of = |efforts: &[Effort]| Profile {
            efforts: efforts.to_vec(),
            ..Profile::openai()
        };
        let newer = of(&[Effort::None, Effort::Low, Effort::Medium, Effort::High]);
        for (profile, asked, sent) in [
            (&newer, Effort::Minimal, Some(Effort::None)),
            (&newer, Effort::Low, Some(Effort::Low)),
            (&newer, Effort::Max, Some(Effort::High)),
            (&Profile::openai(), Effort::Minimal, Some(Effort::Low)),
            (&of(&[Effort::High]), Effort::Minimal, Some(Effort::High)),
            (&Profile::plain(), Effort::High, None),
        ] {
            assert_eq!(profile.effort(asked), sent);
        }
        for effort in Effort::ALL {
            let json = serde_json::to_value(effort).unwrap();
            assert_eq!(json, effort.name());
        }
    }
}
