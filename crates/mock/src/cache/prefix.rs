//! [`PrefixCache`]: simulates OpenAI's prompt cache, which keeps the beginning of every request
//! automatically. It does not model any provider's eviction. Anthropic's cache is in `marked.rs`.

use std::collections::VecDeque;

use plimsoll_context::Tokens;

use crate::pieces::{Print, RequestPiece};

/// The minimum size of a cached prefix.
pub const LEAST_CACHED: Tokens = Tokens(1_024);
/// Cached prefixes are rounded down to a multiple of this many tokens.
pub const CACHE_STEP: u64 = 128;
/// The maximum number of requests with cached prefixes; the oldest are dropped.
pub const MAX_CACHED_REQUESTS: usize = 64;

/// The prefixes of earlier requests.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache(VecDeque<Vec<Print>>);

impl PrefixCache {
    /// Returns the number of cached tokens of a request, and adds the request to the cache.
    pub(crate) fn read(&mut self, request: &[RequestPiece]) -> Tokens {
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
        if held >= LEAST_CACHED {
            Tokens(held.0 / CACHE_STEP * CACHE_STEP)
        } else {
            Tokens::ZERO
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_that_was_sent_before_is_read() {
        let piece = |text: &str| RequestPiece::new(text, Tokens(600));
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
        cache.read(&[RequestPiece::new(&text("a"), Tokens(4_000))]);
        let held = cache.read(&[RequestPiece::new(&text("b"), Tokens(4_000))]);
        assert!((3_800..4_000).contains(&held.0), "{held}");
        assert_eq!(held.0 % CACHE_STEP, 0);
    }
}
