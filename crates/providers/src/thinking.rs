//! The thinking of a model: the efforts that it accepts, from `data/efforts.toml`, and how it is turned
//! off, by an effort, by `data/thinking_off.toml` or not at all. The user's own facts come first. The
//! protocols write the requests.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_wire::Effort;
use plimsoll_wire::openai_chat::{Dialect, ErrorStyle, Reach, reach};
use serde_json::{Map, Value};

use crate::model_ref::ModelRef;
use crate::models::{Fact, ModelFacts};
use crate::vendor::ServerLocation;

/// Efforts by vendor, then by the prefix of the names of a family.
type Efforts = BTreeMap<String, BTreeMap<String, Vec<Effort>>>;

/// The parsed file of efforts. Empty if it cannot be parsed, which a test excludes.
static EFFORTS: LazyLock<Efforts> =
    LazyLock::new(|| toml::from_str(include_str!("../data/efforts.toml")).unwrap_or_default());
/// The vendor whose models other servers offer under the same names.
const MAKER: &str = "openai";
/// The efforts of a model if the user only states that it thinks.
const USUAL: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

/// Keys of a request's body.
type BodyKeys = Map<String, Value>;
/// Keys by vendor, then by the prefix of the names of a family.
type Switches = BTreeMap<String, BTreeMap<String, BodyKeys>>;

/// The parsed file of switches. Empty if it cannot be parsed, which a test excludes.
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

/// Returns the efforts of OpenAI's model with this name, lowest first. Empty if the model does not
/// think; `None` for an unknown name.
pub(crate) fn openai_efforts(name: &str) -> Option<&'static [Effort]> {
    by_family(&EFFORTS, MAKER, name).map(Vec::as_slice)
}

/// Returns the efforts that a model is known to accept over Chat Completions. Servers refuse
/// unknown efforts, so an effort is never sent on a guess.
pub(crate) fn chat_efforts(model: &ModelRef, facts: &ModelFacts, dialect: &Dialect) -> Vec<Effort> {
    let own = facts.efforts.as_ref().filter(|fact| fact.is_own());
    let thinks = facts.thinking.as_ref().and_then(Fact::own);
    match (own, thinks) {
        (_, Some(false)) => return Vec::new(),
        (Some(own), _) => return own.value.clone(),
        _ => {}
    }
    // Mistral's own API and chat templates do not have this key, whatever model they serve.
    if matches!(dialect.voice, ErrorStyle::Mistral | ErrorStyle::Template) {
        return Vec::new();
    }
    let vendor = model.vendor();
    let known = by_family(&EFFORTS, vendor.name, model.name()).map(Vec::as_slice);
    let anywhere =
        || openai_efforts(model.name()).filter(|_| vendor.place == ServerLocation::Anywhere);
    let known = known.or_else(anywhere).unwrap_or_default();
    match (known, thinks) {
        ([], Some(true)) => USUAL.to_vec(),
        (known, _) => known.to_vec(),
    }
}

/// Returns how much of a model Chat Completions serves. Gateways that translate requests to OpenAI
/// serve all of it.
pub(crate) fn chat_reach(model: &ModelRef) -> Reach {
    let asks_openai = match model.vendor().name {
        MAKER => true,
        _ => model.vendor().place == ServerLocation::Anywhere,
    };
    if asks_openai {
        reach(model.name())
    } else {
        Reach::Whole
    }
}

/// Returns the entry with the longest matching prefix of a model's name.
fn by_family<'a, T>(
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
    /// Returns how thinking is turned off over Chat Completions, in a model that accepts these efforts.
    pub(crate) fn on_chat(model: &ModelRef, facts: &ModelFacts, efforts: &[Effort]) -> Self {
        let lowest = efforts.iter().min().copied();
        let keys = || by_family(&SWITCHES, model.vendor().name, model.name());
        match (lowest, facts.thinking.as_ref().and_then(Fact::own)) {
            (_, Some(false)) => Self::NotThinking,
            (Some(Effort::None), _) => Self::Effort(Effort::None),
            (lowest, _) => match (keys(), lowest) {
                (Some(keys), _) => Self::Keys(keys),
                (None, Some(lowest)) => Self::Effort(lowest),
                (None, None) => Self::by_facts(model, facts),
            },
        }
    }

    /// Returns how thinking is turned off in a model that takes no effort.
    pub(crate) fn by_facts(model: &ModelRef, facts: &ModelFacts) -> Self {
        let thinks = facts.thinking.as_ref().map(|fact| fact.value);
        let is_known = facts.max_output.is_some() || facts.prices.is_some();
        let takes_none = openai_efforts(model.name()).is_some_and(<[Effort]>::is_empty);
        match thinks {
            Some(true) => Self::Never,
            Some(false) => Self::NotThinking,
            None if is_known || takes_none => Self::NotThinking,
            None => Self::Unknown,
        }
    }

    /// Returns a note if `thinking_level = "off"` cannot be followed.
    pub(crate) fn notes(self, model: &str) -> Vec<String> {
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
    fn the_efforts_are_sound() {
        let text = include_str!("../data/efforts.toml");
        let all: Efforts = toml::from_str(text).unwrap();
        assert_eq!(all, *EFFORTS);
        for (vendor, families) in all {
            assert_eq!(Vendor::named(&vendor).map(|known| known.name), Ok(&*vendor));
            for (family, efforts) in families {
                assert_eq!(family, family.to_ascii_lowercase());
                assert!(efforts.is_sorted(), "{vendor}/{family}");
            }
        }
    }

    #[test]
    fn an_effort_is_known_of_a_model_or_not_sent() {
        use Effort::{High, Low, Max, Medium, Minimal, None};
        let five: &[Effort] = &[Minimal, Low, Medium, High];
        for (model, known) in [
            ("openai/gpt-5", five),
            ("openai/gpt-4o", &[]),
            ("openai/something-new", &[]),
            ("openai-compatible/openai/gpt-5", five),
            ("openai-compatible/gpt-oss-20b", &USUAL),
            ("openai-compatible/m", &[]),
            (
                "openrouter/anything/at-all",
                &[None, Minimal, Low, Medium, High],
            ),
            ("xai/grok-3-mini-fast", &[Low, High]),
            ("xai/grok-4.3", &[None, Low, Medium, High]),
            ("xai/grok-4.5", &USUAL),
            ("xai/grok-3", &[]),
            ("xai/grok-4", &[]),
            ("xai/grok-4-0709", &[]),
            ("xai/grok-4-fast-reasoning", &[]),
            ("xai/grok-4.20-0309-reasoning", &[]),
            ("xai/grok-code-fast-1", &[]),
            ("groq/openai/gpt-oss-120b", &USUAL),
            ("groq/llama-3.3-70b-versatile", &[]),
            ("groq/qwen/qwen3-32b", &[]),
            ("together/openai/gpt-oss-20b", &USUAL),
            ("together/meta-llama/Llama-3.3-70B-Instruct-Turbo", &[]),
            ("deepseek/deepseek-v4-flash", &[High, Max]),
            ("deepseek/deepseek-chat", &[]),
            ("kimi/kimi-k3", &[Low, High, Max]),
            ("kimi/moonshot-v1-8k", &[]),
            ("cohere/command-r", &[]),
            ("mistral/magistral-medium", &[]),
            ("ollama/gpt-oss:20b", &[]),
        ] {
            let model = ModelRef::parse(model).unwrap();
            let dialect = model.vendor().dialect();
            let all = chat_efforts(&model, &ModelFacts::default(), &dialect);
            assert_eq!(all, known, "{model}");
        }
    }

    #[test]
    fn the_switches_are_sound() {
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
            let efforts = chat_efforts(&model, &facts, &model.vendor().dialect());
            ThinkingOff::on_chat(&model, &facts, &efforts)
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
    fn a_model_that_cannot_stop_thinking_is_reported() {
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
            let notes = how.notes("a/b");
            assert_eq!(notes.first().map(String::as_str), said);
        }
    }
}
