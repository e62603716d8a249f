//! [`Cache`]: simulates the hits and writes of a provider's prompt cache. Answers are not cached.

mod marked;
mod prefix;

use plimsoll_context::Tokens;
use tokio::time::Instant;

use crate::pieces::RequestPiece;
use marked::MarkedCache;
use prefix::PrefixCache;

pub use marked::MAX_CACHED_PREFIXES;
pub use prefix::{CACHE_STEP, LEAST_CACHED, MAX_CACHED_CHUNKS};

/// How a provider caches prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Automatically, for every request.
    Prefix,
    /// Up to breakpoints, if the prefix has at least this many tokens.
    Marked { minimum: Tokens },
}

/// Both kinds of caches, because a server may be used with either.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    prefix: PrefixCache,
    marked: MarkedCache,
}

/// The tokens of a request that were read from the cache and written to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CachedTokens {
    pub(crate) read: Tokens,
    /// Tokens written for five minutes.
    pub(crate) five_minutes: Tokens,
    /// Tokens written for an hour.
    pub(crate) hour: Tokens,
}

impl Cache {
    pub(crate) fn read(&mut self, request: &[RequestPiece], caching: Caching) -> CachedTokens {
        match caching {
            Caching::Prefix => CachedTokens {
                read: self.prefix.read(request),
                ..CachedTokens::default()
            },
            Caching::Marked { minimum } => self.marked.read(request, minimum, Instant::now()),
        }
    }
}

impl CachedTokens {
    pub(crate) fn written(self) -> Tokens {
        self.five_minutes + self.hour
    }
}
