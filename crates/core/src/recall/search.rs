//! Splits queries and texts into words, and finds the place in a text where most words of a query stand
//! together. There is no query syntax: everything that a model writes is treated as words.
//!
//! A word is a run of letters and digits; case is ignored. In scripts without spaces between words,
//! each character is a word.

use std::borrow::Cow;
use std::cmp::Reverse;

use plimsoll_context::{Bytes, clip};

/// Maximum searchable text of an item: 4 MiB, about a million words. The complete text can still be
/// recalled.
pub const SEARCHED_BYTES: usize = 4 << 20;
/// Maximum length of a query in bytes. The rest is ignored.
pub const QUERY_BYTES: usize = 1_000;
/// Maximum number of terms in a query.
pub const QUERY_TERMS: usize = 16;
/// Length of a snippet in bytes.
pub const SNIPPET: usize = 200;
/// Length of the snippet before the first matching word, in bytes.
const SNIPPET_BEFORE: usize = 60;
/// Longer words, for example base64, are cut to this length in bytes.
const WORD_BYTES: usize = 64;
/// Minimum length, in characters, of a term that also matches as a prefix.
const PREFIX_CHARS: usize = 3;
/// Maximum number of matches per text that are considered for the best snippet.
const PLACES: usize = 10_000;

/// A parsed search query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    terms: Vec<Term>,
    /// Whether one term is enough.
    any: bool,
}

/// Words that must be adjacent and in this order: one space-separated piece of the query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// The words in lower case, letters and digits only.
    pub words: Vec<String>,
    /// Whether the last word also matches as a prefix.
    pub open: bool,
}

/// The best match of a query in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BestMatch {
    /// Number of terms in the whole text.
    pub terms: usize,
    /// Number of terms within one snippet at `at`.
    pub together: usize,
    /// Byte offset of the place with the most terms close together.
    pub at: usize,
}

/// The position of a word of a text, and the word.
type TextWord<'a> = (usize, Cow<'a, str>);

impl SearchQuery {
    /// Parses a query. Returns `None` if it contains no word.
    #[must_use]
    pub fn parse(query: &str) -> Option<Self> {
        let query = clip(query, Bytes(QUERY_BYTES as u64));
        let mut terms = Vec::new();
        for chunk in query.split_whitespace() {
            let words = words(chunk).map(|(_, word)| word.into_owned());
            let words: Vec<String> = words.collect();
            let Some(last) = words.last() else {
                continue;
            };
            let open = last.chars().count() >= PREFIX_CHARS;
            let term = Term { words, open };
            if !terms.contains(&term) && terms.len() < QUERY_TERMS {
                terms.push(term);
            }
        }
        let any = false;
        (!terms.is_empty()).then_some(Self { terms, any })
    }

    /// Returns the query for texts with at least one of the terms.
    #[must_use]
    pub fn any(self) -> Self {
        Self { any: true, ..self }
    }

    /// Returns `true` if one term is enough, and `false` if a text must contain all.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// Returns the terms of the query.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Searches a text for the terms. Returns `None` if it does not contain all of them, or, for a
    /// query for [any](Self::any), none of them.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<BestMatch> {
        let text = searched(text);
        if !self.any {
            // Most texts are rejected here, before they are split into words.
            let lower = text.to_lowercase();
            let mut words = self.terms.iter().flat_map(|term| &term.words);
            if words.any(|word| word.is_ascii() && !lower.contains(word.as_str())) {
                return None;
            }
        }
        let words: Vec<TextWord<'_>> = words(text).collect();
        let mut places = Vec::new();
        for (index, (at, _)) in words.iter().enumerate() {
            let from = words.get(index..).unwrap_or_default();
            let here = self.terms.iter().enumerate();
            let fit = here.filter(|(_, term)| term.fits(from));
            places.extend(fit.map(|(term, _)| (*at, term)));
            if places.len() >= PLACES {
                break;
            }
        }
        best(&places).filter(|found| self.any || found.terms == self.terms.len())
    }
}

impl Term {
    fn fits(&self, words: &[TextWord<'_>]) -> bool {
        let Some((last, before)) = self.words.split_last() else {
            return false;
        };
        let ends = |(_, word): &TextWord<'_>| word == last || (self.open && word.starts_with(last));
        words.get(before.len()).is_some_and(ends)
            && before
                .iter()
                .zip(words)
                .all(|(wanted, (_, word))| wanted == word)
    }
}

/// Returns the part of a text around a byte offset, and the offset of this part.
#[must_use]
pub fn snippet(text: &str, at: usize) -> (usize, &str) {
    let from = text.floor_char_boundary(at.saturating_sub(SNIPPET_BEFORE));
    let to = text.floor_char_boundary(from.saturating_add(SNIPPET));
    (from, text.get(from..to).unwrap_or_default())
}

/// Returns the words of a text in order for an index, each followed by a space. A text that
/// [matches](SearchQuery::find) a query contains the words of its terms, adjacent and in order. They consist
/// of letters and digits in lower case.
#[must_use]
pub fn spaced_words(text: &str) -> String {
    let words = words(searched(text)).map(|(_, word)| word + " ");
    words.collect()
}

fn searched(text: &str) -> &str {
    clip(text, Bytes(SEARCHED_BYTES as u64))
}

/// Returns the snippet-sized window with the most distinct terms, the first if several tie.
fn best(places: &[(usize, usize)]) -> Option<BestMatch> {
    // A query has few terms, so a set of them is a number with one bit for each.
    let distinct = |places: &mut dyn Iterator<Item = &(usize, usize)>| {
        let terms = places.fold(0_u32, |terms, (_, term)| terms | 1 << term);
        terms.count_ones() as usize
    };
    let windows = places.iter().enumerate().map(|(index, (at, _))| {
        let end = at.saturating_add(SNIPPET - SNIPPET_BEFORE);
        let here = places.iter().skip(index);
        (distinct(&mut here.take_while(|(to, _)| *to < end)), *at)
    });
    let (together, Reverse(at)) = windows.map(|(terms, at)| (terms, Reverse(at))).max()?;
    Some(BestMatch {
        terms: distinct(&mut places.iter()),
        together,
        at,
    })
}

/// Returns the runs of letters and digits, and each character of a script without spaces.
fn words(text: &str) -> impl Iterator<Item = TextWord<'_>> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (at, first) = rest.by_ref().find(|(_, c)| c.is_alphanumeric())?;
        let mut to = at + first.len_utf8();
        if !stands_alone(first) {
            while let Some((next, c)) =
                rest.next_if(|(_, c)| c.is_alphanumeric() && !stands_alone(*c))
            {
                to = next + c.len_utf8();
            }
        }
        Some((at, lower(text.get(at..to).unwrap_or_default())))
    })
}

fn lower(run: &str) -> Cow<'_, str> {
    let run = clip(run, Bytes(WORD_BYTES as u64));
    let is_lower = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if run.bytes().all(is_lower) {
        return Cow::Borrowed(run);
    }
    Cow::Owned(run.to_lowercase())
}

/// Checks whether a character belongs to a script without spaces between words.
fn stands_alone(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff       // Thai, Lao
        | 0x1000..=0x109f     // Myanmar
        | 0x1100..=0x11ff     // Hangul Jamo
        | 0x1780..=0x17ff     // Khmer
        | 0x2e80..=0x9fff     // CJK, kana, bopomofo, Hangul compatibility
        | 0xa960..=0xa97f
        | 0xac00..=0xd7ff     // Hangul
        | 0xf900..=0xfaff
        | 0xff66..=0xff9f     // half-width kana
        | 0x1_b000..=0x1_b2ff
        | 0x2_0000..=0x3_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: &str, text: &str) -> Option<usize> {
        let query = SearchQuery::parse(query).unwrap().any();
        query.find(text).map(|found| found.terms)
    }

    #[test]
    fn words_are_what_people_and_models_mean_by_them() {
        let table = [
            (
                "The parse_config, HTTPServer2!",
                "the parse config httpserver2 ",
            ),
            ("parseConfig a.b", "parseconfig a b "),
            ("文件系统 file", "文 件 系 统 file "),
            ("Ünïcode ÉCOLE", "ünïcode école "),
            ("sha256 3.14 -x", "sha256 3 14 x "),
            ("ひらがなx", "ひ ら が な x "),
            ("", ""),
            ("\"*()^:-+{}~", ""),
        ];
        for (text, words) in table {
            assert_eq!(spaced_words(text), words, "{text}");
        }
        let giant = "a".repeat(1_000_000);
        assert_eq!(spaced_words(&giant).len(), WORD_BYTES + 1);
    }

    #[test]
    fn a_query_finds_words_beginnings_and_cjk() {
        let text = "fn parseConfig(path) -> Result; 配置文件 missing_port 8431";
        let table = [
            ("parseconfig", Some(1)),
            ("parseConfig", Some(1)),
            ("parse", Some(1)),
            ("pa", None),
            ("config", None),
            ("parseConfig(path)", Some(1)),
            ("path parse", Some(2)),
            ("path.parse", None),
            ("置文", Some(1)),
            ("文置", None),
            ("missing_port 8431 nowhere", Some(2)),
            ("NEAR(port)", None),
            ("MISSING", Some(1)),
            ("missing.port", Some(1)),
            ("8431 parse", Some(2)),
            ("843", Some(1)),
            ("path -> result", Some(2)),
        ];
        for (query, terms) in table {
            assert_eq!(found(query, text), terms, "{query}");
            let parsed = SearchQuery::parse(query).unwrap();
            let has_all = terms == Some(parsed.terms().len());
            assert_eq!(parsed.find(text).is_some(), has_all, "{query}");
        }
    }

    #[test]
    fn a_query_without_a_word_is_none_and_a_giant_one_is_cut() {
        for query in ["", "  ", "\"\"", "* OR".trim_end_matches("OR"), "()"] {
            assert_eq!(SearchQuery::parse(query), None, "{query}");
        }
        let many: String = (0..500).map(|n| format!("w{n} ")).collect();
        assert_eq!(
            SearchQuery::parse(&many).unwrap().terms().len(),
            QUERY_TERMS
        );
        assert_eq!(SearchQuery::parse("a a a").unwrap().terms().len(), 1);
    }

    #[test]
    fn the_snippet_is_where_most_terms_stand_together() {
        let text = format!("alpha {} alpha beta é", "é ".repeat(500));
        let found = SearchQuery::parse("beta alpha")
            .unwrap()
            .find(&text)
            .unwrap();
        assert_eq!(found.at, text.rfind("alpha").unwrap());
        let (from, piece) = snippet(&text, found.at);
        assert!(piece.contains("alpha beta"), "{piece}");
        assert_eq!(text.get(from..from + piece.len()), Some(piece));
        assert!(piece.len() <= SNIPPET);
    }

    #[test]
    fn no_text_and_no_query_breaks_it() {
        let texts = [
            "",
            "\u{0}",
            "🦀🦀",
            "a\u{301}b",
            "İstanbul ß ﬁ",
            "A",
            "aB",
            "AB",
            "ABc",
        ];
        for text in texts {
            let _ = spaced_words(text);
            for query in texts {
                let found = SearchQuery::parse(query).and_then(|query| query.find(text));
                let (_, piece) = snippet(text, found.map_or(3, |found| found.at));
                assert!(piece.len() <= text.len());
            }
        }
    }
}
