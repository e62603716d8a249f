//! [`Body::cut`]: compacts a request as a policy plans. Deterministic.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_context::{
    Budget, Calibration, CannotFit, Edit, Gap, Plan, PlanError, Policy, Seq, TokenCounter, Tokens,
    Transcript, Trigger, ViewLimits,
};
use plimsoll_wire::{Target, WireError};
use thiserror::Error;

use super::edit::Slot;
use super::{Body, outputs};
use crate::chat::Chat;
use crate::repair::{Reasoning, Repair, order, repair, thinking};

/// The maximum number of attempts at a cut. A repair after a cut may insert a few words, so
/// the next attempt has a smaller target.
const TRIES: usize = 16;
/// The attempts whose room is smaller by the excess alone. Each later one has at most three quarters of the one
/// before, since outputs are shortened to another size than the plan says.
const FIRST_TRIES: usize = 4;
/// The number of sizes that are tried for the one that [`CannotFit`] advises.
const SIZES: u32 = 32;

/// A body that was cut.
#[derive(Debug, Clone)]
pub struct BodyCut<'a> {
    /// The request.
    pub text: String,
    /// The chat, which remembers the places of its units.
    pub chat: Chat<'a>,
    /// The plan. `None` if removing thinking was enough.
    pub plan: Option<Plan>,
    /// The view that was planned on: the original one, without the thinking that had to be removed.
    pub planned: Transcript,
    /// The tokens of the messages that are left.
    pub tokens: Tokens,
    /// The number of messages that are left, without the markers of gaps.
    pub left: usize,
    /// The number of messages that lost thinking that is bound to messages that have changed (AM10).
    pub unthinking: usize,
    /// The further repairs that were necessary, usually none.
    pub repairs: Vec<Repair>,
}

/// The reason why a body was not cut.
#[derive(Debug, Error)]
pub enum CutError {
    /// The messages that must stay do not fit.
    #[error(transparent)]
    CannotFit(#[from] CannotFit),
    /// The plan cannot be applied.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The request cannot be written.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl<'a> Body<'a> {
    /// Returns the messages as a view with token counts. Messages that must stay are pinned. Message `i` has
    /// the number `i`.
    #[must_use]
    pub fn transcript(&self, counter: &Arc<dyn TokenCounter>) -> Transcript {
        let messages = self.messages.iter().enumerate();
        let messages = messages.map(|(index, message)| match self.outputs.get(&index) {
            Some(call) => outputs::as_result(message, call),
            None => Arc::clone(message),
        });
        let mut view = Transcript::new(Arc::clone(counter));
        for message in messages {
            view.push(message);
        }
        view.mark_sent();
        for index in &self.standing {
            view.pin(Seq(*index as u64));
        }
        view
    }

    /// Compacts the messages to a budget according to a policy, and writes the body. Returns `None` if
    /// the policy changes nothing. `view` is the result of [`Body::transcript`].
    ///
    /// A cut moves the results of Responses that do not stand directly behind their calls there, because a
    /// plan would separate them. If thinking is bound to the messages before it (AM10), all thinking is removed
    /// before anything else is. The plan refers to the messages that are left of that.
    ///
    /// If the request requires it (AM9) and there is enough space, the current tool loop still begins with its
    /// thinking; a summary of later messages is then placed before the loop.
    ///
    /// # Errors
    ///
    /// [`CutError::CannotFit`] if the messages that must stay exceed the limit. A cut to the size that
    /// the error advises was tried and did fit.
    pub fn cut(
        &self,
        view: &Transcript,
        policy: &Policy,
        line: &ViewLimits,
    ) -> Result<Option<BodyCut<'a>>, CutError> {
        let is_bound = self.binds_thinking() && self.is_due(view, policy, line);
        if !is_bound && !self.has_late_results {
            return self.cut_or_advise(view, policy, line);
        }
        let mut chat = self.chat.clone();
        let repairs = match is_bound {
            true => repair(&mut chat, &self.target, Reasoning::Drop),
            false => order(&mut chat, &self.target),
        };
        let (thinking, repairs): (Vec<Repair>, Vec<Repair>) =
            repairs.into_iter().partition(|one| one.fix == "thinking");
        let body = Self::of(chat, &self.target)?;
        let view = body.transcript(view.counter());
        let mut cut = match body.cut_or_advise(&view, policy, line)? {
            Some(cut) => cut,
            None if thinking.is_empty() => return Ok(None),
            None => BodyCut::of(&body, view),
        };
        cut.unthinking = thinking.len();
        cut.repairs.splice(0..0, repairs);
        Ok(Some(cut))
    }

    fn cut_or_advise(
        &self,
        view: &Transcript,
        policy: &Policy,
        line: &ViewLimits,
    ) -> Result<Option<BodyCut<'a>>, CutError> {
        match self.cut_to(view, policy, line) {
            Err(CutError::CannotFit(error)) => Err(self.advised(view, policy, line, error).into()),
            cut => cut,
        }
    }

    /// Returns the error with the smallest size at which a cut succeeds.
    ///
    /// The messages that must stay may take more tokens in a larger budget, since texts are shortened
    /// to a share of the budget. So the minimum of one attempt is tried as the size of the next, until
    /// one fits.
    fn advised(
        &self,
        view: &Transcript,
        policy: &Policy,
        line: &ViewLimits,
        error: CannotFit,
    ) -> CannotFit {
        // A try with less room than allowed may have failed last.
        let mut minimum = error.minimum.max(error.limit + Tokens(1));
        for _ in 0..SIZES {
            let Err(CutError::CannotFit(next)) = self.cut_to(view, policy, &line.allowing(minimum))
            else {
                break;
            };
            minimum = next.minimum.max(minimum + Tokens(1));
        }
        CannotFit { minimum, ..error }
    }

    /// Checks whether there is thinking that is bound to the messages before it.
    fn binds_thinking(&self) -> bool {
        let binds = matches!(&self.target, Target::Messages(profile) if profile.binds_prefix);
        binds && self.chat.units.iter().any(thinking::is_thinking)
    }

    /// Checks whether the policy would change anything, or cannot.
    fn is_due(&self, view: &Transcript, policy: &Policy, line: &ViewLimits) -> bool {
        let drawn = self.budget(view, line);
        let drawn = drawn.and_then(|budget| self.plan(view, policy, &budget));
        !matches!(drawn, Ok(None))
    }

    fn budget(&self, view: &Transcript, line: &ViewLimits) -> Result<Budget, CannotFit> {
        let overhead = self.overhead(view.counter().as_ref());
        line.budget(overhead, view.instructions(), Calibration::default())
    }

    fn cut_to(
        &self,
        view: &Transcript,
        policy: &Policy,
        line: &ViewLimits,
    ) -> Result<Option<BodyCut<'a>>, CutError> {
        let budget = self.budget(view, line)?;
        let mut room = budget;
        let mut tokens = view.tokens();
        for tried in 1..=TRIES {
            let drawn = self.plan(view, policy, &room).map_err(|error| CannotFit {
                limit: budget.limit + budget.overhead,
                ..error
            })?;
            let Some((planned, plan)) = drawn else {
                return Ok(None);
            };
            let cut = self.planned(planned, plan)?;
            if cut.tokens <= budget.limit {
                return Ok(Some(cut));
            }
            tokens = cut.tokens;
            let over = tokens.minus(budget.limit) + budget.limit.minus(room.limit);
            let before = room.limit;
            room.limit = budget.limit.minus(over);
            if tried >= FIRST_TRIES {
                room.limit = room.limit.min(Tokens(before.0 / 4 * 3));
            }
            room.trigger = budget.trigger.min(room.limit);
            room.target = budget.target.min(room.limit);
        }
        Err(budget.cannot_fit(tokens).into())
    }

    /// Returns a plan, and the view for it. If there is enough space, the current tool loop still begins with its
    /// thinking: otherwise the request no longer enables thinking.
    fn plan(
        &self,
        view: &Transcript,
        policy: &Policy,
        room: &Budget,
    ) -> Result<Option<(Transcript, Plan)>, CannotFit> {
        let mut kept = view.clone();
        let is_pinned = self.opening.is_some_and(|at| kept.pin(Seq(at as u64)));
        let drawn = match policy.plan(&kept, room, Trigger::Asked) {
            Err(_) if is_pinned => {
                kept = view.clone();
                policy.plan(view, room, Trigger::Asked)?
            }
            drawn => drawn?,
        };
        Ok(drawn.map(|plan| (kept, plan)))
    }

    /// Returns the body after a plan, repaired if that is necessary.
    fn planned(&self, planned: Transcript, plan: Plan) -> Result<BodyCut<'a>, CutError> {
        let mut after = planned.clone();
        after.apply(&plan)?;
        let mut slots = slots(&planned, &after, &plan);
        self.open_with_thinking(&mut slots);
        let mut chat = self.with(&slots)?;
        drop(slots);
        let repairs = repair(&mut chat, &self.target, Reasoning::Keep);
        let text = chat.write().into_owned();
        // The texts in outputs are shortened to another size than the plan says.
        if !repairs.is_empty() || !self.outputs.is_empty() {
            let body = Self::of(chat, &self.target)?;
            after = body.transcript(planned.counter());
            chat = body.chat;
        }
        Ok(BodyCut {
            text,
            chat,
            plan: Some(plan),
            tokens: after.tokens(),
            left: messages(&after),
            planned,
            unthinking: 0,
            repairs,
        })
    }

    /// Moves new messages before the current tool loop, because a new message would end the loop.
    fn open_with_thinking(&self, slots: &mut [Slot<'_>]) {
        let is_opening =
            |slot: &Slot<'_>| matches!(slot, Slot::Original(at) if Some(*at) == self.opening);
        let Some(opening) = slots.iter().position(is_opening) else {
            return;
        };
        let behind = slots.get_mut(opening..).unwrap_or_default();
        let new = behind.iter().position(|slot| matches!(slot, Slot::New(_)));
        if let Some(before) = new.and_then(|new| behind.get_mut(..=new)) {
            before.rotate_right(1);
        }
    }
}

impl<'a> BodyCut<'a> {
    /// Returns a body from which nothing more has to be removed.
    fn of(body: &Body<'a>, view: Transcript) -> Self {
        Self {
            text: body.chat.write().into_owned(),
            chat: body.chat.clone(),
            plan: None,
            tokens: view.tokens(),
            left: messages(&view),
            planned: view,
            unthinking: 0,
            repairs: Vec::new(),
        }
    }
}

/// Returns the number of messages of a view, without the markers of gaps.
fn messages(view: &Transcript) -> usize {
    let items = view.items().iter();
    items
        .filter(|item| Gap::of(&item.message).is_none())
        .count()
}

/// Returns the slots of a view: its original, edited and new messages.
fn slots<'m>(before: &Transcript, after: &'m Transcript, plan: &Plan) -> Vec<Slot<'m>> {
    let new_seqs: BTreeSet<Seq> = plan
        .edits
        .iter()
        .filter_map(|edit| match edit {
            Edit::Summarize { covers, .. } => covers.first().map(|range| range.first),
            Edit::Drop { first, .. } => Some(*first),
            Edit::Shrink { .. } => None,
        })
        .collect();
    let slot = |item: &'m plimsoll_context::Item| {
        let index = usize::try_from(item.seq.0).ok();
        let origin = index.filter(|_| !new_seqs.contains(&item.seq));
        let same = || {
            let was = before.get(item.seq);
            was.is_some_and(|was| Arc::ptr_eq(&was.message, &item.message))
        };
        match origin {
            Some(index) if same() => Slot::Original(index),
            Some(index) => Slot::Edited(index, &item.message),
            None => Slot::New(&item.message),
        }
    };
    after.items().iter().map(slot).collect()
}
