//! [`PromptCache`]: what a provider's prompt cache would have held of a request. It compares what
//! stands at the beginning of requests, piece by piece. Not a model of any provider's eviction.

use std::collections::VecDeque;

use plimsoll_context::{Fingerprint, Message, Tokens};

/// A shorter beginning is not cached.
pub const LEAST_CACHED: Tokens = Tokens(1_024);
/// Requests whose beginnings are held, at most; of more, the newest.
pub const MAX_CACHED_REQUESTS: usize = 64;

/// The beginnings of earlier requests.
#[derive(Debug, Default)]
pub(crate) struct PromptCache(VecDeque<Vec<Fingerprint>>);

/// One piece of a request, and what it weighs.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    text: Fingerprint,
    tokens: Tokens,
}

impl Piece {
    pub(crate) fn tokens(&self) -> Tokens {
        self.tokens
    }

    pub(crate) fn new(text: &str, tokens: Tokens) -> Self {
        Self {
            text: Fingerprint::of([&Message::user(text)]),
            tokens,
        }
    }
}

impl PromptCache {
    /// What of a request is in the cache; the request is from now on.
    pub(crate) fn read(&mut self, request: &[Piece]) -> Tokens {
        let same = |earlier: &Vec<Fingerprint>| {
            let pairs = earlier.iter().zip(request);
            pairs.take_while(|(old, new)| **old == new.text).count()
        };
        let longest = self.0.iter().map(same).max().unwrap_or_default();
        let held: Tokens = request.iter().take(longest).map(|piece| piece.tokens).sum();
        if self.0.len() == MAX_CACHED_REQUESTS {
            self.0.pop_front();
        }
        self.0
            .push_back(request.iter().map(|piece| piece.text).collect());
        match held >= LEAST_CACHED {
            true => held,
            false => Tokens::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_that_was_sent_before_is_read() {
        let piece = |text: &str| Piece::new(text, Tokens(600));
        let mut cache = PromptCache::default();
        let all = ["a", "b", "c", "d"].map(piece);
        assert_eq!(cache.read(&all[..2]), Tokens(0));
        assert_eq!(cache.read(&all), Tokens(1_200));
        assert_eq!(
            cache.read(&[piece("a"), piece("x")]),
            Tokens(0),
            "too short"
        );
        assert_eq!(
            cache.read(&[&all[..3], &[piece("y")]].concat()),
            Tokens(1_800)
        );
    }
}
