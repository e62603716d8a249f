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
use crate::hook_input::{Decision, EvictedMessage, Eviction, HookInput, HookPoint};
use crate::ledger::LimitKind;
use crate::outcome::EndReason;
use crate::phase::{Phase, PlanFor, RefusedRequest};
use crate::run::Run;
use crate::step::Step;

/// Whether the view is below its limit.
pub(crate) enum FitStatus {
    /// It is below the limit.
    Under,
    /// It will be, after the current plan or summary. The request is made then.
    Waiting,
    /// It cannot be brought below the limit.
    Not(CannotFit),
}

impl Run {
    /// Returns the cost and the savings of a plan.
    pub(crate) fn price_of_plan(&self, plan: &Plan, budget: &Budget) -> Price {
        let facts = PriceFacts {
            sheet: self.setup.sheet.as_ref(),
            is_cold: self.is_cold(),
        };
        Price::of(plan, &self.state.transcript, budget, facts)
    }

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
    pub(crate) fn keep_under(&mut self, budget: &Budget, is_vetoed: bool) -> FitStatus {
        if is_vetoed {
            return self.keep_under_window();
        }
        if let Some(kept) = self.rest(budget) {
            return kept;
        }
        let view = &self.state.transcript;
        let context = self.plan_context();
        let policy = &self.setup.policy;
        let proposal = policy.propose(view, budget, Trigger::Request, &context);
        let plan = match proposal {
            Ok(Proposal { plan, wants }) => {
                if let Some(span) = wants
                    && self.start_summary(span, PlanFor::Request)
                {
                    return FitStatus::Waiting;
                }
                plan
            }
            Err(cannot_fit) => match self.give_up_the_past(Trigger::Request, budget.limit) {
                Some(plan) => Some(plan),
                None => return FitStatus::Not(cannot_fit),
            },
        };
        match plan {
            Some(mut plan) => {
                plan.price = Some(self.price_of_plan(&plan, budget));
                self.submit(plan, PlanFor::Request);
                FitStatus::Waiting
            }
            None => FitStatus::Under,
        }
    }

    /// Checks the view against the window alone, whatever trigger is set. After a veto the view stays
    /// unchanged.
    fn keep_under_window(&self) -> FitStatus {
        let view = &self.state.transcript;
        let line = ViewLimits {
            trigger: Threshold::Auto,
            target: None,
            ..self.line()
        };
        let instructions = view.instructions();
        match line.budget(self.tools.overhead, instructions, self.calibration()) {
            Ok(window) if view.tokens() <= window.limit => FitStatus::Under,
            Ok(window) => FitStatus::Not(window.cannot_fit(view.tokens())),
            Err(cannot_fit) => FitStatus::Not(cannot_fit),
        }
    }

    /// Avoids a second compaction in the turn after one, if that is enough. Only new results are
    /// shortened, which does not rewrite any message that was already sent. Limits go first: stages that
    /// enforce one run as well.
    ///
    /// Returns `None` if there was no compaction in the previous turn, if a stage acts on every turn,
    /// if the memory limit is reached, or if shortening the results is not enough.
    fn rest(&mut self, budget: &Budget) -> Option<FitStatus> {
        let stages = self.setup.policy.stages();
        let eager = stages.iter().any(|stage| stage.is_eager());
        if eager
            || !self.state.compacted_last_turn()
            || self
                .tracker()
                .used_up(LimitKind::Memory, self.now.elapsed)
                .is_some()
        {
            return None;
        }
        let limits = stages.iter().filter(|stage| stage.is_limit()).cloned();
        let policy = limits.fold(Policy::arrivals(), Policy::with_stage);
        let context = self.plan_context();
        let view = &self.state.transcript;
        let proposal = policy.propose(view, budget, Trigger::Request, &context);
        Some(match proposal.ok()?.plan {
            Some(plan) => {
                self.submit(plan, PlanFor::Request);
                FitStatus::Waiting
            }
            None => FitStatus::Under,
        })
    }

    /// Returns a plan that makes the next call fit into the limits. Returns `None` if it already fits,
    /// or if no plan suffices.
    pub(crate) fn plan_within_limits(&self) -> Option<Plan> {
        self.exceeded_by_next()?;
        let allowed = self.allowed_input();
        let allowed = allowed.minus(allowed.share(UNCOUNTED)).minus(Tokens(1));
        let allowed = self.state.facts.calibration.counted(allowed);
        let goal = allowed.minus(self.tools.overhead);
        let budget = self.budget_at(goal);
        let (view, context) = (&self.state.transcript, self.plan_context());
        let recovery = &self.setup.recovery;
        let proposal = recovery.best_proposal(view, &budget, Trigger::Request, &context);
        let mut plan = proposal.plan.filter(|plan| plan.after() <= goal)?;
        plan.price = Some(self.price_of_plan(&plan, &budget));
        Some(plan)
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
        let line = match self.budget() {
            Ok(line) => line,
            Err(cannot_fit) => {
                self.warn(self.reported(cannot_fit).to_string());
                return self.end_compaction();
            }
        };
        let budget = Budget {
            trigger: line.target,
            ..line
        };
        let view = &self.state.transcript;
        if view.tokens() <= budget.target {
            return self.end_compaction();
        }
        let (why, context) = (Trigger::Asked, self.plan_context());
        let proposal = self
            .setup
            .policy
            .best_proposal(view, &budget, why, &context);
        if let Some(span) = proposal.wants {
            self.open_log();
            if self.start_summary(span, PlanFor::Compaction(focus)) {
                return;
            }
        }
        let Some(mut plan) = proposal.plan else {
            return self.end_compaction();
        };
        plan.price = Some(self.price_of_plan(&plan, &line));
        self.open_log();
        self.submit(plan, PlanFor::Compaction(None));
    }

    /// Returns to the idle state.
    pub(crate) fn end_compaction(&mut self) {
        self.give_up_waiting();
        self.phase = Phase::Idle;
    }

    /// Applies a plan and continues. If the host has a hook before compactions, it is asked first.
    pub(crate) fn submit(&mut self, plan: Plan, next: PlanFor) {
        let point = HookPoint::BeforeCompactionStart;
        if !plan.is_compaction() || !self.setup.hooks.contains(&point) {
            return self.apply_and_go_on(plan, next);
        }
        self.queue
            .push_back(Step::Before(HookInput::BeforeCompactionStart {
                tokens: self.tokens(),
                messages: self.state.transcript.items().len(),
            }));
        self.phase = Phase::PlanPending(Box::new((plan, next)));
    }

    /// Handles the host's decision about a plan.
    pub(crate) fn plan_decided(&mut self, decision: Decision, plan: Plan, next: PlanFor) {
        self.phase = Phase::PREPARING;
        match decision {
            Decision::Go => self.apply_and_go_on(plan, next),
            Decision::No { why } => {
                self.warn(format!("a plan was not applied: {why}"));
                match next {
                    PlanFor::Request => self.phase = Phase::Preparing { is_vetoed: true },
                    PlanFor::Compaction(_) => self.end_compaction(),
                    PlanFor::Retry(RefusedRequest { failure, .. }) => {
                        self.finish(EndReason::Failed { failure });
                    }
                }
            }
        }
    }

    fn apply_and_go_on(&mut self, plan: Plan, next: PlanFor) {
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
            (PlanFor::Retry(refused), Some(_)) => self.call(refused.rung, None),
            (PlanFor::Retry(RefusedRequest { failure, .. }), None) => {
                self.finish(EndReason::Failed { failure });
            }
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
        self.current.skips_summary = false;
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
        if let Some(evicted) = evicted.filter(|evicted| !evicted.items.is_empty()) {
            self.after(HookPoint::OnEvict, |_| HookInput::OnEvict { evicted });
        }
        Some(applied)
    }

    /// Returns the messages that a plan affects, as they are in the view, without markers and summaries of
    /// earlier plans.
    fn evicted(&self, plan: &Plan) -> Eviction {
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
        Eviction { items }
    }
}
