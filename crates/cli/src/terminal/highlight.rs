//! [`Highlighter`]: colours comments, strings, numbers and keywords in common languages, line by
//! line.
//!
//! It knows words, not grammars: a full highlighter would be a tenth of the binary. All languages
//! share their keywords.

use std::sync::LazyLock;

use console::Style;
use serde::Deserialize;

use crate::terminal::style::{CYAN, DIM, GREEN, MAGENTA, PLAIN, diff_line, paint};

/// Maximum length of a coloured line, in bytes.
const MAX_LINE: usize = 2_000;

/// The languages, and the keywords that all of them share.
#[derive(Deserialize, Default)]
struct Languages {
    keywords: String,
    languages: Vec<Language>,
}

/// A family of languages.
#[derive(Deserialize)]
struct Language {
    names: String,
    /// Its comments and strings. The first one that begins at a place counts.
    spans: Vec<Span>,
}

/// The mark that begins a comment or a string, the one that ends it, and its kind.
type Span = (String, String, SpanKind);

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum SpanKind {
    Comment,
    String,
}

/// The languages of the data file. Empty if it cannot be parsed, which a test excludes.
static LANGUAGES: LazyLock<Languages> =
    LazyLock::new(|| toml::from_str(include_str!("languages.toml")).unwrap_or_default());

/// Colours code of one language, line by line.
#[derive(Clone)]
pub(crate) struct Highlighter {
    /// `None` if the language is unknown.
    language: Option<&'static Language>,
    is_diff: bool,
    /// The comment or string that began on an earlier line.
    open: Option<&'static Span>,
}

impl Highlighter {
    /// Creates a highlighter for the language with this name or file name extension.
    pub(crate) fn new(language: &str) -> Self {
        let name = language.split([' ', ',', '{', ':']).next();
        let name = name.unwrap_or_default().to_lowercase();
        let is_named = |of: &&Language| of.names.split(' ').any(|other| other == name);
        Self {
            language: LANGUAGES.languages.iter().find(is_named),
            is_diff: matches!(name.as_str(), "diff" | "patch"),
            open: None,
        }
    }

    /// Returns the next line in colours.
    pub(crate) fn line(&mut self, line: &str) -> String {
        if line.len() > MAX_LINE {
            return line.to_owned();
        }
        if self.is_diff {
            return diff_line(line);
        }
        let Some(language) = self.language else {
            return line.to_owned();
        };
        let mut coloured = String::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (length, style) = match self.open.take() {
                Some(span) => self.until(rest, 0, span),
                None => self.token(language, rest),
            };
            let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            coloured.push_str(&paint(style, token));
            rest = after;
        }
        coloured
    }

    /// Returns the length and the style of the first token.
    fn token(&mut self, language: &'static Language, text: &str) -> (usize, Style) {
        let mut spans = language.spans.iter();
        if let Some(span) = spans.find(|(begin, ..)| text.starts_with(begin.as_str())) {
            return self.until(text, span.0.len(), span);
        }
        let first = text.chars().next().unwrap_or(' ');
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        if !is_part(first) {
            return (first.len_utf8(), PLAIN);
        }
        let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());
        let word = text.get(..end).unwrap_or(text);
        let lower = word.to_lowercase();
        let style = match first {
            '0'..='9' => CYAN,
            _ if LANGUAGES
                .keywords
                .split_whitespace()
                .any(|keyword| keyword == lower) =>
            {
                MAGENTA
            }
            _ => PLAIN,
        };
        (end, style)
    }

    /// Returns the length and the style of a span whose content begins at `from`. If it does not end on
    /// this line, it may continue on the next one.
    fn until(&mut self, text: &str, from: usize, span: &'static Span) -> (usize, Style) {
        let (_, end, kind) = span;
        let style = match kind {
            SpanKind::Comment => DIM,
            SpanKind::String => GREEN,
        };
        let mut is_escaped = false;
        for (at, c) in text.char_indices().skip_while(|(at, _)| *at < from) {
            let rest = text.get(at..).unwrap_or_default();
            if !is_escaped && !end.is_empty() && rest.starts_with(end.as_str()) {
                return (at + end.len(), style);
            }
            is_escaped = !is_escaped && c == '\\';
        }
        self.open = (!matches!(end.as_str(), "" | "\"" | "'")).then_some(span);
        (text.len(), style)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marked(language: &str, code: &str) -> String {
        console::set_colors_enabled(true);
        let mut highlighter = Highlighter::new(language);
        let lines: Vec<String> = code.lines().map(|line| highlighter.line(line)).collect();
        let text = lines.join("\n");
        [
            ("\u{1b}[35m", "K<"),
            ("\u{1b}[32m", "T<"),
            ("\u{1b}[2m", "C<"),
            ("\u{1b}[36m", "N<"),
            ("\u{1b}[31m", "R<"),
            ("\u{1b}[0m", ">"),
        ]
        .into_iter()
        .fold(text, |text, (code, mark)| text.replace(code, mark))
    }

    #[test]
    fn words_texts_numbers_and_comments_have_colours() {
        for (language, code, expected) in [
            (
                "rust",
                "fn fnx<'a>(x: u8) { \"a\\\"b\"; 42 } // no",
                "K<fn> fnx<'a>(x: u8) { T<\"a\\\"b\">; N<42> } C<// no>",
            ),
            ("rs", "/* a\nb */ let", "C</* a>\nC<b */> K<let>"),
            (
                "python",
                "x = '''a\nb''' # no",
                "x = T<'''a>\nT<b'''> C<# no>",
            ),
            ("sql", "select 1 -- x", "K<select> N<1> C<-- x>"),
            ("diff", "+a\n-b\n c", "T<+a>\nR<-b>\n c"),
            ("unheard-of", "fn x", "fn x"),
            ("js", "\"open", "T<\"open>"),
        ] {
            assert_eq!(marked(language, code), expected, "{language}");
        }
    }

    proptest! {
        #[test]
        fn no_code_is_lost(code in "[a1 \"'/*#`\\\\語\n-]{0,60}", at in 0_usize..4) {
            console::set_colors_enabled(true);
            let mut highlighter = Highlighter::new(LANGUAGES.languages[at].names.split(' ').next().unwrap_or_default());
            for line in code.lines() {
                let coloured = highlighter.line(line);
                prop_assert_eq!(console::strip_ansi_codes(&coloured), line);
            }
        }
    }
}
