//! Time limits. The machine has no clock: the driver reports the elapsed time, and the machine returns
//! its next deadline.
//!
//! Model calls and tools that hang are aborted here.

use std::time::Duration;

use crate::limits::AtLimit;
use crate::notice;
use crate::outcome::EndReason;
use crate::phase::Phase;
use crate::run::Run;
use crate::step::Step;

impl Run {
    /// Returns the time since the start of the run at which [`Input::Tick`](crate::Input::Tick) is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        // A compaction between two runs has no time limit.
        if !self.is_running() || self.phase.is_compaction() {
            return None;
        }
        let (last_answer, end) = self.tracker().deadlines()?;
        // If the time passes while the host decides, nothing can be done before its answer.
        let cuts = self.now.elapsed < last_answer || self.phase.is_cuttable();
        Some(match self.may_finalize() && cuts {
            true => last_answer,
            false => end,
        })
    }

    /// Takes note of the time when no input has arrived, for example when a hook was cut off. Deadlines and
    /// limits then count it. The machine reacts to it at the next [`Input::Tick`](crate::Input::Tick).
    pub fn pass_time(&mut self, elapsed: Duration) {
        self.now.elapsed = self.now.elapsed.max(elapsed);
    }

    /// Handles the passing of time.
    pub(crate) fn tick(&mut self) {
        let Some((last_answer, end)) = self.tracker().deadlines() else {
            return;
        };
        if !self.is_running() || self.phase.is_compaction() {
            return;
        }
        let reason = EndReason::MaxDuration {
            limit_ms: self.limit_ms(),
        };
        if self.now.elapsed >= end {
            self.queue.push_back(Step::Abort);
            return self.finish(reason);
        }
        if self.now.elapsed < last_answer || !self.may_finalize() {
            return;
        }
        // Otherwise the host is deciding; the last answer follows its decision.
        if self.phase.is_cuttable() {
            self.queue.push_back(Step::Abort);
            self.book_unanswered();
            self.drop_digest();
            self.summaries.is_skipped = true;
            self.close_calls(notice::OUT_OF_TIME);
            self.say_pins();
            self.ask_to_finish(reason);
            self.phase = match self.phase.is_in_turn() {
                true => Phase::Preparing,
                false => Phase::TurnDue,
            };
        }
    }

    fn may_finalize(&self) -> bool {
        self.current.finalizing.is_none() && self.setup.limits.at_limit == AtLimit::Finalize
    }

    fn limit_ms(&self) -> u64 {
        let limit = self.setup.limits.max_duration.unwrap_or_default();
        u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
    }
}
