//! The expectations about the next request: its size in the provider's tokens, the use of the prompt
//! cache, and the reason if the cache is missed.

use plimsoll_context::{
    CacheBreak, CacheMiss, CachePlan, CacheRules, CacheView, Tokens, USUAL_MINIMUM, ViewLimits,
    breakpoints,
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

/// Returns the cache miss of the last call, if there was one. `not_view` is the reason that was known
/// before the call.
pub(crate) fn take_miss(
    setup: &Setup,
    state: &mut State,
    not_view: Option<&CacheBreak>,
) -> Option<CacheMiss> {
    let mut miss = state.facts.cache.take_miss()?;
    if miss.expected < least_cached(setup) {
        return None;
    }
    if let Some(known) = not_view {
        for why in &mut miss.why {
            if *why == CacheBreak::Provider {
                why.clone_from(known);
            }
        }
    }
    Some(miss)
}

fn least_cached(setup: &Setup) -> Tokens {
    let known = setup.sheet.and_then(|sheet| sheet.min_cacheable);
    known.unwrap_or(USUAL_MINIMUM)
}
