//! How a model's thinking is turned off: by an effort that it accepts, by `data/thinking_off.toml`,
//! or not at all. The providers write the requests.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_agent::{Sampling, ThinkingLevel};
use plimsoll_wire::Effort;
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Map, Value};

use crate::efforts;
use crate::model_ref::ModelRef;
use crate::models::{Fact, ModelFacts};

/// Keys of a request's body.
type BodyKeys = Map<String, Value>;
/// Keys by vendor, then by the prefix of the names of a family.
type Switches = BTreeMap<String, BTreeMap<String, BodyKeys>>;

/// The parsed file. Empty if it cannot be parsed, which a test excludes.
static SWITCHES: LazyLock<Switches> =
    LazyLock::new(|| toml::from_str(include_str!("../data/thinking_off.toml")).unwrap_or_default());

/// How a model's thinking is turned off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ThinkingOff {
    /// With these keys of the request.
    Keys(&'static BodyKeys),
    /// With this effort, the lowest of the model, which may be higher than `none`.
    Effort(Effort),
    /// It is off already, or the request says so elsewhere.
    NotThinking,
    /// It cannot be turned off.
    Never,
    /// It is unknown whether it can be turned off.
    Unknown,
}

/// Returns how thinking is turned off over Chat Completions.
pub(crate) fn on_chat(model: &ModelRef, facts: &ModelFacts, dialect: &Dialect) -> ThinkingOff {
    let efforts = efforts::on_chat(model, facts, dialect);
    let lowest = efforts.iter().min().copied();
    let keys = || by_family(&SWITCHES, model.vendor().name, model.name());
    match (lowest, facts.thinking.as_ref().and_then(Fact::own)) {
        (_, Some(false)) => ThinkingOff::NotThinking,
        (Some(Effort::None), _) => ThinkingOff::Effort(Effort::None),
        (lowest, _) => match (keys(), lowest) {
            (Some(keys), _) => ThinkingOff::Keys(keys),
            (None, Some(lowest)) => ThinkingOff::Effort(lowest),
            (None, None) => by_facts(model, facts),
        },
    }
}

/// Returns how thinking is turned off in a model that takes no effort.
pub(crate) fn by_facts(model: &ModelRef, facts: &ModelFacts) -> ThinkingOff {
    let thinks = facts.thinking.as_ref().map(|fact| fact.value);
    let is_known = facts.max_output.is_some() || facts.prices.is_some();
    let takes_none = efforts::of_openai(model.name()).is_some_and(<[Effort]>::is_empty);
    match thinks {
        Some(true) => ThinkingOff::Never,
        Some(false) => ThinkingOff::NotThinking,
        None if is_known || takes_none => ThinkingOff::NotThinking,
        None => ThinkingOff::Unknown,
    }
}

/// Returns the entry with the longest matching prefix of a model's name.
pub(crate) fn by_family<'a, T>(
    table: &'a BTreeMap<String, BTreeMap<String, T>>,
    vendor: &str,
    name: &str,
) -> Option<&'a T> {
    let name = name.to_ascii_lowercase();
    // A gateway adds the maker's name as a prefix; the name of a fine-tuned model begins with
    // `ft:`.
    let name = name.rsplit_once('/').map_or(&*name, |(_, name)| name);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let families = table.get(vendor)?.iter();
    let families = families.filter(|(prefix, _)| name.starts_with(*prefix));
    let family = families.max_by_key(|(prefix, _)| prefix.len());
    family.map(|(_, found)| found)
}

impl ThinkingOff {
    /// Returns a note if `thinking_level = "off"` is set and cannot be followed.
    pub(crate) fn notes(self, sampling: &Sampling, model: &str) -> Vec<String> {
        if sampling.thinking != Some(ThinkingLevel::Off) {
            return Vec::new();
        }
        let why = match self {
            Self::Keys(_) | Self::Effort(Effort::None) | Self::NotThinking => return Vec::new(),
            Self::Effort(lowest) => format!(
                "thinking cannot be turned off in {model}; it is asked for the least, `{}`",
                lowest.name()
            ),
            Self::Never => format!("thinking cannot be turned off in {model}"),
            Self::Unknown => format!(
                "it is not known how to turn thinking off in {model}; it may think in spite of \
                 thinking_level = \"off\""
            ),
        };
        vec![why]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::ModelBook;
    use crate::vendor::Vendor;

    #[test]
    fn the_data_is_sound() {
        let all: Switches = toml::from_str(include_str!("../data/thinking_off.toml")).unwrap();
        assert_eq!(all, *SWITCHES);
        for (vendor, families) in all {
            assert_eq!(Vendor::named(&vendor).map(|known| known.name), Ok(&*vendor));
            for (family, keys) in families {
                assert_eq!(family, family.to_ascii_lowercase());
                assert!(!keys.is_empty(), "{vendor}/{family}");
            }
        }
    }

    #[test]
    fn thinking_is_turned_off_or_it_is_said_that_it_cannot_be() {
        let off = |model: &str| {
            let model = ModelRef::parse(model).unwrap();
            let facts = ModelBook::built_in().facts(&model);
            on_chat(&model, &facts, &model.vendor().dialect())
        };
        for (model, effort) in [
            ("openai/gpt-5", Effort::Minimal),
            ("openai/o3", Effort::Low),
            ("openai/gpt-5.1", Effort::None),
            ("xai/grok-4.3", Effort::None),
            ("xai/grok-4.5", Effort::Low),
            ("openrouter/anything/at-all", Effort::None),
            ("kimi/kimi-k3", Effort::Low),
            ("groq/openai/gpt-oss-120b", Effort::Low),
        ] {
            assert_eq!(off(model), ThinkingOff::Effort(effort), "{model}");
        }
        for (model, key) in [
            ("deepseek/deepseek-v4-flash", "thinking"),
            ("kimi/kimi-k2.6", "thinking"),
            ("groq/qwen/qwen3-32b", "reasoning_effort"),
            ("ollama/qwen3", "reasoning_effort"),
            ("llama.cpp/m", "chat_template_kwargs"),
            ("vllm/qwen3", "chat_template_kwargs"),
        ] {
            let ThinkingOff::Keys(keys) = off(model) else {
                panic!("{model}: {:?}", off(model));
            };
            assert!(keys.contains_key(key), "{model}");
        }
        assert_eq!(off("openai/gpt-4o"), ThinkingOff::NotThinking);
        assert_eq!(off("openai/gpt-4.1"), ThinkingOff::NotThinking);
        assert_eq!(off("openai-compatible/m"), ThinkingOff::Unknown);
    }

    #[test]
    fn only_what_was_asked_for_is_reported() {
        let asked = |thinking| Sampling {
            thinking,
            ..Sampling::default()
        };
        let off = asked(Some(ThinkingLevel::Off));
        for (how, said) in [
            (ThinkingOff::Effort(Effort::None), None),
            (ThinkingOff::NotThinking, None),
            (
                ThinkingOff::Effort(Effort::Low),
                Some("thinking cannot be turned off in a/b; it is asked for the least, `low`"),
            ),
            (
                ThinkingOff::Never,
                Some("thinking cannot be turned off in a/b"),
            ),
        ] {
            let notes = how.notes(&off, "a/b");
            assert_eq!(notes.first().map(String::as_str), said);
            assert!(how.notes(&asked(None), "a/b").is_empty());
        }
    }
}
