//! Time: the machine has no clock; it is told how long a run has taken, and says when it wants to be
//! told again. A model call or a tool that hangs is cut off here.

use std::time::Duration;

use crate::limits::AtLimit;
use crate::notice;
use crate::outcome::EndReason;
use crate::run::{Phase, Run};
use crate::step::Step;

impl Run {
    /// Says how long the run has taken. It is a fact of the moment, told anew before each input; time
    /// that goes backwards stands still.
    pub fn set_elapsed(&mut self, elapsed: Duration) {
        self.elapsed = self.elapsed.max(elapsed);
    }

    /// When, counted from the start of the run, [`Input::Tick`](crate::Input::Tick) is wanted.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        // A plan between two runs has no clock.
        if !self.is_running() || self.compacting.is_some() {
            return None;
        }
        let (last_answer, end) = self.tracker().deadlines()?;
        // Once it has passed while the host is asked, there is nothing to be done before it answers.
        let cuts = self.elapsed < last_answer || self.is_cuttable();
        Some(match self.may_finalize() && cuts {
            true => last_answer,
            false => end,
        })
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self) {
        let Some((last_answer, end)) = self.tracker().deadlines() else {
            return;
        };
        if !self.is_running() || self.compacting.is_some() {
            return;
        }
        let reason = EndReason::MaxDuration {
            limit_ms: self.limit_ms(),
        };
        if self.elapsed >= end {
            self.queue.push_back(Step::Abort);
            return self.finish(reason);
        }
        if self.elapsed < last_answer || !self.may_finalize() {
            return;
        }
        // Else the host is asked; the last answer follows what it says.
        if self.is_cuttable() {
            self.queue.push_back(Step::Abort);
            self.book_unanswered();
            self.drop_digest();
            self.summary_failed = true;
            self.close_calls(notice::OUT_OF_TIME);
            self.say_pins();
            self.ask_to_finish(reason);
            self.phase = Phase::Ready;
        }
    }

    /// Whether something is under way that can be cut off for the last answer.
    fn is_cuttable(&self) -> bool {
        match self.phase {
            Phase::Calling(_)
            | Phase::Working(_)
            | Phase::Summarizing
            | Phase::Measuring { .. } => true,
            Phase::Idle | Phase::Ready | Phase::Leaving(_) | Phase::Deciding(_) => false,
        }
    }

    fn may_finalize(&self) -> bool {
        self.finalizing.is_none() && self.setup.limits.at_limit == AtLimit::Finalize
    }

    fn limit_ms(&self) -> u64 {
        let limit = self.setup.limits.max_duration.unwrap_or_default();
        u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
    }
}
