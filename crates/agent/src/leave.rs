//! How a plan is applied: what it takes out of the view is kept first, where somebody keeps it,
//! and the host may say no. Not the making of the plan; that is a policy's.

use std::collections::HashMap;

use plimsoll_context::{Form, Plan, Recall, Tokens};

use crate::entry::Entry;
use crate::event::Event;
use crate::failure::Failure;
use crate::outcome::EndReason;
use crate::run::{Phase, Run};
use crate::setup::Leave;
use crate::step::{Leaving, LeavingItem, Step, Verdict};

/// What follows once a plan is applied.
#[derive(Debug)]
pub(crate) enum Next {
    /// The request that it was made for.
    Request,
    /// The request that was refused, smaller.
    Retry(Refused),
    /// Nothing: it was asked for between two runs.
    Nothing,
}

/// A request that was refused as too long.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    /// The rung of the ladder that answers it.
    pub(crate) rung: u32,
    /// Its weight by our counter.
    pub(crate) counted: Tokens,
    /// What the next one may weigh at most, where that is known.
    pub(crate) most: Option<Tokens>,
}

impl Run {
    /// Applies a plan, at once or after the host was asked, and goes on.
    pub(crate) fn leave(&mut self, plan: Plan, next: Next) {
        let leaving = self.leaving(plan);
        match self.setup.leave {
            Leave::Freely => self.apply_and_go_on(leaving, next),
            Leave::Asked => {
                self.queue.push_back(Step::Leave(Box::new(leaving.clone())));
                self.phase = Phase::Leaving(Box::new((leaving, next)));
            }
        }
    }

    /// The host has answered.
    pub(crate) fn left(&mut self, verdict: Verdict) {
        let (leaving, next) = match std::mem::replace(&mut self.phase, Phase::Ready) {
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
                    // Planned again, without markers that promise what is not there.
                    (Recall::Offered, Next::Request | Next::Nothing) => {}
                    (Recall::Offered, Next::Retry(refused)) => self.go_down(refused),
                }
            }
            Verdict::Veto { why } => {
                self.warn(format!("a plan was not applied: {why}"));
                match next {
                    Next::Request => self.vetoed = true,
                    Next::Nothing => self.end_compacting(),
                    Next::Retry(Refused { failure, .. }) => {
                        self.finish(EndReason::Failed { failure });
                    }
                }
            }
        }
    }

    /// Nothing is offered for recall in this run any more, which is said once.
    fn not_kept(&mut self, why: &str) {
        self.recall = Recall::None;
        if !std::mem::replace(&mut self.archive_failed, true) {
            self.warn(format!(
                "what leaves the view cannot be archived, so it is not offered for recall from now on; the log has it all the same: {why}"
            ));
        }
    }

    fn apply_and_go_on(&mut self, leaving: Leaving, next: Next) {
        self.phase = Phase::Ready;
        if !self.apply(leaving) {
            return match next {
                Next::Request => {
                    let cannot_fit = plimsoll_context::CannotFit {
                        minimum: self.tokens(),
                        overhead: self.overhead,
                        limit: self.tokens(),
                    };
                    self.cannot_fit(cannot_fit);
                }
                Next::Retry(Refused { failure, .. }) => self.finish(EndReason::Failed { failure }),
                Next::Nothing => self.end_compacting(),
            };
        }
        match next {
            Next::Request => {}
            Next::Retry(refused) => self.call(refused.rung, None),
            Next::Nothing => self.compacted(),
        }
    }

    /// Applies a plan as a recorded entry. False where it does not match the view, which would be
    /// a fault of ours.
    fn apply(&mut self, leaving: Leaving) -> bool {
        let plan = leaving.plan.clone();
        let compacts = plan.is_compaction();
        if compacts {
            self.notify(Event::CompactionStarted {
                why: plan.why,
                stages: plan.stages.clone(),
                tokens: leaving.tokens,
                messages: leaving.messages,
            });
        }
        let had_planned = self.has_planned();
        if !self.record(Entry::Planned { plan: plan.clone() }) {
            return false;
        }
        if !had_planned {
            self.declare();
        }
        self.ready = None;
        self.summary_failed = false;
        let tokens_after = self.tokens();
        self.notify(if compacts {
            Event::CompactionEnded {
                plan,
                messages_before: leaving.messages,
                messages_after: self.state.transcript.items().len(),
                tokens_before: leaving.tokens,
                tokens_after,
            }
        } else {
            Event::ResultsShortened {
                results: plan.edits.len(),
                tokens_before: leaving.tokens,
                tokens_after,
            }
        });
        if self.setup.leave == Leave::Asked {
            self.queue.push_back(Step::Gone(Box::new(leaving)));
        }
        true
    }

    fn leaving(&self, plan: Plan) -> Leaving {
        let view = &self.state.transcript;
        let mut tools = HashMap::new();
        let touched = view.touched(&plan);
        // A call stands before its result, so one walk up to the last result finds all of them.
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
        Leaving {
            plan,
            items,
            tokens: self.tokens(),
            messages: view.items().len(),
        }
    }
}

impl Leaving {
    /// The items that are still what was said: those that the archive does not have yet.
    pub fn originals(&self) -> impl Iterator<Item = &LeavingItem> {
        self.items
            .iter()
            .filter(|leaving| leaving.item.form == Form::Original)
    }
}
