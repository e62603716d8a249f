//! Gemini's `generateContent` on Google's two hosts: requests, by the [`GeminiProfile`] of a model, and
//! streamed replies. Google's Chat Completions API belongs to `openai_chat`.

mod render;
mod settings;
mod stream;
mod write;

use serde::{Deserialize, Serialize};

use crate::request::Effort;

pub use crate::compose::render;
pub use stream::GeminiStreamState;

/// The origin of parts that are sent back to Gemini.
pub const ORIGIN: &str = "gemini";

/// The requirements of a model. A configuration may start from a model's profile and change single
/// fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GeminiProfile {
    /// The name of the model.
    pub name: String,
    /// Whether thought signatures must be sent back (GM3).
    pub signatures_required: bool,
    /// Whether the last message may be the model's. If not, responses to tool calls must not share
    /// their content with other parts either, because the API would treat it as a model turn.
    pub prefill: bool,
    /// How requests set the amount of thinking.
    pub thinking: Thinking,
    /// Whether images and files are read. If not, a note replaces them.
    pub images: bool,
}

/// How requests set the amount of thinking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// Not possible: the model does not think.
    None,
    /// With a budget of tokens.
    Budget {
        /// Whether the budget may be 0.
        can_stop: bool,
    },
    /// With one of these levels, the lowest first.
    Levels(Vec<Effort>),
}

/// The major and minor version.
type Version = (u64, u64);

/// The first version that requires thought signatures (GM3).
const SIGNED: Version = (3, 0);
/// The first version that refuses a last message of the model.
const NO_PREFILL: Version = (3, 6);
/// The newest known version.
const NEWEST: Version = (3, 7);
/// The maximum number of digits of a minor version. Longer numbers are dates.
const MAX_MINOR: usize = 2;

impl GeminiProfile {
    /// Returns the profile of a model by its name, with or without the prefix `models/`. An unknown
    /// name gets the requirements of the newest models, which older models accept, too.
    #[must_use]
    pub fn of_model(name: &str) -> Self {
        let lower = name.to_ascii_lowercase().replace('.', "-");
        let thinking = Thinking::of_model(&lower);
        let rest = lower.split_once("gemini-").map(|(_, rest)| rest);
        match rest.and_then(version).filter(|version| *version <= NEWEST) {
            None => Self {
                thinking,
                ..Self::newest()
            },
            Some(version) => Self {
                name: format!("gemini-{}", generation(version)),
                signatures_required: version >= SIGNED,
                prefill: version < NO_PREFILL,
                thinking,
                images: true,
            },
        }
    }

    /// Returns the profile for a model that is known to think although its name does not show it.
    #[must_use]
    pub fn that_thinks(self) -> Self {
        let thinking = match self.thinking {
            Thinking::None => Thinking::Budget { can_stop: true },
            known => known,
        };
        Self { thinking, ..self }
    }

    /// Returns a profile with requirements that all models accept.
    #[must_use]
    pub fn newest() -> Self {
        Self {
            name: "gemini".into(),
            signatures_required: true,
            prefill: false,
            thinking: Thinking::None,
            images: true,
        }
    }
}

/// The kinds of models that do not think.
const OTHER_KINDS: [&str; 5] = ["image", "tts", "audio", "live", "embedding"];

impl Thinking {
    /// Returns the way for a model by its name in lower case, with `-` for dots. Models before the
    /// third generation have a budget, later ones a level.
    fn of_model(name: &str) -> Self {
        let Some((_, version)) = name.split_once("gemini-") else {
            return Self::None;
        };
        let is_pro = name.contains("pro");
        if OTHER_KINDS.iter().any(|kind| version.contains(kind)) {
            Self::None
        } else if version.starts_with('3') {
            let all = [Effort::Minimal, Effort::Low, Effort::Medium, Effort::High];
            let levels = all.into_iter().filter(|level| match level {
                Effort::Minimal => !is_pro,
                // The first of these models had only two levels.
                Effort::Medium => !name.contains("gemini-3-pro"),
                _ => true,
            });
            Self::Levels(levels.collect())
        } else if version.starts_with(['1', '2']) && !version.starts_with("2-5") {
            Self::None
        } else {
            // `gemini-flash-latest` may be of any current generation. All of them accept a budget.
            Self::Budget { can_stop: !is_pro }
        }
    }
}

/// Returns the name of the generation with this version.
fn generation(version: Version) -> &'static str {
    match version {
        (0 | 1, _) => "1",
        (2, 0..5) => "2-0",
        (2, _) => "2-5",
        (3, 0..6) => "3",
        (3, 6) => "3-6",
        _ => "3-7",
    }
}

/// Returns the version at the beginning of a name: `3-1-pro`, `3-pro-preview`.
fn version(name: &str) -> Option<Version> {
    let mut parts = name.split('-');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().filter(|part| part.len() <= MAX_MINOR);
    let minor = minor.and_then(|part| part.parse().ok());
    Some((major, minor.unwrap_or_default()))
}

impl Default for GeminiProfile {
    fn default() -> Self {
        Self::newest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_begins_like_an_old_one_is_not_old() {
        for (name, generation) in [
            ("gemini-1.5-pro-002", "gemini-1"),
            ("gemini-1-pro", "gemini-1"),
            ("gemini-10-pro", "gemini"),
            ("gemini-15", "gemini"),
            ("gemini-2.0-flash-001", "gemini-2-0"),
            ("gemini-2.50-flash", "gemini-2-5"),
            ("gemini-3-20260101", "gemini-3"),
            ("gemini-3.6", "gemini-3-6"),
            ("gemini-3.8-pro", "gemini"),
            ("gemini-3.60-pro", "gemini"),
            ("gemini-30-pro", "gemini"),
            ("gemini-4", "gemini"),
            ("gemini-flash-latest", "gemini"),
        ] {
            assert_eq!(GeminiProfile::of_model(name).name, generation, "{name}");
        }
        let newer = GeminiProfile::of_model("gemini-3.8-pro");
        assert!(!newer.prefill);
    }

    #[test]
    fn a_model_has_the_demands_of_its_generation() {
        for (name, generation, signatures, prefill) in [
            ("gemini-2.5-flash", "gemini-2-5", false, true),
            ("models/gemini-3-pro-preview", "gemini-3", true, true),
            ("gemini-3.1-pro", "gemini-3", true, true),
            ("gemini-3.6-flash", "gemini-3-6", true, false),
            ("gemini-9", "gemini", true, false),
            ("learnlm", "gemini", true, false),
        ] {
            let profile = GeminiProfile::of_model(name);
            assert_eq!(profile.name, generation, "{name}");
            assert_eq!(profile.signatures_required, signatures, "{name}");
            assert_eq!(profile.prefill, prefill, "{name}");
        }
    }
}
