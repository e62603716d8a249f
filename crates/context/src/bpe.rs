//! [`Bpe`]: exact token counts with the byte-pair encodings that OpenAI publishes.
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

/// The longest stretch that is merged at once, in bytes. It bounds the memory of a count.
const LONGEST: usize = 1 << 16;

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
/// A word or a run of signs or blanks of more than 64 KiB is cut by length, which may add a token for
/// each cut.
#[derive(Clone, Copy)]
pub struct Bpe {
    name: &'static str,
    encoding: fn() -> &'static Encoding,
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
}

impl Encoding {
    fn new(pattern: Pattern, tokens: &[u8]) -> Self {
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
        let stretches = pieces.flat_map(|piece| piece.as_bytes().chunks(LONGEST));
        Tokens(
            stretches
                .map(|stretch| merger.count(stretch, &self.vocabulary))
                .sum(),
        )
    }
}

impl TokenCounter for Bpe {
    fn name(&self) -> &str {
        self.name
    }

    fn text(&self, text: &str) -> Tokens {
        (self.encoding)().merging(|encoding, merger| encoding.count(merger, text))
    }
}

impl fmt::Debug for Bpe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bpe").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any character.
    const ANY: &str = "\\PC{1,4}";
    /// Runs of every class that the vocabularies distinguish, in any order.
    fn any_text() -> impl Strategy<Value = String> {
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
            ANY,
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
        fn counts_are_those_of_the_published_tokenisers(text in any_text()) {
            for (bpe, published) in published() {
                prop_assert_eq!(bpe.text(&text).0, published.count(&text) as u64, "{:?} {:?}", bpe, text);
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
    fn a_long_stretch_is_cut_at_little_loss() {
        for unit in ["a", "語", "🦀", "=", " ", "\n", "é", "🇯🇵", "7"] {
            let text = unit.repeat(200_000 / unit.len());
            for (bpe, published) in published() {
                let (counted, exact) = (bpe.text(&text).0, published.count(&text) as u64);
                assert!(counted.abs_diff(exact) <= 4, "{unit}: {counted}, {exact}");
            }
        }
    }
}
