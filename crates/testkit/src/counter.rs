//! A token counter that records how many bytes it had to read.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_context::{Chars4, TokenCounter, Tokens};

/// Counts as [`Chars4`] does, and adds up the bytes of the texts.
#[derive(Debug, Default)]
pub struct ByteCounter(AtomicU64);

impl TokenCounter for ByteCounter {
    fn name(&self) -> &str {
        "bytes"
    }

    fn text(&self, text: &str) -> Tokens {
        self.0.fetch_add(text.len() as u64, Ordering::Relaxed);
        Chars4.text(text)
    }
}

impl ByteCounter {
    /// Returns the bytes that were counted during `work`.
    pub fn during(&self, work: impl FnOnce()) -> u64 {
        let before = self.0.load(Ordering::Relaxed);
        work();
        self.0.load(Ordering::Relaxed) - before
    }
}
