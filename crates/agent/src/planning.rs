//! Plans: asks the policy for one, has it approved by the host, and applies it.
//!
//! A plan is due before a request, after a refusal, or when the user asks for it. Summaries that a plan
//! needs are in `summary.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_context::{
    Budget, CannotFit, Draft, Form, Gap, Message, Plan, PlanContext, Policy, Price, PriceFacts,
    Proposal, Threshold, Tokens, Trigger, ViewLimits,
};

use crate::entry::Entry;
use crate::event::{AppliedPlan, Event};
use crate::forecast::UNCOUNTED;
use crate::hook_input::{EvictedMessage, HookInput, HookPoint};
use crate::limits::LimitKind;
use crate::outcome::EndReason;
use crate::phase::{HostDecision, Phase, PlanFor};
use crate::run::Run;

impl Run {
    /// Returns the means that the policy can use now.
    pub(crate) fn plan_context(&self) -> PlanContext {
        PlanContext {
            recall: self.setup.recall,
            can_summarize: self.can_summarize(),
            ready: self.current.summary.clone(),
        }
    }

    /// Asks the policy for a plan. A proposed plan is applied before the request is made. If the policy
    /// prefers a summary, it is requested first.
    ///
    /// Returns `true` if the request fits, and `false` if it is made after the current plan or summary.
    ///
    /// # Errors
    /// If the view cannot be brought below its limit.
    pub(crate) fn keep_under(&mut self, is_vetoed: bool) -> Result<bool, CannotFit> {
        let budget = self.budget()?;
        if is_vetoed {
            return self.is_under_window();
        }
        let plan = match self.proposal(&budget) {
            Ok(Proposal { plan, wants }) => {
                if let Some(span) = wants
                    && self.start_summary(span, PlanFor::Request)
                {
                    return Ok(false);
                }
                plan
            }
            Err(cannot_fit) => {
                let plan = self.give_up_the_past(Trigger::Request, budget.limit);
                Some(plan.ok_or(cannot_fit)?)
            }
        };
        let Some(plan) = plan else {
            return Ok(true);
        };
        self.submit(plan, PlanFor::Request);
        Ok(false)
    }

    /// Checks the view against the window alone, whatever trigger is set. After a veto the view stays
    /// unchanged.
    fn is_under_window(&self) -> Result<bool, CannotFit> {
        let view = &self.state.transcript;
        let line = ViewLimits {
            trigger: Threshold::Auto,
            target: None,
            ..self.line()
        };
        let window = line.budget(self.tools.overhead, view.instructions(), self.calibration())?;
        if view.tokens() > window.limit {
            return Err(window.cannot_fit(view.tokens()));
        }
        Ok(true)
    }

    fn proposal(&self, budget: &Budget) -> Result<Proposal, CannotFit> {
        let (view, context) = (&self.state.transcript, self.plan_context());
        let propose = |policy: &Policy| policy.propose(view, budget, Trigger::Request, &context);
        let rested = self.rest().and_then(|policy| propose(&policy).ok());
        rested.map_or_else(|| propose(&self.setup.policy), Ok)
    }

    /// Returns the policy that avoids a second compaction in the turn after one. It only shortens new
    /// results, which does not rewrite any message that was already sent. Limits go first: stages that
    /// enforce one run as well.
    ///
    /// Returns `None` if there was no compaction in the previous turn, if a stage acts on every turn,
    /// or if the memory limit is reached.
    fn rest(&self) -> Option<Policy> {
        let stages = self.setup.policy.stages();
        let memory = self.used_up(LimitKind::MaxMemory);
        let is_eager = stages.iter().any(|stage| stage.is_eager());
        if is_eager || memory.is_some() || !self.state.compacted_last_turn() {
            return None;
        }
        let limits = stages.iter().filter(|stage| stage.is_limit()).cloned();
        Some(limits.fold(Policy::arrivals(), Policy::with_stage))
    }

    /// Returns a plan that makes the next call fit into the limits. Returns `None` if it already fits,
    /// or if no plan suffices.
    pub(crate) fn plan_within_limits(&self) -> Option<Plan> {
        self.exceeded_by_next()?;
        let fitting = self.processed().minus(self.excess());
        let fitting = fitting.minus(fitting.share(UNCOUNTED)).minus(Tokens(1));
        let goal = self.calibration().counted(fitting);
        let goal = goal.minus(self.tools.overhead);
        let (view, context) = (&self.state.transcript, self.plan_context());
        let (recovery, budget) = (&self.setup.recovery, self.budget_at(goal));
        let proposal = recovery.best_proposal(view, &budget, Trigger::Request, &context);
        proposal.plan.filter(|plan| plan.after() <= goal)
    }

    /// Plans to summarise or remove protected messages of earlier runs so that the question of this
    /// run fits into `limit`. Without it the session could not continue. Returns `None` if there is
    /// nothing to remove.
    pub(crate) fn give_up_the_past(&self, why: Trigger, limit: Tokens) -> Option<Plan> {
        let context = self.plan_context();
        let mut draft =
            Draft::new(&self.state.transcript, self.setup.line.keep_recent).with_context(&context);
        draft.give_up(self.current.asked_at, limit);
        draft.credit("give_up");
        draft.into_plan(why)
    }

    /// Makes the plan, or requests the summary that it needs.
    pub(crate) fn plan_compaction(&mut self) {
        let Phase::Compacting { focus } = std::mem::replace(&mut self.phase, Phase::TurnDue) else {
            return;
        };
        let budget = match self.budget() {
            Ok(line) => Budget {
                trigger: line.target,
                ..line
            },
            Err(cannot_fit) => {
                self.warn(self.reported(cannot_fit).to_string());
                return self.end_compaction();
            }
        };
        let (view, context) = (&self.state.transcript, self.plan_context());
        if view.tokens() <= budget.target {
            return self.end_compaction();
        }
        let policy = &self.setup.policy;
        let Proposal { plan, wants } =
            policy.best_proposal(view, &budget, Trigger::Asked, &context);
        if let Some(span) = wants
            && self.start_summary(span, PlanFor::Compaction(focus))
        {
            return;
        }
        match plan {
            Some(plan) => self.submit(plan, PlanFor::Compaction(None)),
            None => self.end_compaction(),
        }
    }

    /// Returns to the idle state.
    pub(crate) fn end_compaction(&mut self) {
        self.give_up_waiting();
        self.phase = Phase::Idle;
    }

    /// Sets the price of a plan, applies it and continues. If the host has a hook before compactions, it
    /// is asked first.
    pub(crate) fn submit(&mut self, mut plan: Plan, next: PlanFor) {
        let facts = PriceFacts {
            sheet: self.setup.sheet.as_ref(),
            is_cold: self.is_cold(),
        };
        let budget = self.budget();
        let budget = budget.unwrap_or_else(|_| self.budget_at(Tokens::ZERO));
        plan.price = Some(Price::of(&plan, &self.state.transcript, &budget, facts));
        if plan.is_compaction() {
            self.decide(HostDecision::Plan(Box::new((plan, next))));
        } else {
            self.apply_and_go_on(plan, next);
        }
    }

    /// Continues without a plan that the host has refused.
    pub(crate) fn plan_refused(&mut self, why: &str, next: PlanFor) {
        self.warn(format!("a plan was not applied: {why}"));
        self.phase = Phase::Preparing { is_vetoed: true };
        match next {
            PlanFor::Request => {}
            PlanFor::Compaction(_) => self.end_compaction(),
            PlanFor::Retry { failure, .. } => self.finish(EndReason::Failed { failure }),
        }
    }

    pub(crate) fn apply_and_go_on(&mut self, plan: Plan, next: PlanFor) {
        self.phase = Phase::PREPARING;
        let applied = self.apply(plan);
        match (next, applied) {
            (PlanFor::Request, Some(_)) => {}
            (PlanFor::Request, None) => {
                let cannot_fit = CannotFit {
                    minimum: self.tokens(),
                    overhead: self.tools.overhead,
                    limit: self.tokens(),
                };
                self.cannot_fit(cannot_fit);
            }
            (PlanFor::Retry { rung, .. }, Some(_)) => self.call(rung, None),
            (PlanFor::Retry { failure, .. }, None) => self.finish(EndReason::Failed { failure }),
            (PlanFor::Compaction(_), applied) => {
                self.compaction = applied;
                self.end_compaction();
            }
        }
    }

    /// Records and applies a plan. Returns `None` if the plan does not match the view, which would be a
    /// bug.
    fn apply(&mut self, plan: Plan) -> Option<AppliedPlan> {
        let is_told = self.setup.hooks.contains(&HookPoint::OnEvict);
        let evicted = is_told.then(|| self.evicted(&plan));
        let (messages_before, tokens_before) = (self.state.transcript.items().len(), self.tokens());
        if !self.record(Entry::PlanApplied { plan: plan.clone() }) {
            return None;
        }
        // A finished summary no longer matches the view.
        self.current.summary = None;
        let applied = AppliedPlan {
            is_compaction: plan.is_compaction(),
            plan,
            messages_before,
            messages_after: self.state.transcript.items().len(),
            tokens_before,
            tokens_after: self.tokens(),
        };
        self.notify(Event::PlanApplied(applied.clone()));
        if applied.is_compaction {
            self.after(HookPoint::AfterCompactionEnd, |_| {
                HookInput::AfterCompactionEnd {
                    messages_before,
                    messages_after: applied.messages_after,
                    tokens_before,
                    tokens_after: applied.tokens_after,
                }
            });
        }
        if let Some(evicted) = evicted.filter(|evicted| !evicted.is_empty()) {
            self.after(HookPoint::OnEvict, |_| HookInput::OnEvict { evicted });
        }
        Some(applied)
    }

    /// Returns the messages that a plan affects, as they are in the view, without markers and summaries of
    /// earlier plans.
    fn evicted(&self, plan: &Plan) -> Vec<EvictedMessage> {
        let view = &self.state.transcript;
        let mut tools = HashMap::new();
        let mut touched = view.touched(plan).into_iter().peekable();
        let mut items = Vec::with_capacity(touched.len());
        for item in view.items() {
            for call in item.message.calls() {
                tools.insert(call.id.clone(), call.name.clone());
            }
            let Some((_, removed)) = touched.next_if(|(of, _)| of.seq == item.seq) else {
                continue;
            };
            let (is_summary, tool) = match item.message.as_ref() {
                Message::ToolResult(result) => (false, tools.get(&result.call).cloned()),
                message => (matches!(message, Message::Summary { .. }), None),
            };
            let is_made = is_summary && item.form != Form::Original;
            if !is_made && Gap::of(&item.message).is_none() {
                items.push(EvictedMessage {
                    seq: item.seq,
                    removed,
                    tool,
                    message: Arc::clone(&item.message),
                });
            }
        }
        items
    }
}
