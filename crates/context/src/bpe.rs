//! [`Bpe`]: exact token counts with the byte-pair encodings that OpenAI publishes.
//!
//! Only counts are computed, no token ids. Control tokens are counted as plain text.

use std::fmt;
use std::sync::LazyLock;

use tiktoken::{CoreBpe, encoding};

use crate::counter::TokenCounter;
use crate::tokens::Tokens;

static O200K: LazyLock<CoreBpe> = LazyLock::new(encoding::o200k_base);
static CL100K: LazyLock<CoreBpe> = LazyLock::new(encoding::cl100k_base);

/// An exact token counter for one of OpenAI's vocabularies.
///
/// The vocabulary is loaded when the first text is counted, which takes about a tenth of a second.
/// All counters of a process share it.
#[derive(Clone, Copy)]
pub struct Bpe {
    name: &'static str,
    encoding: &'static LazyLock<CoreBpe>,
}

impl Bpe {
    /// Returns a counter with the vocabulary of GPT-4o, GPT-4.1, GPT-5 and the o-models.
    #[must_use]
    pub fn o200k() -> Self {
        Self {
            name: "o200k",
            encoding: &O200K,
        }
    }

    /// Returns a counter with the vocabulary of GPT-4 and GPT-3.5.
    #[must_use]
    pub fn cl100k() -> Self {
        Self {
            name: "cl100k",
            encoding: &CL100K,
        }
    }
}

impl TokenCounter for Bpe {
    fn name(&self) -> &str {
        self.name
    }

    fn text(&self, text: &str) -> Tokens {
        Tokens(self.encoding.count(text) as u64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_counts() {
        for (text, o200k, cl100k) in [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("The quick brown fox jumps over the lazy dog.", 10, 10),
            ("満載喫水線 🦀", 9, 14),
            // Control tokens are counted as plain text.
            ("<|endoftext|>", 7, 7),
        ] {
            assert_eq!(Bpe::o200k().text(text), Tokens(o200k), "{text}");
            assert_eq!(Bpe::cl100k().text(text), Tokens(cl100k), "{text}");
        }
    }
}
