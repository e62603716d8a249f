//! Asking the provider what a request weighs, where a plan would otherwise rest on our own count
//! alone: before anything has calibrated the counter, and near the line. Not the calibration; that
//! is in `context`, and hears this as it hears reported usage.

use plimsoll_context::{Budget, Calibration, Ppm, Tokens};

use crate::entry::Entry;
use crate::run::{Phase, Run};
use crate::setup::Measure;
use crate::step::Step;

/// From this share of the trigger on, the provider is asked. Few tokenizers are twice as dear as the
/// counters for what agents read, so a request below half of the trigger is hardly ever too large; if
/// one is, its refusal tells as much.
pub const MEASURE_FROM: Ppm = Ppm(500_000);

impl Run {
    /// Asks what the request would weigh, where that may change the plan; at most once for a setup.
    /// True where the answer has to be waited for.
    pub(crate) fn measures(&mut self, budget: &Budget) -> bool {
        let counted = self.tokens();
        let knows = self.state.calibration != Calibration::default();
        let wanted = self.setup.measure == Measure::NearTheLine && !self.measured && !knows;
        if !wanted || budget.trigger == Tokens::MAX {
            return false;
        }
        if counted < (budget.trigger + self.overhead).share(MEASURE_FROM) {
            return false;
        }
        self.measured = true;
        let request = self.as_request(counted);
        self.queue.push_back(Step::Measure(Box::new(request)));
        self.phase = Phase::Measuring { counted };
        true
    }

    /// The provider has said what the request weighs, or has not.
    pub(crate) fn measured(&mut self, reported: Option<Tokens>) {
        let Phase::Measuring { counted } = self.phase else {
            return;
        };
        if let Some(reported) = reported.filter(|reported| *reported > Tokens::ZERO) {
            self.record(Entry::Measured { counted, reported });
        }
        self.phase = Phase::Ready;
    }
}
