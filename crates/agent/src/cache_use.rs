//! The use of the provider's prompt cache by the next request.

use plimsoll_context::{
    CachePlan, CacheRules, CacheView, Ppm, Tokens, USUAL_MINIMUM, Usage, breakpoints,
};

use crate::event::Event;
use crate::run::Run;

/// The share of the expected tokens below which a call missed the cache. Providers cache in steps of about
/// a hundred tokens, so a slightly shorter read is no miss.
const CLEARLY_SHORT: Ppm = Ppm(800_000);

impl Run {
    /// Returns the cache instructions of the next request.
    pub(crate) fn cache_plan(&self) -> CachePlan {
        let setup = &self.setup;
        if !setup.cache.is_on() {
            return CachePlan::default();
        }
        let view = CacheView {
            tools: self.tools.tokens,
            system: self.tools.system,
            items: self.state.transcript.items(),
            sent: self.state.facts.sent,
        };
        let rules = CacheRules {
            minimum: self.calibration().counted(self.least_cached()),
            ..CacheRules::default()
        };
        CachePlan {
            retention: setup.retention,
            ..breakpoints(&view, &setup.cache, &rules)
        }
    }

    /// Returns the size of the smallest prefix that the provider caches.
    fn least_cached(&self) -> Tokens {
        let known = self.setup.sheet.and_then(|sheet| sheet.min_cacheable);
        known.unwrap_or(USUAL_MINIMUM)
    }

    /// Returns how many tokens the next call can read from the cache, as far as it is known.
    pub(crate) fn readable(&self) -> Tokens {
        if self.is_cold() {
            Tokens::ZERO
        } else {
            self.state.facts.cached
        }
    }

    /// Returns the event of a call that read clearly less from the cache than the call before it in the same
    /// run read and wrote there.
    pub(crate) fn cache_miss(&self, usage: &Usage) -> Option<Event> {
        let (expected, read) = (self.readable(), usage.cache_read);
        let is_expected = self.tracker().turns > 0 && expected >= self.least_cached();
        let is_miss = is_expected && read < expected.share(CLEARLY_SHORT);
        is_miss.then_some(Event::CacheMissed { expected, read })
    }
}
