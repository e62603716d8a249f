//! What model calls have used that no reply tells of: a try that failed, a call that was cut off. A
//! provider says it while its answer arrives, and charges for it. Not whether a call is made again;
//! that is the driver's.

use plimsoll_context::Usage;

use crate::entry::Entry;
use crate::run::{Phase, Run};
use crate::step::Step;

/// What was used so far by calls whose replies have not come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unanswered {
    /// By the run's own call.
    call: Option<Usage>,
    /// By a call for a summary.
    pub(crate) summary: Option<Usage>,
}

impl Run {
    /// Says what the run's own call, and one for a summary, have used so far without a reply. It is a
    /// fact of the moment, told anew before each input: it counts where that input ends a try.
    pub fn set_unanswered(&mut self, call: Option<Usage>, summary: Option<Usage>) {
        self.unanswered = Unanswered { call, summary };
    }

    /// A try of a call has failed, and the next is about to be made: unless what it used was the last
    /// of a limit.
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

    /// Books what the run's call has used without a reply; whether it was anything.
    pub(crate) fn book_unanswered(&mut self) -> bool {
        let used = self.unanswered.call.take();
        self.is_running() && used.is_some_and(|used| self.waste(used))
    }

    /// Books what was used for nothing.
    pub(crate) fn waste(&mut self, usage: Usage) -> bool {
        let sheet = self.setup.sheet.as_ref();
        let cost = sheet.and_then(|sheet| self.cost(usage, sheet));
        self.record(Entry::Wasted { usage, cost })
    }
}
