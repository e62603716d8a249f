//! [`of_openai`] and [`on_chat`]: the thinking efforts that a model accepts, from
//! `data/efforts.toml` and the user's own facts. The protocols write the requests.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_wire::Effort;
use plimsoll_wire::openai_chat::{Dialect, ErrorStyle, Reach, reach};

use crate::model_ref::ModelRef;
use crate::models::{Fact, ModelFacts};
use crate::thinking_off::by_family;
use crate::vendor::ServerLocation;

/// Efforts by vendor, then by the prefix of the names of a family.
type Efforts = BTreeMap<String, BTreeMap<String, Vec<Effort>>>;

/// The parsed file. Empty if it cannot be parsed, which a test excludes.
static EFFORTS: LazyLock<Efforts> =
    LazyLock::new(|| toml::from_str(include_str!("../data/efforts.toml")).unwrap_or_default());
/// The vendor whose models other servers offer under the same names.
const MAKER: &str = "openai";
/// The efforts of a model if the user only states that it thinks.
const USUAL: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

/// Returns the efforts of OpenAI's model with this name, lowest first. Empty if the model does not
/// think; `None` for an unknown name.
pub(crate) fn of_openai(name: &str) -> Option<&'static [Effort]> {
    family(MAKER, name)
}

/// Returns the efforts that a model is known to accept over Chat Completions. Servers refuse
/// unknown efforts, so an effort is never sent on a guess.
pub(crate) fn on_chat(model: &ModelRef, facts: &ModelFacts, dialect: &Dialect) -> Vec<Effort> {
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
    let known = family(vendor.name, model.name());
    let anywhere =
        || family(MAKER, model.name()).filter(|_| vendor.place == ServerLocation::Anywhere);
    let known = known.or_else(anywhere).unwrap_or_default();
    match (known, thinks) {
        ([], Some(true)) => USUAL.to_vec(),
        (known, _) => known.to_vec(),
    }
}

/// Returns how much of a model Chat Completions serves. Gateways that translate requests to OpenAI
/// serve all of it.
pub(crate) fn goes(model: &ModelRef) -> Reach {
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

fn family(vendor: &str, name: &str) -> Option<&'static [Effort]> {
    by_family(&EFFORTS, vendor, name).map(Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::Vendor;

    #[test]
    fn the_data_is_sound() {
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
            let all = on_chat(&model, &ModelFacts::default(), &dialect);
            assert_eq!(all, known, "{model}");
        }
    }
}
