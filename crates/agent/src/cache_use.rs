//! The use of the provider's prompt cache by the next request.

use plimsoll_context::{CachePlan, CacheRules, CacheView, Tokens, USUAL_MINIMUM, breakpoints};

use crate::run::Run;

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
            trail: self.state.facts.trail,
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
    pub(crate) fn least_cached(&self) -> Tokens {
        let known = self.setup.sheet.and_then(|sheet| sheet.min_cacheable);
        known.unwrap_or(USUAL_MINIMUM)
    }
}
