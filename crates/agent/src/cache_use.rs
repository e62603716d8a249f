//! The use of the provider's prompt cache by the next request.

use plimsoll_context::{CachePlan, CacheRules, CacheView, USUAL_MINIMUM, breakpoints};

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
            sent: self.state.facts.sent,
        };
        let known = setup.sheet.and_then(|sheet| sheet.min_cacheable);
        let rules = CacheRules {
            minimum: self.calibration().counted(known.unwrap_or(USUAL_MINIMUM)),
            ..CacheRules::default()
        };
        CachePlan {
            retention: setup.retention,
            ..breakpoints(&view, &setup.cache, &rules)
        }
    }
}
