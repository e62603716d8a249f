//! Which window a model has: the user's word, the server's, the data file's, or a fallback, in
//! this order. Asks no server; see `discovery.rs`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plimsoll_context::{FALLBACK_WINDOW, Tokens};
use serde::{Deserialize, Serialize};

use crate::model_ref::ModelRef;

/// A window and who said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its size.
    pub tokens: Tokens,
    /// Who said so.
    pub source: WindowSource,
}

/// Who said how large a window is; the first one that did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// The user.
    Explicit,
    /// The server.
    Reported,
    /// Our data.
    Known,
    /// Nobody.
    Fallback,
}

/// The file, read once; empty if it cannot be read, which a test rules out.
static WINDOWS: LazyLock<BTreeMap<String, BTreeMap<String, Tokens>>> =
    LazyLock::new(|| toml::from_str(include_str!("../data/windows.toml")).unwrap_or_default());

/// The window to work with.
#[must_use]
pub fn resolve_window(
    explicit: Option<Tokens>,
    reported: Option<Tokens>,
    model: &ModelRef,
) -> Window {
    let sources = [
        (explicit, WindowSource::Explicit),
        (reported, WindowSource::Reported),
        (known_window(model), WindowSource::Known),
    ];
    let said = sources.into_iter().find_map(|(tokens, source)| {
        let tokens = tokens.filter(|tokens| *tokens > Tokens::ZERO)?;
        Some(Window { tokens, source })
    });
    said.unwrap_or(Window {
        tokens: FALLBACK_WINDOW,
        source: WindowSource::Fallback,
    })
}

/// The window that our data has for a model.
#[must_use]
pub fn known_window(model: &ModelRef) -> Option<Tokens> {
    let vendor = model.vendor();
    let models = WINDOWS.get(vendor.same_as.unwrap_or(vendor.name))?;
    let name = model.name().to_ascii_lowercase();
    let found = models.get(&name).or_else(|| models.get(undated(&name)?));
    found.copied()
}

/// The provider that has a model of that name, where our data knows exactly one.
pub(crate) fn provider_of(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let mut having = WINDOWS
        .iter()
        .filter(|(_, models)| models.contains_key(&lower))
        .map(|(provider, _)| provider.as_str());
    having.next().filter(|_| having.next().is_none())
}

/// The name without a date at its end.
pub(crate) fn undated(name: &str) -> Option<&str> {
    let (rest, date) = name
        .len()
        .checked_sub(11)
        .and_then(|at| name.split_at_checked(at))?;
    let form = date.bytes().enumerate().all(|(at, byte)| match at {
        0 | 5 | 8 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    form.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::Vendor;

    fn window(model: &str) -> Option<u64> {
        known_window(&ModelRef::parse(model).unwrap()).map(|tokens| tokens.0)
    }

    #[test]
    fn the_data_is_sound() {
        let text = include_str!("../data/windows.toml");
        let all: BTreeMap<String, BTreeMap<String, Tokens>> = toml::from_str(text).unwrap();
        assert_eq!(all, *WINDOWS);
        for (vendor, models) in &all {
            assert_eq!(Vendor::named(vendor).unwrap().name, vendor);
            for (model, window) in models {
                assert_eq!(*model, model.to_ascii_lowercase());
                assert!((4_096..=4_000_000).contains(&window.0), "{model}");
            }
        }
    }

    #[test]
    fn names_are_found_with_and_without_a_date() {
        assert_eq!(window("openai/gpt-4o"), Some(128_000));
        assert_eq!(window("openai/GPT-4o-2024-08-06"), Some(128_000));
        assert_eq!(window("groq/openai/gpt-oss-20b"), Some(131_072));
        for unknown in [
            "openai/gpt-4o-next",
            "openai/gpt-4o-2024-8-06",
            "openai/gpt-99",
            "openai-compatible/gpt-4o",
            "ollama/qwen3",
            "openai/ä-2024-08-06",
        ] {
            assert_eq!(window(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_user_goes_before_the_server_and_the_server_before_the_data() {
        let model = ModelRef::parse("openai/gpt-4o").unwrap();
        let unknown = ModelRef::parse("openai/gpt-99").unwrap();
        let rows = [
            (Some(1), Some(2), &model, 1, WindowSource::Explicit),
            (None, Some(2), &model, 2, WindowSource::Reported),
            (None, Some(0), &model, 128_000, WindowSource::Known),
            (None, None, &model, 128_000, WindowSource::Known),
            (None, None, &unknown, 200_000, WindowSource::Fallback),
        ];
        for (explicit, reported, model, tokens, source) in rows {
            let got = resolve_window(explicit.map(Tokens), reported.map(Tokens), model);
            let tokens = Tokens(tokens);
            assert_eq!(got, Window { tokens, source });
        }
    }

    #[test]
    fn a_provider_is_named_only_where_there_is_one() {
        assert_eq!(provider_of("gpt-4o"), Some("openai"));
        assert_eq!(provider_of("qwen3"), None);
    }
}
