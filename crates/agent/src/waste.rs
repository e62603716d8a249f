//! Accounts for model calls that have no reply: failed attempts and aborted calls.
//!
//! Providers report their usage while the answer arrives, and charge for it. The driver decides whether
//! a call is repeated.

use plimsoll_context::Usage;

use crate::entry::Entry;
use crate::phase::Phase;
use crate::run::Run;
use crate::step::Step;

impl Run {
    /// Handles a failed attempt before the next one is made. Ends the run if the failed attempt used up
    /// a limit.
    pub(crate) fn retried(&mut self) {
        if let Some(used) = self.now.summary_usage.take() {
            self.summaries.lost(used);
        }
        if !matches!(self.phase, Phase::Calling(_)) || !self.book_unanswered() {
            return;
        }
        if let Some(reason) = self.tracker().spent(self.now.elapsed) {
            self.queue.push_back(Step::Abort);
            let reason = self.current.finalizing.take().unwrap_or(reason);
            self.finish(reason);
        }
    }

    /// Records the usage of the run's call without a reply. Returns `true` if there was any.
    pub(crate) fn book_unanswered(&mut self) -> bool {
        let used = self.now.call_usage.take();
        self.is_running() && used.is_some_and(|used| self.waste(used))
    }

    /// Records the usage of a discarded answer.
    pub(crate) fn waste(&mut self, usage: Usage) -> bool {
        let sheet = self.setup.sheet.as_ref();
        let cost = sheet.and_then(|sheet| self.cost(usage, sheet));
        self.record(Entry::Wasted { usage, cost })
    }
}
