//! [`PrefixCache`]: what OpenAI's prompt cache would have held of a request. It keeps the beginning
//! of every request by itself. Not a model of any provider's eviction, and not Anthropic's; that is
//! `marked.rs`.

use std::collections::VecDeque;

use plimsoll_context::Tokens;

use crate::pieces::{Piece, Print};

/// A shorter beginning is not cached.
pub const LEAST_CACHED: Tokens = Tokens(1_024);
/// What is cached beyond that comes in steps of so many tokens.
pub const CACHE_STEP: u64 = 128;
/// Requests whose beginnings are held, at most; of more, the newest.
pub const MAX_CACHED_REQUESTS: usize = 64;

/// The beginnings of earlier requests.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache(VecDeque<Vec<Print>>);

impl PrefixCache {
    /// What of a request is in the cache; the request is from now on.
    pub(crate) fn read(&mut self, request: &[Piece]) -> Tokens {
        let chunks = || request.iter().flat_map(|piece| &piece.chunks);
        let same = |earlier: &Vec<Print>| {
            let pairs = earlier.iter().zip(chunks());
            pairs.take_while(|(old, (new, _))| *old == new).count()
        };
        let longest = self.0.iter().map(same).max().unwrap_or_default();
        let held: Tokens = chunks().take(longest).map(|(_, tokens)| *tokens).sum();
        if self.0.len() == MAX_CACHED_REQUESTS {
            self.0.pop_front();
        }
        self.0
            .push_back(chunks().map(|(print, _)| *print).collect());
        match held >= LEAST_CACHED {
            true => Tokens(held.0 / CACHE_STEP * CACHE_STEP),
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
        let mut cache = PrefixCache::default();
        let all = ["a", "b", "c", "d"].map(piece);
        assert_eq!(cache.read(&all[..2]), Tokens(0));
        assert_eq!(cache.read(&all), Tokens(1_152), "1,200 in steps of 128");
        assert_eq!(
            cache.read(&[piece("a"), piece("x")]),
            Tokens(0),
            "too short"
        );
        assert_eq!(
            cache.read(&[&all[..3], &[piece("y")]].concat()),
            Tokens(1_792)
        );
    }

    #[test]
    fn a_piece_that_was_changed_at_its_end_is_held_up_to_there() {
        let text = |end: &str| format!("{}{end}", "word ".repeat(4_000));
        let mut cache = PrefixCache::default();
        cache.read(&[Piece::new(&text("a"), Tokens(4_000))]);
        let held = cache.read(&[Piece::new(&text("b"), Tokens(4_000))]);
        assert!((3_800..4_000).contains(&held.0), "{held}");
        assert_eq!(held.0 % CACHE_STEP, 0);
    }
}
