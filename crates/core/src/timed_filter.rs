//! [`TimedFilter`]: an input filter of the host with a timeout.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use plimsoll_agent::{ExecutionLimits, FilterResult, InputFilter, InputFilters};
use tokio::runtime::Handle;

use crate::parts::Parts;

/// Runs a filter on its own thread, and rejects the input if it has not decided in time.
struct TimedFilter {
    filter: Arc<dyn InputFilter>,
    timeout: Duration,
}

/// Returns the host's filters for a run with these limits. Each has to decide within the timeout of hooks
/// and the time of the run.
pub(crate) fn timed_filters(parts: &Parts, limits: &ExecutionLimits) -> InputFilters {
    let hook = parts.hooks.timeout();
    let timeout = limits.max_duration.map_or(hook, |limit| limit.min(hook));
    let mut timed = InputFilters::default();
    for filter in &parts.input_filters {
        let filter = Arc::clone(filter);
        timed.push(Arc::new(TimedFilter { filter, timeout }));
    }
    timed
}

impl InputFilter for TimedFilter {
    fn filter(&self, text: &str) -> FilterResult {
        let (decided, decision) = mpsc::channel();
        let (filter, text) = (Arc::clone(&self.filter), text.to_owned());
        let runtime = Handle::try_current();
        let work = move || {
            let _entered = runtime.as_ref().map(Handle::enter);
            // After the timeout nobody receives this.
            let _ = decided.send(filter.filter(&text));
        };
        let thread = thread::Builder::new().name("plimsoll-filter".to_owned());
        if let Err(error) = thread.spawn(work) {
            return FilterResult::Reject(format!("an input filter could not run: {error}"));
        }
        match decision.recv_timeout(self.timeout) {
            Ok(result) => result,
            Err(mpsc::RecvTimeoutError::Timeout) => FilterResult::Reject(format!(
                "an input filter did not decide within {} s",
                self.timeout.as_secs_f32()
            )),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                FilterResult::Reject("an input filter broke down".to_owned())
            }
        }
    }
}
