//! [`PrefixCache`]: simulates OpenAI's prompt cache, which keeps the beginning of every request
//! automatically. It does not model any provider's eviction. Anthropic's cache is in `marked.rs`.

use plimsoll_context::Tokens;

use crate::bounded::BoundedMap;
use crate::pieces::{Print, RequestPiece, print};

/// The minimum size of a cached prefix.
pub const LEAST_CACHED: Tokens = Tokens(1_024);
/// Cached prefixes are rounded down to a multiple of this many tokens.
pub const CACHE_STEP: u64 = 128;
/// The maximum number of cached prefixes, one for each chunk of a request; the oldest are dropped.
pub const MAX_CACHED_CHUNKS: usize = 65_536;

/// The prefixes of earlier requests, by the fingerprint of their content.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache(BoundedMap<Print, (), MAX_CACHED_CHUNKS>);

impl PrefixCache {
    /// Returns the number of cached tokens of a request, and adds the request to the cache.
    pub(crate) fn read(&mut self, request: &[RequestPiece]) -> Tokens {
        let mut prefix = Print::default();
        let (mut held, mut is_held) = (Tokens::ZERO, true);
        for (chunk, tokens) in request.iter().flat_map(|piece| &piece.chunks) {
            prefix = print(&[&prefix, chunk]);
            is_held &= !self.0.insert(prefix, ());
            if is_held {
                held += *tokens;
            }
        }
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
