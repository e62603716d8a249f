//! [`Bpe`]: exact token counts with the byte-pair encodings that OpenAI publishes, and
//! [`RunningCount`]: the same count for a text that arrives in deltas.
//!
//! Only counts are computed, no token ids. Control tokens are counted as plain text.

mod merge;
mod split;
mod vocabulary;

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use merge::Merger;
use split::{Pattern, Splitter};
use vocabulary::Vocabulary;

use crate::counter::TokenCounter;
use crate::tokens::Tokens;

/// The longest stretch of text that is split at once, in bytes. It bounds the memory of a
/// [`RunningCount`].
///
/// The size is a multiple of three because both vocabularies split numbers into groups of three
/// digits. A number that is longer than a piece is therefore cut between two tokens.
pub const PIECE_MAX: usize = 4_095;

static O200K: OnceLock<Encoding> = OnceLock::new();
static CL100K: OnceLock<Encoding> = OnceLock::new();

/// The number of mergers that are kept, with their cached pieces, for later texts.
const MERGERS: usize = 8;

/// A vocabulary with the pattern that splits a text before merging.
struct Encoding {
    pattern: Pattern,
    vocabulary: Vocabulary,
    mergers: Mutex<Vec<Merger>>,
}

/// An exact token counter for one of OpenAI's vocabularies.
///
/// A text is counted in pieces of at most [`PIECE_MAX`] bytes. The pieces are cut at places that no
/// token of either vocabulary can span, so their sum is the count of the whole text. A stretch of
/// more than [`PIECE_MAX`] bytes without such a place (4,096 equal letters, for example) is cut by
/// length, which adds a few tokens for each cut.
#[derive(Clone, Copy)]
pub struct Bpe {
    name: &'static str,
    encoding: fn() -> &'static Encoding,
}

/// The token count of a text that grows at its end. It always equals [`Bpe`]'s count of the whole
/// text.
///
/// Keeps only the text that the next delta can still change: at most [`PIECE_MAX`] bytes besides
/// the delta.
#[derive(Debug, Clone)]
pub struct RunningCount {
    bpe: Bpe,
    done: Tokens,
    tail: String,
}

impl Bpe {
    /// Returns a counter with the vocabulary of GPT-4o, GPT-4.1, GPT-5 and the o-models.
    ///
    /// The vocabulary is loaded when the first text is counted, which takes a few milliseconds. All
    /// counters share it.
    #[must_use]
    pub fn o200k() -> Self {
        Self {
            name: "o200k",
            encoding: || {
                O200K.get_or_init(|| {
                    Encoding::new(Pattern::O200k, include_bytes!("../data/o200k.tokens"))
                })
            },
        }
    }

    /// Returns a counter with the vocabulary of GPT-4 and GPT-3.5.
    ///
    /// The vocabulary is loaded when the first text is counted, which takes a few milliseconds. All
    /// counters share it.
    #[must_use]
    pub fn cl100k() -> Self {
        Self {
            name: "cl100k",
            encoding: || {
                CL100K.get_or_init(|| {
                    Encoding::new(Pattern::Cl100k, include_bytes!("../data/cl100k.tokens"))
                })
            },
        }
    }

    /// Starts a count of a text that arrives in deltas.
    #[must_use]
    pub fn running(self) -> RunningCount {
        RunningCount {
            bpe: self,
            done: Tokens::ZERO,
            tail: String::new(),
        }
    }

    fn piece(&self, piece: &str) -> Tokens {
        (self.encoding)().merging(|encoding, merger| encoding.count(merger, piece))
    }
}

impl Encoding {
    fn new(pattern: Pattern, tokens: &'static [u8]) -> Self {
        Self {
            pattern,
            vocabulary: Vocabulary::read(tokens),
            mergers: Mutex::default(),
        }
    }

    /// Calls `count` with a merger that no other thread uses at the same time.
    fn merging(&self, count: impl FnOnce(&Self, &mut Merger) -> Tokens) -> Tokens {
        let mergers = || self.mergers.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = mergers().pop();
        let mut merger = kept.unwrap_or_default();
        let tokens = count(self, &mut merger);
        let mut mergers = mergers();
        if mergers.len() < MERGERS {
            mergers.push(merger);
        }
        tokens
    }

    fn count(&self, merger: &mut Merger, text: &str) -> Tokens {
        let pieces = Splitter::new(self.pattern, text);
        Tokens(
            pieces
                .map(|piece| merger.count(piece.as_bytes(), &self.vocabulary))
                .sum(),
        )
    }
}

impl TokenCounter for Bpe {
    fn name(&self) -> &str {
        self.name
    }

    fn text(&self, text: &str) -> Tokens {
        (self.encoding)().merging(|encoding, merger| {
            let mut sum = Tokens::ZERO;
            let mut rest = text;
            while let Some((piece, after)) = split_piece(rest) {
                sum += encoding.count(merger, piece);
                rest = after;
            }
            sum + encoding.count(merger, rest)
        })
    }

    /// Returns the number of bytes, since a token has at least one byte.
    fn text_at_most(&self, text: &str) -> Tokens {
        Tokens(text.len() as u64)
    }
}

impl fmt::Debug for Bpe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bpe").field(&self.name).finish()
    }
}

impl RunningCount {
    /// Adds a delta.
    pub fn push(&mut self, delta: &str) {
        self.tail.push_str(delta);
        let mut rest = self.tail.as_str();
        while let Some((piece, after)) = split_piece(rest) {
            self.done += self.bpe.piece(piece);
            rest = after;
        }
        if let Some((settled, open)) = last_joint(rest).and_then(|cut| rest.split_at_checked(cut)) {
            self.done += self.bpe.piece(settled);
            rest = open;
        }
        let settled = self.tail.len() - rest.len();
        self.tail.drain(..settled);
    }

    /// Returns the number of tokens pushed so far.
    #[must_use]
    pub fn total(&self) -> Tokens {
        self.done + self.bpe.piece(&self.tail)
    }
}

/// Returns the next piece to count and the rest of the text, or `None` if all of `text` is one
/// piece.
///
/// The piece ends at the last joint within the bound, or at the bound if there is no joint. Every
/// piece begins at a joint or at such a forced cut, so the forced cuts depend only on the text and
/// not on its deltas. Deltas and whole texts therefore have the same count.
fn split_piece(text: &str) -> Option<(&str, &str)> {
    if text.len() <= PIECE_MAX {
        return None;
    }
    let bound = text.floor_char_boundary(PIECE_MAX);
    // Look at one more character to find a joint exactly at the bound.
    let seen = text.ceil_char_boundary(bound + 1);
    let cut = text.get(..seen).and_then(last_joint).unwrap_or(bound);
    text.split_at_checked(cut)
}

/// Returns the last place in `text`, between two of its characters, that no token spans.
fn last_joint(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().rev();
    let (mut at, mut after) = chars.next()?;
    for (start, before) in chars {
        if is_joint(before, after) {
            return Some(at);
        }
        (at, after) = (start, before);
    }
    None
}

/// Returns `true` if no token of either vocabulary can contain both `before` and `after`, in any
/// context.
///
/// Before merging, both vocabularies split a text into words (letters, perhaps after one sign or
/// blank), numbers of up to three digits, runs of signs with the line ends after them, and blanks.
/// A letter therefore ends its run before any other character, and only blanks or `/` can follow a
/// line end in its run. `'` may begin the contraction of a word.
fn is_joint(before: char, after: char) -> bool {
    match before {
        '\n' | '\r' => !after.is_whitespace() && after != '/',
        'a'..='z' | 'A'..='Z' => after.is_ascii() && !after.is_ascii_alphabetic() && after != '\'',
        '0'..='9' => {
            (after.is_ascii() && !after.is_ascii_digit() && after != '\'') || is_cjk_letter(after)
        }
        _ if is_cjk_letter(before) => {
            (after.is_ascii() && !after.is_ascii_alphabetic() && after != '\'')
                || matches!(after, '、' | '。' | '，' | '！' | '？' | '：' | '；')
        }
        _ => false,
    }
}

/// Returns `true` for common ideographs, kana and Hangul syllables: caseless letters in all
/// versions of Unicode.
fn is_cjk_letter(c: char) -> bool {
    matches!(c, '\u{4E00}'..='\u{9FA5}' | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{AC00}'..='\u{D7A3}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(bpe: Bpe, text: &str) -> Tokens {
        bpe.piece(text)
    }

    fn counters() -> [Bpe; 2] {
        [Bpe::o200k(), Bpe::cl100k()]
    }

    /// Any character.
    const ANY: &str = "\\PC{1,4}";
    /// Some characters of every class of letters, numbers and symbols.
    const SOME: &str = "[ā-ĕЀ-П\u{623}-\u{62e}\u{905}-\u{90f}\u{e01}-\u{e0a}ǅªʰ²½Ⅷ€→─]{1,4}";

    /// Runs of every class that the vocabularies distinguish, in any order.
    fn any_text(rare: &'static str) -> impl Strategy<Value = String> {
        let run = prop_oneof![
            " ?[a-z]{1,12}",
            "[A-Za-z]{1,9}",
            "[0-9]{1,9}",
            "[ \t\r\n\u{a0}\u{3000}\u{85}\u{2028}]{1,6}",
            "[!-/:-@\\[-`{-~]{1,6}",
            "'(s|t|re|ve|m|ll|d|S|T|LL|ſ)",
            "[\u{4e00}-\u{4e60}]{1,8}",
            "[\u{3041}-\u{3096}\u{30a1}-\u{30fc}]{1,8}",
            "[\u{ac00}-\u{ad00}]{1,8}",
            "[、。，！？：；「」０-９Ａ-ｚ]{1,4}",
            "[a-zé-ü\u{301}\u{302}\u{5b0}\u{5d0}-\u{5ea}]{1,8}",
            "[🦀👩\u{200d}👧\u{fe0f}🇯]{1,4}",
            rare,
            "[\u{0}-\u{1f}]{1,3}",
            Just("<|endoftext|>".to_owned()),
            Just("<|im_start|>user".to_owned()),
        ];
        prop::collection::vec(run, 0..60).prop_map(|runs| runs.concat())
    }

    /// Returns the published tokenisers, from which the tables are generated.
    fn published() -> &'static [(Bpe, tiktoken::CoreBpe); 2] {
        static PUBLISHED: OnceLock<[(Bpe, tiktoken::CoreBpe); 2]> = OnceLock::new();
        PUBLISHED.get_or_init(|| {
            [
                (Bpe::o200k(), tiktoken::encoding::o200k_base()),
                (Bpe::cl100k(), tiktoken::encoding::cl100k_base()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn counts_are_those_of_the_published_tokenisers(text in any_text(ANY)) {
            for (bpe, published) in published() {
                prop_assert_eq!(whole(*bpe, &text).0, published.count(&text) as u64, "{:?} {:?}", bpe, text);
            }
        }

        #[test]
        fn no_token_reaches_across_a_joint(text in any_text(ANY)) {
            let cuts = text.char_indices().zip(text.chars().skip(1));
            let cuts = cuts.filter(|((_, before), after)| is_joint(*before, *after));
            for ((at, before), after) in cuts {
                let (head, tail) = text.split_at(at + before.len_utf8());
                for bpe in counters() {
                    prop_assert_eq!(
                        whole(bpe, head) + whole(bpe, tail), whole(bpe, &text),
                        "{:?} between {:?} and {:?}", bpe, before, after
                    );
                }
            }
        }

        #[test]
        fn deltas_are_the_whole(
            text in any_text(SOME), filler in 0..6_000usize, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40)
        ) {
            // A stretch without joints, sometimes longer than a piece.
            let text = [text.as_str(), &"語".repeat(filler), &text].concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
            cuts.sort_unstable();
            cuts.push(text.len());
            for bpe in counters() {
                let (mut running, mut from) = (bpe.running(), 0);
                for cut in &cuts {
                    running.push(text.get(from..*cut).unwrap());
                    from = *cut;
                    prop_assert_eq!(running.total(), bpe.text(text.get(..from).unwrap()));
                    prop_assert!(running.tail.len() <= PIECE_MAX);
                }
            }
        }
    }

    proptest! {
        // Few cases, because counting the whole text at once is slow without pieces.
        #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_are_the_whole(texts in prop::collection::vec(any_text(SOME), 36)) {
            // Lines provide joints, and 5 to 12 KB make several pieces.
            let text = texts.join("\nline");
            for bpe in counters() {
                prop_assert_eq!(bpe.text(&text), whole(bpe, &text));
            }
        }
    }

    #[test]
    fn known_counts() {
        for (text, o200k, cl100k) in [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("The quick brown fox jumps over the lazy dog.", 10, 10),
            // Control tokens are counted as plain text.
            ("<|endoftext|>", 7, 7),
        ] {
            assert_eq!(Bpe::o200k().text(text), Tokens(o200k), "{text}");
            assert_eq!(Bpe::cl100k().text(text), Tokens(cl100k), "{text}");
        }
    }

    #[test]
    fn a_stretch_without_joints_is_cut_by_length_at_little_loss() {
        for unit in ["a", "語", "🦀", "=", " ", "\n", "é", "🇯🇵", "7"] {
            let text = unit.repeat(20_000 / unit.len());
            for bpe in counters() {
                let (pieces, whole) = (bpe.text(&text).0, whole(bpe, &text).0);
                let cuts = (text.len() / PIECE_MAX) as u64;
                assert!(
                    pieces.abs_diff(whole) <= 3 * cuts,
                    "{unit}: {pieces}, {whole}"
                );
            }
        }
        // A number is split into groups of three digits anyway.
        let number = "7".repeat(20_000);
        assert_eq!(Bpe::o200k().text(&number), whole(Bpe::o200k(), &number));
    }

    #[test]
    fn prose_without_ascii_has_joints() {
        let clause = "船舶の満載喫水線は、安全に航海できる限界を示す。";
        let text = clause.repeat(2_000);
        assert_eq!(
            Bpe::o200k().text(&text).0,
            2_000 * Bpe::o200k().text(clause).0
        );
    }
}
