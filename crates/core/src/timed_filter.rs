//! Runs a host's input filters with a timeout and contained panics.
//!
//! The machine calls filters synchronously, so each call blocks a thread of the runtime for at most this
//! time.

use std::sync::Arc;

use plimsoll_agent::{ExecutionLimits, FilterResult, InputFilters};
use tokio::sync::Semaphore;

use crate::hooks::{HookSlot, MAX_HOOK_CALLS};
use crate::parts::Parts;

/// Returns the input filters, each with a timeout.
pub(crate) fn timed_filters(parts: &Parts, limits: &ExecutionLimits) -> InputFilters {
    let hook = parts.hooks.timeout();
    let timeout = limits.max_duration.map_or(hook, |limit| limit.min(hook));
    let mut timed = InputFilters::default();
    for filter in &parts.input_filters {
        let slot = HookSlot {
            timeout,
            threads: Arc::new(Semaphore::new(MAX_HOOK_CALLS)),
        };
        let filter = Arc::clone(filter);
        timed.push(Arc::new(move |text: &str| {
            let (filter, text) = (Arc::clone(&filter), text.to_owned());
            let decided = slot.call(move || filter.filter(&text));
            let broken = |fault| FilterResult::Reject(format!("an input filter {fault}"));
            decided.unwrap_or_else(broken)
        }));
    }
    timed
}
