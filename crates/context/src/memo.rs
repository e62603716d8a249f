//! [`Memo`]: a token counter with a cache, so that a history which is sent again is only hashed.
//!
//! The cache contains hashes and counts, no texts.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::counter::TokenCounter;
use crate::message::{File, Image};
use crate::tokens::Tokens;

/// The minimum length of a cached text, in bytes. Hashing and looking up a text takes 0.1 µs, about
/// as long as the fastest exact count of this many bytes.
pub const MEMO_MIN_LEN: usize = 64;
/// The number of counts in one generation. Two generations take about 7 MB. At least this many of
/// the newest texts are always cached, more than the number of messages in any window.
pub const MEMO_ENTRIES: usize = 65_536;

/// Caches the counts of `C` by the text's hash. When both generations are full, the older one is
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
        let key = key(text);
        if let Some(tokens) = self.recall(&key) {
            return tokens;
        }
        // Count without holding the lock: two tasks may count one text twice, but none waits for
        // another.
        let tokens = self.counter.text(text);
        self.lock().keep(key, tokens, self.entries);
        tokens
    }

    fn text_at_most(&self, text: &str) -> Tokens {
        self.counter.text_at_most(text)
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

fn key(text: &str) -> TextHash {
    let hash = blake3::hash(text.as_bytes());
    let mut key = TextHash::default();
    for (to, from) in key.iter_mut().zip(hash.as_bytes()) {
        *to = *from;
    }
    key
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::message::Source;

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
