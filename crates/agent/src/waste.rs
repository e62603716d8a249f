//! Accounts for model calls that have no reply: failed attempts and aborted calls.
//!
//! Providers report their usage while the answer arrives, and charge for it. The driver decides whether
//! a call is repeated.

use plimsoll_context::Usage;

use crate::entry::Entry;
use crate::run::{Phase, Run};
use crate::step::Step;

/// The usage so far of model calls without a reply.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UnansweredUsage {
    /// The usage of the run's own call.
    call: Option<Usage>,
    /// The usage of a call for a summary.
    pub(crate) summary: Option<Usage>,
}

impl Run {
    /// Sets the usage so far of the run's own call and of a call for a summary.
    ///
    /// The values are valid for one input, so they are set again before each of them. They are counted
    /// if that input ends an attempt.
    pub fn set_unanswered(&mut self, call: Option<Usage>, summary: Option<Usage>) {
        self.unanswered = UnansweredUsage { call, summary };
    }

    /// Handles a failed attempt before the next one is made. Ends the run if the failed attempt used up
    /// a limit.
    pub(crate) fn retried(&mut self) {
        if let (Some(digest), Some(used)) = (&mut self.digest, self.unanswered.summary.take()) {
            digest.usage = digest.usage.combine(used);
        }
        if !matches!(self.phase, Phase::Calling(_)) || !self.book_unanswered() {
            return;
        }
        if let Some(reason) = self.tracker().spent(self.elapsed) {
            self.queue.push_back(Step::Abort);
            let reason = self.finalizing.take().unwrap_or(reason);
            self.finish(reason);
        }
    }

    /// Records the usage of the run's call without a reply. Returns `true` if there was any.
    pub(crate) fn book_unanswered(&mut self) -> bool {
        let used = self.unanswered.call.take();
        self.is_running() && used.is_some_and(|used| self.waste(used))
    }

    /// Records the usage of a discarded answer.
    pub(crate) fn waste(&mut self, usage: Usage) -> bool {
        let sheet = self.setup.sheet.as_ref();
        let cost = sheet.and_then(|sheet| self.cost(usage, sheet));
        self.record(Entry::Wasted { usage, cost })
    }
}
