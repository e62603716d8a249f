//! Chooses the window of a model: from the user, the server, the known facts, or a fallback, in
//! this order. See `discovery.rs` for asking the server.

use plimsoll_context::{FALLBACK_WINDOW, Tokens};
use serde::{Deserialize, Serialize};

use crate::models::{ModelFacts, Origin};

/// A window and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its size.
    pub tokens: Tokens,
    /// The source of the size.
    pub source: WindowSource,
}

/// The source of a window, in order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSource {
    /// The user, for this run.
    Explicit,
    /// The server.
    Reported,
    /// The known facts about the model: the user's before built-in ones.
    Known(Origin),
    /// No source knows the window.
    Fallback,
}

/// Chooses the window to work with.
#[must_use]
pub fn resolve_window(
    explicit: Option<Tokens>,
    reported: Option<Tokens>,
    facts: &ModelFacts,
) -> Window {
    let known = facts.window.as_ref();
    let known = known.map(|fact| (fact.value, WindowSource::Known(fact.from)));
    let sources = [
        explicit.map(|tokens| (tokens, WindowSource::Explicit)),
        reported.map(|tokens| (tokens, WindowSource::Reported)),
        known,
    ];
    let mut said = sources.into_iter().flatten();
    let said = said.find(|(tokens, _)| *tokens > Tokens::ZERO);
    let (tokens, source) = said.unwrap_or((FALLBACK_WINDOW, WindowSource::Fallback));
    Window { tokens, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model_ref::ModelRef;
    use crate::models::ModelBook;

    #[test]
    fn who_goes_before_whom() {
        let book = |text: &str, from| ModelBook::parse(text, from).unwrap();
        let row = |window: u64| format!("[openai.gpt-4o]\nwindow = {window}");
        let ours = ModelBook::built_in().clone();
        let mine = ours.clone().overlay(book(&row(700), Origin::User));
        let here = mine.clone().overlay(book(&row(800), Origin::Configuration));
        let rows = [
            (Some(1), Some(2), &here, 1, WindowSource::Explicit),
            (None, Some(2), &here, 2, WindowSource::Reported),
            (
                None,
                None,
                &here,
                800,
                WindowSource::Known(Origin::Configuration),
            ),
            (None, None, &mine, 700, WindowSource::Known(Origin::User)),
            (
                None,
                Some(0),
                &ours,
                128_000,
                WindowSource::Known(Origin::BuiltIn),
            ),
        ];
        let model = ModelRef::parse("openai/gpt-4o").unwrap();
        for (explicit, reported, book, tokens, source) in rows {
            let facts = book.facts(&model);
            let got = resolve_window(explicit.map(Tokens), reported.map(Tokens), &facts);
            let tokens = Tokens(tokens);
            assert_eq!(got, Window { tokens, source });
        }
        let unknown = ModelRef::parse("openai/gpt-99").unwrap();
        let got = resolve_window(None, None, &here.facts(&unknown));
        assert_eq!(
            (got.tokens, got.source),
            (Tokens(200_000), WindowSource::Fallback)
        );
    }
}
