//! Applies plans: the affected messages are archived first if recall is enabled, and the host may
//! reject a plan.
//!
//! Plans are made by the policy.

use std::collections::HashMap;

use plimsoll_context::{Form, Plan, Recall, Tokens};

use crate::applied_plan::AppliedPlan;
use crate::compact::RequestedCompaction;
use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::outcome::EndReason;
use crate::phase::Phase;
use crate::run::Run;
use crate::setup::Leave;
use crate::step::{LeavingItem, PendingPlan, Step, Verdict};

/// The step after a plan is applied.
#[derive(Debug)]
pub(crate) enum Next {
    /// The request that the plan was made for.
    Request,
    /// A smaller version of the refused request.
    Retry(RefusedRequest),
    /// The end of a compaction that the user asked for between two runs.
    Compaction(RequestedCompaction),
}

/// A request that was refused as too long.
#[derive(Debug)]
pub(crate) struct RefusedRequest {
    pub(crate) failure: Failure,
    /// The step of the recovery ladder.
    pub(crate) rung: u32,
    /// The request's size by our counter.
    pub(crate) counted: Tokens,
    /// Maximum size of the next request, if known.
    pub(crate) most: Option<Tokens>,
}

impl Run {
    /// Applies a plan and continues. If the host must approve plans, it is asked first.
    pub(crate) fn leave(&mut self, plan: Plan, next: Next) {
        let leaving = self.leaving(plan);
        match self.setup.leave {
            Leave::Freely => self.apply_and_go_on(leaving, next),
            Leave::Asked => {
                self.queue
                    .push_back(Step::BeforePlan(Box::new(leaving.clone())));
                self.phase = Phase::Leaving(Box::new((leaving, next)));
            }
        }
    }

    /// Handles the host's answer.
    pub(crate) fn left(&mut self, verdict: Verdict) {
        let (leaving, next) = match std::mem::replace(&mut self.phase, Phase::Preparing) {
            Phase::Leaving(waiting) => *waiting,
            other => {
                self.phase = other;
                return;
            }
        };
        match verdict {
            Verdict::Go => self.apply_and_go_on(leaving, next),
            Verdict::NotKept { why } => {
                self.not_kept(&why);
                match (leaving.plan.recall, next) {
                    (Recall::None, next) => self.apply_and_go_on(leaving, next),
                    // The plan is made again, without markers that promise recall.
                    (Recall::Offered, Next::Request) => {}
                    (Recall::Offered, Next::Compaction(compacting)) => {
                        self.phase = Phase::Compacting(compacting);
                    }
                    (Recall::Offered, Next::Retry(refused)) => self.go_down(refused),
                }
            }
            Verdict::Veto { why } => {
                self.warn(format!("a plan was not applied: {why}"));
                match next {
                    Next::Request => self.attempt.vetoed = true,
                    Next::Compaction(_) => self.end_compaction(),
                    Next::Retry(RefusedRequest { failure, .. }) => {
                        self.finish(EndReason::Failed { failure });
                    }
                }
            }
        }
    }

    /// Disables recall for the rest of this run, with one warning.
    fn not_kept(&mut self, why: &str) {
        self.current.recall = Recall::None;
        if !std::mem::replace(&mut self.current.archive_failed, true) {
            self.warn(format!(
                "what leaves the view cannot be archived, so it is not offered for recall from now on; the log has it all the same: {why}"
            ));
        }
    }

    fn apply_and_go_on(&mut self, leaving: PendingPlan, next: Next) {
        self.phase = Phase::Preparing;
        let Some(applied) = self.apply(leaving) else {
            return match next {
                Next::Request => {
                    let cannot_fit = plimsoll_context::CannotFit {
                        minimum: self.tokens(),
                        overhead: self.tools.overhead,
                        limit: self.tokens(),
                    };
                    self.cannot_fit(cannot_fit);
                }
                Next::Retry(RefusedRequest { failure, .. }) => {
                    self.finish(EndReason::Failed { failure })
                }
                Next::Compaction(_) => self.end_compaction(),
            };
        };
        match next {
            Next::Request => {}
            Next::Retry(refused) => self.call(refused.rung, None),
            Next::Compaction(_) => {
                self.compaction = Some(applied);
                self.end_compaction();
            }
        }
    }

    /// Records and applies a plan. Returns `None` if the plan does not match the view, which would be a
    /// bug.
    fn apply(&mut self, leaving: PendingPlan) -> Option<AppliedPlan> {
        let plan = leaving.plan.clone();
        let had_planned = self.tools.has_joined;
        if !self.record(Entry::Planned { plan: plan.clone() }) {
            return None;
        }
        if !had_planned {
            self.declare();
        }
        self.summaries.planned();
        let applied = AppliedPlan {
            is_compaction: plan.is_compaction(),
            plan,
            messages_before: leaving.messages,
            messages_after: self.state.transcript.items().len(),
            tokens_before: leaving.tokens,
            tokens_after: self.tokens(),
        };
        self.notify(Event::PlanApplied(applied.clone()));
        if self.setup.leave == Leave::Asked {
            self.queue.push_back(Step::AfterPlan(Box::new(leaving)));
        }
        Some(applied)
    }

    fn leaving(&self, plan: Plan) -> PendingPlan {
        let view = &self.state.transcript;
        let mut tools = HashMap::new();
        let touched = view.touched(&plan);
        // A call precedes its result, so one pass up to the last result finds all calls.
        let last = touched.last().map(|(item, _)| item.seq);
        let mut items = Vec::with_capacity(touched.len());
        let mut touched = touched.into_iter().peekable();
        for item in view.items() {
            for call in item.message.calls() {
                tools.insert(call.id.clone(), call.name.clone());
            }
            if let Some((_, leaves)) = touched.next_if(|(of, _)| of.seq == item.seq) {
                let tool = match item.message.as_ref() {
                    plimsoll_context::Message::ToolResult(result) => {
                        tools.get(&result.call).cloned()
                    }
                    _ => None,
                };
                items.push(LeavingItem {
                    item: item.clone(),
                    tool,
                    leaves,
                });
            }
            if Some(item.seq) == last {
                break;
            }
        }
        PendingPlan {
            plan,
            items,
            tokens: self.tokens(),
            messages: view.items().len(),
        }
    }
}

impl PendingPlan {
    /// Returns the items in their original form, which are not in the archive yet.
    pub fn originals(&self) -> impl Iterator<Item = &LeavingItem> {
        self.items
            .iter()
            .filter(|leaving| leaving.item.form == Form::Original)
    }
}
