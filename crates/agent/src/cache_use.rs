//! The expectations about the next request: its size in the provider's tokens, the use of the prompt
//! cache, and the reason if the cache is missed.

use plimsoll_context::{
    CachePlan, CacheRules, CacheView, Tokens, USUAL_MINIMUM, ViewLimits, breakpoints,
};

use crate::request::Expects;
use crate::setup::Setup;
use crate::state::State;

impl Expects {
    /// Returns the expectations about a request of this size. Its input is estimated from the last
    /// report, and new messages count by our counter.
    pub(crate) fn of(state: &State, line: &ViewLimits, counted: Tokens) -> Self {
        let heard = state.facts.heard;
        let grown = heard.filter(|(then, _)| counted > *then);
        Self {
            window: line.window,
            room: None,
            input: grown.map(|(then, reported)| reported + counted.minus(then)),
            previous: heard.map(|(_, reported)| reported),
        }
    }
}

/// Returns the cache instructions of the next request.
pub(crate) fn cache_plan(setup: &Setup, state: &State, tools: Tokens) -> CachePlan {
    if !setup.cache.is_on() {
        return CachePlan::default();
    }
    let view = CacheView {
        tools,
        system: setup.system_tokens(),
        items: state.transcript.items(),
        trail: state.facts.trail,
    };
    let rules = CacheRules {
        minimum: state.facts.calibration.counted(least_cached(setup)),
        ..CacheRules::default()
    };
    CachePlan {
        retention: setup.retention,
        ..breakpoints(&view, &setup.cache, &rules)
    }
}

/// Returns the size of the smallest prefix that the provider caches.
pub(crate) fn least_cached(setup: &Setup) -> Tokens {
    let known = setup.sheet.and_then(|sheet| sheet.min_cacheable);
    known.unwrap_or(USUAL_MINIMUM)
}
