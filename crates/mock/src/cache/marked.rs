//! [`MarkedCache`]: simulates Anthropic's prompt cache. It keeps prefixes up to breakpoints, in the
//! order tools, system, messages, so a change invalidates everything after it. OpenAI's cache is in
//! `prefix.rs`.

use std::time::Duration;

use plimsoll_context::{LOOK_BACK, Tokens};
use tokio::time::Instant;

use super::CachedTokens;
use crate::bounded::BoundedMap;
use crate::pieces::{Mark, Print, RequestPiece, print};

/// The maximum number of cached prefixes; the oldest are dropped.
pub const MAX_CACHED_PREFIXES: usize = 4_096;

/// The cached prefixes, by the fingerprint of their content.
#[derive(Debug, Default)]
pub(crate) struct MarkedCache(BoundedMap<Print, CachedMark, MAX_CACHED_PREFIXES>);

#[derive(Debug, Clone, Copy)]
struct CachedMark {
    mark: Mark,
    until: Instant,
}

impl MarkedCache {
    /// Returns the tokens of a request that are read from the cache and written to it. A prefix of
    /// less than `minimum` tokens is silently not cached.
    pub(crate) fn read(
        &mut self,
        request: &[RequestPiece],
        minimum: Tokens,
        now: Instant,
    ) -> CachedTokens {
        let mut ends = Vec::with_capacity(request.len());
        let mut end = (Print::default(), Tokens::ZERO);
        for piece in request {
            end = (print(&[&end.0, &piece.print]), end.1 + piece.tokens);
            ends.push(end);
        }
        let marks = || {
            let marks = request.iter().zip(&ends).enumerate();
            marks.filter_map(|(at, (piece, end))| Some((at, piece.mark?, *end)))
        };
        let read = marks()
            .filter_map(|(at, ..)| self.found(&ends, at, now))
            .max();
        let read = read.unwrap_or_default();
        let (mut long, mut all) = (read, read);
        for (_, mark, (print, tokens)) in marks() {
            if tokens < minimum {
                continue;
            }
            let until = now + mark.life();
            self.0.insert(print, CachedMark { mark, until });
            all = all.max(tokens);
            if mark == Mark::Hour {
                long = long.max(tokens);
            }
        }
        CachedTokens {
            read,
            hour: long.minus(read),
            five_minutes: all.minus(long),
        }
    }

    /// Returns the size of the cached prefix that ends at a breakpoint or at one of the blocks
    /// before it.
    fn found(&mut self, ends: &[(Print, Tokens)], at: usize, now: Instant) -> Option<Tokens> {
        let first = at.saturating_sub(LOOK_BACK);
        let near = ends.get(first..=at).unwrap_or_default();
        near.iter().rev().find_map(|(print, tokens)| {
            let kept = self.0.get_mut(print).filter(|kept| kept.until > now)?;
            // Reading an entry extends its lifetime.
            kept.until = now + kept.mark.life();
            Some(*tokens)
        })
    }
}

impl Mark {
    fn life(self) -> Duration {
        match self {
            Self::FiveMinutes => Duration::from_secs(5 * 60),
            Self::Hour => Duration::from_secs(60 * 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Tokens = Tokens(1_024);

    fn piece(text: &str, mark: Option<Mark>) -> RequestPiece {
        RequestPiece::new(text, Tokens(600)).marked(mark)
    }

    fn cached(read: u64, five_minutes: u64, hour: u64) -> CachedTokens {
        CachedTokens {
            read: Tokens(read),
            five_minutes: Tokens(five_minutes),
            hour: Tokens(hour),
        }
    }

    #[test]
    fn only_what_is_marked_is_kept_and_only_if_it_is_long_enough() {
        let mut cache = MarkedCache::default();
        let now = Instant::now();
        let short = Some(Mark::FiveMinutes);
        let plain = [piece("a", None), piece("b", None), piece("c", None)];
        for _ in 0..2 {
            assert_eq!(cache.read(&plain, LEAST, now), cached(0, 0, 0));
        }
        let early = [piece("a", short), piece("b", None)];
        for _ in 0..2 {
            assert_eq!(cache.read(&early, LEAST, now), cached(0, 0, 0));
        }
        let marked = [piece("a", None), piece("b", short), piece("c", None)];
        assert_eq!(cache.read(&marked, LEAST, now), cached(0, 1_200, 0));
        assert_eq!(cache.read(&marked, LEAST, now), cached(1_200, 0, 0));
        let grown = [piece("a", None), piece("b", None), piece("c", short)];
        assert_eq!(cache.read(&grown, LEAST, now), cached(1_200, 600, 0));
        let other = [piece("x", None), piece("b", None), piece("c", short)];
        assert_eq!(cache.read(&other, LEAST, now), cached(0, 1_800, 0));
    }

    #[test]
    fn it_looks_back_so_many_blocks_and_no_further() {
        for (blocks, read) in [(LOOK_BACK, 1_200), (LOOK_BACK + 1, 0)] {
            let mut cache = MarkedCache::default();
            let now = Instant::now();
            let mark = Some(Mark::FiveMinutes);
            let mut request = vec![piece("a", None), piece("b", mark)];
            cache.read(&request, LEAST, now);
            request[1].mark = None;
            request.extend((0..blocks).map(|at| piece(&at.to_string(), None)));
            request.last_mut().unwrap().mark = mark;
            assert_eq!(
                cache.read(&request, LEAST, now).read,
                Tokens(read),
                "{blocks}"
            );
        }
    }

    #[test]
    fn each_life_is_counted_by_itself_and_ends() {
        let mut cache = MarkedCache::default();
        let begin = Instant::now();
        let request = [
            piece("a", None),
            piece("b", Some(Mark::Hour)),
            piece("c", Some(Mark::FiveMinutes)),
        ];
        assert_eq!(cache.read(&request, LEAST, begin), cached(0, 600, 1_200));
        let minutes = |minutes: u64| begin + Duration::from_secs(60 * minutes);
        assert_eq!(cache.read(&request, LEAST, minutes(4)), cached(1_800, 0, 0));
        assert_eq!(cache.read(&request, LEAST, minutes(8)), cached(1_800, 0, 0));
        assert_eq!(
            cache.read(&request, LEAST, minutes(20)),
            cached(1_200, 600, 0)
        );
        assert_eq!(
            cache.read(&request, LEAST, minutes(200)),
            cached(0, 600, 1_200)
        );
    }
}
