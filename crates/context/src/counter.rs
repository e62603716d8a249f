//! [`TokenCounter`]: counts the tokens of a text, an image, a message or a tool's schema. [`Memo`]
//! caches the counts of texts, so that a history which is sent again is only hashed.
//!
//! The counts are not calibrated by a provider's reports; see `calibration.rs`.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use crate::message::{File, Image, Message, Part, Source};
use crate::tokens::Tokens;
use crate::tool_spec::ToolSpec;

/// Role, delimiters and separators that every chat format adds to a message.
pub const MESSAGE_OVERHEAD: Tokens = Tokens(4);
/// Id, type and delimiters that every chat format adds to a tool call.
pub const CALL_OVERHEAD: Tokens = Tokens(8);
/// The wrapping of one tool's definition.
pub const TOOL_OVERHEAD: Tokens = Tokens(8);
/// The sentences with which `wire` frames a summary, so that the model takes it as a reference.
pub const SUMMARY_FRAME: Tokens = Tokens(34);
/// The tokens of an image of unknown size: 1024 × 1024 in OpenAI's tiles (85 + 4 · 170).
pub const IMAGE_DEFAULT: Tokens = Tokens(765);

/// The minimum length of a cached text, in bytes. Hashing and looking up a text takes 0.1 µs, about
/// as long as the fastest exact count of this many bytes.
pub const MEMO_MIN_LEN: usize = 64;
/// The number of counts in one generation. Two generations take about 7 MB. At least this many of
/// the newest texts are always cached, more than the number of messages in any window.
pub const MEMO_ENTRIES: usize = 65_536;

/// Counts tokens. Each agent has its own counter; counters share no state.
pub trait TokenCounter: Debug + Send + Sync {
    /// Returns the name of the counter, as printed by `plimsoll count`.
    fn name(&self) -> &str;

    /// Counts the tokens of a text.
    fn text(&self, text: &str) -> Tokens;

    /// Counts the tokens of an image.
    ///
    /// The default is OpenAI's tile rule: 85, and 170 for each tile of 512 pixels after fitting
    /// into 2048 × 2048 and a shorter side of 768; 85 for `low` detail.
    fn image(&self, image: &Image) -> Tokens {
        image_tiles(image)
    }

    /// Counts the tokens of a file: its base64 as a PDF-like document, 1 token for 8 bytes of
    /// base64, at least [`IMAGE_DEFAULT`].
    fn file(&self, file: &File) -> Tokens {
        match &file.source {
            Source::Url { .. } => IMAGE_DEFAULT,
            Source::Data { base64, .. } => Tokens(base64.len() as u64 / 8).max(IMAGE_DEFAULT),
        }
    }

    /// Counts the tokens of one part.
    fn part(&self, part: &Part) -> Tokens {
        match part {
            Part::Text { text } => self.text(text),
            Part::Image(image) => self.image(image),
            Part::File(file) => self.file(file),
            Part::Thinking(thinking) => {
                let opaque = thinking.opaque.as_ref().map_or(Tokens::ZERO, |opaque| {
                    // A signature is opaque to the model; only hidden reasoning in it counts.
                    if thinking.text.is_empty() {
                        Tokens(opaque.data.len() as u64 / 6)
                    } else {
                        Tokens::ZERO
                    }
                });
                self.text(&thinking.text) + opaque
            }
            Part::ToolCall(call) => {
                CALL_OVERHEAD + self.text(&call.name) + self.text(&call.arguments)
            }
            Part::Opaque(opaque) => self.text(&opaque.data),
        }
    }

    /// Counts the tokens of a message: [`MESSAGE_OVERHEAD`], its parts, and [`SUMMARY_FRAME`] for a
    /// summary.
    fn message(&self, message: &Message) -> Tokens {
        let inner = match message {
            Message::Notice { text } => self.text(text),
            Message::Summary { text } => SUMMARY_FRAME + self.text(text),
            _ => message.parts().iter().map(|part| self.part(part)).sum(),
        };
        MESSAGE_OVERHEAD + inner
    }

    /// Counts the tokens of a tool's definition.
    fn tool(&self, tool: &ToolSpec) -> Tokens {
        TOOL_OVERHEAD
            + self.text(&tool.name)
            + self.text(&tool.description)
            + self.text(&tool.schema.to_string())
    }
}

/// A counter with the rule of thumb `ceil(chars / 4)`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chars4;

impl TokenCounter for Chars4 {
    fn name(&self) -> &str {
        "chars4"
    }

    fn text(&self, text: &str) -> Tokens {
        Tokens((text.chars().count() as u64).div_ceil(4))
    }
}

/// Caches the counts of `C` by the text's hash. The cache contains no texts. When both generations are full, the older one is
/// discarded at once, so an entry costs O(1) regardless of the length of a run.
///
/// Parts, messages and tools are counted by the trait's default methods, based on `C`'s counts of
/// texts, images and files.
#[derive(Debug)]
pub struct Memo<C> {
    counter: C,
    generations: Mutex<Generations>,
    entries: usize,
}

/// 128 bits of BLAKE3: the chance that any two of 2³² texts collide is 2⁻⁶⁴.
type TextHash = [u8; 16];

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<TextHash, Tokens>,
    old: HashMap<TextHash, Tokens>,
}

impl<C: TokenCounter> Memo<C> {
    /// Caches the counts of `counter`, with [`MEMO_ENTRIES`] texts per generation.
    pub fn new(counter: C) -> Self {
        Self::with_entries(counter, MEMO_ENTRIES)
    }

    fn with_entries(counter: C, entries: usize) -> Self {
        Self {
            counter,
            generations: Mutex::default(),
            entries,
        }
    }

    fn recall(&self, key: &TextHash) -> Option<Tokens> {
        let mut generations = self.lock();
        if let Some(tokens) = generations.young.get(key) {
            return Some(*tokens);
        }
        let tokens = generations.old.remove(key)?;
        generations.keep(*key, tokens, self.entries);
        Some(tokens)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        // The state is consistent after every statement, so a poisoned lock can be used.
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: TokenCounter> TokenCounter for Memo<C> {
    fn name(&self) -> &str {
        self.counter.name()
    }

    fn text(&self, text: &str) -> Tokens {
        if text.len() < MEMO_MIN_LEN {
            return self.counter.text(text);
        }
        let key = hash_of(text);
        if let Some(tokens) = self.recall(&key) {
            return tokens;
        }
        // Count without holding the lock: two tasks may count one text twice, but none waits for
        // another.
        let tokens = self.counter.text(text);
        self.lock().keep(key, tokens, self.entries);
        tokens
    }

    fn image(&self, image: &Image) -> Tokens {
        self.counter.image(image)
    }

    fn file(&self, file: &File) -> Tokens {
        self.counter.file(file)
    }
}

impl Generations {
    fn keep(&mut self, key: TextHash, tokens: Tokens, entries: usize) {
        if self.young.len() >= entries {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, tokens);
    }
}

fn hash_of(text: &str) -> TextHash {
    let hash = blake3::hash(text.as_bytes());
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn image_tiles(image: &Image) -> Tokens {
    if image.detail.as_deref() == Some("low") {
        return Tokens(85);
    }
    let Some((width, height)) = image.size else {
        return IMAGE_DEFAULT;
    };
    let (mut w, mut h) = (f64::from(width.max(1)), f64::from(height.max(1)));
    let fit = (2048.0 / w.max(h)).min(1.0);
    (w, h) = (w * fit, h * fit);
    let shrink = (768.0 / w.min(h)).min(1.0);
    let tiles = (w * shrink / 512.0).ceil() * (h * shrink / 512.0).ceil();
    Tokens(85 + 170 * tiles as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn chars4_is_the_formula() {
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("abcd", 1),
            ("abcde", 2),
            ("日本語日本", 2),
        ] {
            assert_eq!(Chars4.text(text), Tokens(tokens), "{text}");
        }
    }

    #[test]
    fn images_weigh_by_their_size() {
        let image = |size, detail: Option<&str>| Image {
            source: Source::Url { url: "x".into() },
            size,
            detail: detail.map(Into::into),
        };
        for (size, detail, tokens) in [
            (Some((1024, 1024)), None, 765),
            (Some((2048, 4096)), None, 1105),
            (Some((4096, 8192)), Some("low"), 85),
            (Some((1, 1)), None, 255),
            (None, None, 765),
        ] {
            assert_eq!(
                Chars4.image(&image(size, detail)),
                Tokens(tokens),
                "{size:?}"
            );
        }
    }

    /// A counter that counts its calls.
    #[derive(Debug, Default)]
    struct CallCounter(AtomicUsize);

    impl TokenCounter for CallCounter {
        fn name(&self) -> &str {
            "asked"
        }

        fn text(&self, text: &str) -> Tokens {
            self.0.fetch_add(1, Ordering::Relaxed);
            Tokens(text.len() as u64)
        }

        fn image(&self, _: &Image) -> Tokens {
            Tokens(77)
        }

        fn file(&self, _: &File) -> Tokens {
            Tokens(88)
        }
    }

    fn long(n: usize) -> String {
        format!("number {n} {}", "of many texts ".repeat(5))
    }

    #[test]
    fn a_history_sent_again_is_not_counted_again() {
        let memo = Memo::new(CallCounter::default());
        for _ in 0..10 {
            for n in 0..100 {
                assert_eq!(memo.text(&long(n)), Tokens(long(n).len() as u64));
            }
        }
        assert_eq!(memo.counter.0.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn what_it_holds_is_bounded_and_the_newest_stay() {
        let memo = Memo::with_entries(CallCounter::default(), 10);
        for n in 0..1_000 {
            memo.text(&long(n));
            // This text is used all the time, so it is never discarded.
            memo.text(&long(0));
            let generations = memo.lock();
            assert!(generations.young.len() <= 10 && generations.old.len() <= 10);
        }
        assert_eq!(memo.counter.0.load(Ordering::Relaxed), 1_000);
        for n in 991..1_000 {
            memo.text(&long(n));
        }
        assert_eq!(memo.counter.0.load(Ordering::Relaxed), 1_000);
        memo.text(&long(500));
        assert_eq!(memo.counter.0.load(Ordering::Relaxed), 1_001);
    }

    #[test]
    fn the_rest_is_the_counters_own() {
        let memo = Memo::new(CallCounter::default());
        let source = Source::Url { url: "u".into() };
        let image = Image {
            source: source.clone(),
            size: None,
            detail: None,
        };
        assert_eq!(memo.name(), "asked");
        assert_eq!(memo.image(&image), Tokens(77));
        assert_eq!(memo.file(&File { name: None, source }), Tokens(88));
    }

    #[test]
    fn tasks_share_it() {
        let memo = Memo::with_entries(CallCounter::default(), 50);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..500 {
                        let text = long(n % 70);
                        assert_eq!(memo.text(&text), Tokens(text.len() as u64));
                    }
                });
            }
        });
    }
}
