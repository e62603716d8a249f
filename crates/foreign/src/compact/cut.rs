//! [`Body::cut`]: compacts a request as a policy plans. Deterministic.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_context::{
    Budget, Calibration, CannotFit, Edit, Gap, Message, Part, Plan, PlanError, Policy, Seq,
    TokenCounter, Tokens, Transcript, Trigger, ViewLimits,
};
use plimsoll_wire::WireError;
use thiserror::Error;

use super::{Body, Slot, outputs};
use crate::chat::Chat;
use crate::protocol::Protocol;
use crate::repair::{Repair, order};

/// The maximum number of attempts at a cut. A repair after a cut may insert a few words, so
/// the next attempt has a smaller target.
const TRIES: usize = 16;
/// The attempts whose room is smaller by the excess alone. Each later one has at most three quarters of the one
/// before, since outputs are shortened to another size than the plan says.
const FIRST_TRIES: usize = 4;
/// The number of sizes that are tried for the one that [`CannotFit`] advises.
const SIZES: u32 = 32;
/// For the first of these sizes, the search uses exactly the minimum of the failed attempt. Later sizes
/// grow by at least a quarter, so that the search ends.
const EXACT_SIZES: u32 = 8;

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
    /// Messages that lost thinking that is bound to messages that have changed (AM10).
    pub unthinking: Vec<usize>,
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
        self.view(messages, counter)
    }

    /// Compacts the messages to a budget according to a policy, and writes the body. Returns `None` if
    /// the policy changes nothing. `view` is the result of [`Body::transcript`].
    ///
    /// A cut moves the results of Responses that do not stand directly behind their calls there, because a
    /// plan would separate them. The plan refers to the messages in that order.
    ///
    /// If thinking is bound to the messages before it, all thinking behind the first change has to be
    /// removed. It is removed before anything else is. If the request requires it (AM9) and there is
    /// enough space, the current tool loop still begins with its thinking; a summary of later messages
    /// is then placed before the loop.
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
        if let Some((body, moved)) = self.ordered()? {
            let cut = body.cut(&body.transcript(view.counter()), policy, line)?;
            return Ok(cut.map(|mut cut| {
                cut.repairs.splice(0..0, moved);
                cut
            }));
        }
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
        for size in 0..SIZES {
            let Err(CutError::CannotFit(next)) = self.cut_to(view, policy, &line.allowing(minimum))
            else {
                break;
            };
            let step = if size < EXACT_SIZES {
                Tokens(1)
            } else {
                Tokens(minimum.0 / 4 + 1)
            };
            minimum = next.minimum.max(minimum + step);
        }
        CannotFit { minimum, ..error }
    }

    /// Returns the body with every result directly behind its call, and the results that were moved. `None`
    /// if they stand there already.
    fn ordered(&self) -> Result<Option<(Self, Vec<Repair>)>, WireError> {
        let is_responses = self.chat.protocol == Protocol::Responses;
        if !is_responses || !outputs::are_late(&self.messages, &self.outputs) {
            return Ok(None);
        }
        let mut chat = self.chat.clone();
        let moved = order(&mut chat, &self.target);
        if moved.is_empty() {
            return Ok(None);
        }
        Ok(Some((Self::of(chat, &self.target)?, moved)))
    }

    fn cut_to(
        &self,
        view: &Transcript,
        policy: &Policy,
        line: &ViewLimits,
    ) -> Result<Option<BodyCut<'a>>, CutError> {
        let overhead = self.overhead(view.counter().as_ref());
        let budget = line.budget(overhead, view.instructions(), Calibration::default())?;
        let budget = &budget;
        let mut room = *budget;
        let mut weighs = view.tokens();
        for tried in 1..=TRIES {
            let drawn = match self.kept(view) {
                None => self.plan(view, policy, &room),
                // Without the opening message, the request no longer enables thinking.
                Some(kept) => match self.plan(&kept, policy, &room) {
                    Err(CutError::CannotFit(_)) => self.plan(view, policy, &room),
                    drawn => drawn,
                },
            };
            let drawn = match drawn {
                Ok(Some(drawn)) => drawn,
                Ok(None) => return Ok(None),
                Err(CutError::CannotFit(error)) => {
                    let limit = budget.limit + budget.overhead;
                    return Err(CannotFit { limit, ..error }.into());
                }
                Err(error) => return Err(error),
            };
            let mut slots = slots(&drawn.planned, &drawn.after, drawn.plan.as_ref());
            self.open_with_thinking(&mut slots);
            let written = self.write_without(slots, &drawn.unthinking)?;
            let mut cut = BodyCut {
                text: written.text,
                chat: written.chat,
                plan: drawn.plan,
                planned: drawn.planned,
                tokens: drawn.after.tokens(),
                left: messages(&drawn.after),
                unthinking: written.unthinking,
                repairs: written.repairs,
            };
            // The texts in outputs are shortened to another size than the plan says.
            if !cut.repairs.is_empty() || !self.outputs.is_empty() {
                let body = Body::of(cut.chat, &self.target)?;
                let after = body.transcript(view.counter());
                (cut.tokens, cut.left) = (after.tokens(), messages(&after));
                cut.chat = body.chat;
            }
            if cut.tokens <= budget.limit {
                return Ok(Some(cut));
            }
            weighs = cut.tokens;
            let over = weighs.minus(budget.limit) + budget.limit.minus(room.limit);
            let before = room.limit;
            room.limit = budget.limit.minus(over);
            if tried >= FIRST_TRIES {
                room.limit = room.limit.min(Tokens(before.0 / 4 * 3));
            }
            room.trigger = budget.trigger.min(room.limit);
            room.target = budget.target.min(room.limit);
        }
        Err(budget.cannot_fit(weighs).into())
    }

    /// Returns a view in which the current tool loop still begins with its thinking. `None` if no
    /// message has to be pinned for that.
    fn kept(&self, view: &Transcript) -> Option<Transcript> {
        let mut kept = view.clone();
        kept.pin(Seq(self.opening? as u64)).then_some(kept)
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

    /// Returns a plan that is still valid after the removal of all thinking that it invalidates.
    fn plan(
        &self,
        view: &Transcript,
        policy: &Policy,
        budget: &Budget,
    ) -> Result<Option<PlannedCut>, CutError> {
        let mut unthinking: BTreeSet<usize> = BTreeSet::new();
        loop {
            let planned = if unthinking.is_empty() {
                view.clone()
            } else {
                self.without(view, &unthinking)
            };
            let plan = match policy.plan(&planned, budget, Trigger::Asked) {
                Ok(plan) => plan,
                Err(error) => {
                    let all: BTreeSet<usize> = self.bound_to(0).into_iter().collect();
                    if all.len() == unthinking.len() {
                        return Err(error.into());
                    }
                    unthinking = all;
                    continue;
                }
            };
            let first = plan.as_ref().and_then(first_edit);
            let first = first.into_iter().chain(unthinking.first().copied()).min();
            let Some(first) = first else {
                return Ok(None);
            };
            let before = unthinking.len();
            unthinking.extend(self.bound_to(first));
            if unthinking.len() > before {
                continue;
            }
            let mut after = planned.clone();
            if let Some(plan) = &plan {
                after.apply(plan)?;
            }
            return Ok(Some(PlannedCut {
                plan,
                planned,
                after,
                unthinking,
            }));
        }
    }

    /// Returns the view without the thinking of these messages.
    fn without(&self, view: &Transcript, unthinking: &BTreeSet<usize>) -> Transcript {
        let messages = view.items().iter().enumerate().map(|(index, item)| {
            match (unthinking.contains(&index), item.message.as_ref()) {
                (true, Message::Assistant { parts }) => {
                    let mut parts = parts.clone();
                    parts.retain(|part| !matches!(part, Part::Thinking(_)));
                    Arc::new(Message::Assistant { parts })
                }
                _ => Arc::clone(&item.message),
            }
        });
        let mut without = self.view(messages, view.counter());
        for item in view.items().iter().filter(|item| item.pin.is_some()) {
            without.pin(item.seq);
        }
        without
    }

    fn view(
        &self,
        messages: impl Iterator<Item = Arc<Message>>,
        counter: &Arc<dyn TokenCounter>,
    ) -> Transcript {
        let mut view = Transcript::new(Arc::clone(counter));
        for message in messages {
            view.push(message);
        }
        view.mark_sent();
        for index in self.standing() {
            view.pin(Seq(*index as u64));
        }
        view
    }
}

/// A cut that is not written yet.
struct PlannedCut {
    plan: Option<Plan>,
    /// The view without the thinking that had to be removed.
    planned: Transcript,
    /// The view after the plan.
    after: Transcript,
    /// The messages that lose their thinking.
    unthinking: BTreeSet<usize>,
}

/// Returns the number of messages of a view, without the markers of gaps.
fn messages(view: &Transcript) -> usize {
    let items = view.items().iter();
    items
        .filter(|item| Gap::of(&item.message).is_none())
        .count()
}

/// Returns the first message that a plan changes.
fn first_edit(plan: &Plan) -> Option<usize> {
    let firsts = plan.edits.iter().filter_map(|edit| match edit {
        Edit::Shrink { seq, .. } => Some(*seq),
        Edit::Drop { first, .. } => Some(*first),
        Edit::Summarize { covers, .. } => covers.first().map(|range| range.first),
    });
    firsts.min().and_then(|seq| usize::try_from(seq.0).ok())
}

/// Returns the slots of a view: its original, edited and new messages.
fn slots<'m>(before: &Transcript, after: &'m Transcript, plan: Option<&Plan>) -> Vec<Slot<'m>> {
    let edits = plan.map(|plan| plan.edits.as_slice()).unwrap_or_default();
    let new_seqs: BTreeSet<Seq> = edits
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
