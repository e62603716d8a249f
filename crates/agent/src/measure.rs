//! Asks the provider to count the tokens of a request if the plan would otherwise rely on our own count
//! alone: before the counter is calibrated, and near the limit.
//!
//! The calibration itself is in the `context` crate. It treats the answer like reported usage.

use plimsoll_context::{Budget, Calibration, Ppm, Tokens};

use crate::entry::Entry;
use crate::phase::Phase;
use crate::run::Run;
use crate::setup::Measure;
use crate::step::Step;

/// The share of the trigger above which the provider is asked for the size.
///
/// For the usual content of agents, few tokenizers produce twice as many tokens as our counters. A
/// request below half of the trigger is therefore hardly ever too large. If one is, the refusal
/// provides the same information.
pub const MEASURE_FROM: Ppm = Ppm(500_000);

impl Run {
    /// Asks for the token count of the request if it may change the plan, at most once per setup.
    /// Returns `true` if the plan has to wait for the answer.
    pub(crate) fn measures(&mut self, budget: &Budget) -> bool {
        let counted = self.tokens();
        let knows = self.state.facts.calibration != Calibration::default();
        let wanted =
            self.setup.measure == Measure::NearTheLine && !self.server.was_measured && !knows;
        if !wanted || budget.trigger == Tokens::MAX {
            return false;
        }
        if counted < (budget.trigger + self.tools.overhead).share(MEASURE_FROM) {
            return false;
        }
        self.server.was_measured = true;
        let request = self.as_request(counted);
        self.queue.push_back(Step::Measure(Box::new(request)));
        self.phase = Phase::Measuring { counted };
        true
    }

    /// Handles the provider's token count.
    pub(crate) fn measured(&mut self, reported: Option<Tokens>) {
        let Phase::Measuring { counted } = self.phase else {
            return;
        };
        if let Some(reported) = reported.filter(|reported| *reported > Tokens::ZERO) {
            self.record(Entry::Measured { counted, reported });
        }
        self.phase = Phase::Preparing;
    }
}
