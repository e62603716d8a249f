//! [`Cache`]: what a provider's prompt cache would have held of a request, in the way of its wire.
//! Not a cache of answers; nothing is saved by it.

mod marked;
mod prefix;

use plimsoll_context::Tokens;
use tokio::time::Instant;

use crate::pieces::Piece;
use marked::MarkedCache;
use prefix::PrefixCache;

pub use marked::MAX_CACHED_PREFIXES;
pub use prefix::{CACHE_STEP, LEAST_CACHED, MAX_CACHED_REQUESTS};

/// How a provider caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Every request, by itself.
    Prefix,
    /// Up to breakpoints, from so many tokens on.
    Marked { minimum: Tokens },
}

/// Both, because a server may be asked in either way.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    prefix: PrefixCache,
    marked: MarkedCache,
}

/// What of a request was cached, and what is from now on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cached {
    pub(crate) read: Tokens,
    /// Written, for five minutes.
    pub(crate) five_minutes: Tokens,
    /// Written, for an hour.
    pub(crate) hour: Tokens,
}

impl Cache {
    pub(crate) fn read(&mut self, request: &[Piece], caching: Caching) -> Cached {
        match caching {
            Caching::Prefix => Cached {
                read: self.prefix.read(request),
                ..Cached::default()
            },
            Caching::Marked { minimum } => self.marked.read(request, minimum, Instant::now()),
        }
    }
}

impl Cached {
    pub(crate) fn written(self) -> Tokens {
        self.five_minutes + self.hour
    }
}
