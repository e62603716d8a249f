//! Runs a host's input filters with a timeout and contained panics.
//!
//! The machine calls filters synchronously, so each call blocks a thread of the runtime for at most this
//! time.

use std::sync::Arc;

use plimsoll_agent::{ExecutionLimits, FilterResult, InputFilter, InputFilters};

use crate::hooks::HookSlot;
use crate::parts::Parts;

struct TimedFilter {
    filter: Arc<dyn InputFilter>,
    slot: HookSlot,
}

/// Returns the input filters, each with a timeout.
pub(crate) fn timed_filters(parts: &Parts, limits: &ExecutionLimits) -> InputFilters {
    let hook = parts.hooks.timeout();
    let timeout = limits.max_duration.map_or(hook, |limit| limit.min(hook));
    let mut timed = InputFilters::default();
    for filter in &parts.input_filters {
        let slot = HookSlot {
            timeout,
            stuck: Arc::default(),
        };
        let filter = Arc::clone(filter);
        timed.push(Arc::new(TimedFilter { filter, slot }));
    }
    timed
}

impl InputFilter for TimedFilter {
    fn filter(&self, text: &str) -> FilterResult {
        let (filter, text) = (Arc::clone(&self.filter), text.to_owned());
        let decided = self.slot.call(move || filter.filter(&text));
        decided.unwrap_or_else(|fault| {
            FilterResult::Reject(format!("an input filter {}", fault.what()))
        })
    }
}
