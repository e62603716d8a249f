//! [`Memo`]: a counter that remembers, so that a history which is sent again costs only hashes.
//! Not a cache of texts: it keeps hashes and counts, never what was said.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::counter::TokenCounter;
use crate::message::{File, Image};
use crate::tokens::Tokens;

/// Shorter texts are counted directly: to hash and look up one takes 0.1 µs, about what exact
/// counting of this many bytes takes at its fastest.
pub const MEMO_MIN_LEN: usize = 64;
/// Counts in one generation. Two generations of it take about 7 MB; the newest this many texts
/// are always remembered, more than any session has messages within a window.
pub const MEMO_ENTRIES: usize = 65_536;

/// Remembers what `C` counted, by the text's hash. Where two generations are full, the older is
/// forgotten at once, so an entry costs O(1) however long a run is.
///
/// Weighs parts, messages and tools as the trait does by default, from `C`'s texts, images and
/// files.
#[derive(Debug)]
pub struct Memo<C> {
    counter: C,
    generations: Mutex<Generations>,
    entries: usize,
}

/// 128 bits of BLAKE3: a chance of 2⁻⁶⁴ that among 2³² texts any two meet.
type Key = [u8; 16];

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, Tokens>,
    old: HashMap<Key, Tokens>,
}

impl<C: TokenCounter> Memo<C> {
    /// Remembers for `counter`, [`MEMO_ENTRIES`] texts a generation.
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

    fn recall(&self, key: &Key) -> Option<Tokens> {
        let mut generations = self.lock();
        if let Some(tokens) = generations.young.get(key) {
            return Some(*tokens);
        }
        let tokens = generations.old.remove(key)?;
        generations.keep(*key, tokens, self.entries);
        Some(tokens)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        // Every state between two statements is sound, so a panic elsewhere does no harm.
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
        // Counted outside the lock: two tasks may count one text twice, none waits for another.
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
    fn keep(&mut self, key: Key, tokens: Tokens, entries: usize) {
        if self.young.len() >= entries {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, tokens);
    }
}

fn key(text: &str) -> Key {
    let hash = blake3::hash(text.as_bytes());
    let mut key = Key::default();
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

    /// Counts how often it is asked.
    #[derive(Debug, Default)]
    struct Asked(AtomicUsize);

    impl TokenCounter for Asked {
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
        let memo = Memo::new(Asked::default());
        for _ in 0..10 {
            for n in 0..100 {
                assert_eq!(memo.text(&long(n)), Tokens(long(n).len() as u64));
            }
        }
        assert_eq!(memo.counter.0.load(Ordering::Relaxed), 100);
    }

    #[test]
    fn what_it_holds_is_bounded_and_the_newest_stay() {
        let memo = Memo::with_entries(Asked::default(), 10);
        for n in 0..1_000 {
            memo.text(&long(n));
            // In use all the time, so never forgotten.
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
        let memo = Memo::new(Asked::default());
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
        let memo = Memo::with_entries(Asked::default(), 50);
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
