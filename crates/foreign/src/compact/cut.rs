//! [`Body::cut`]: compacts a request as a policy plans. Deterministic.

use std::sync::Arc;

use plimsoll_context::{
    Calibration, CannotFit, Gap, Plan, PlanError, Policy, Seq, TokenCounter, Tokens, Transcript,
    Trigger, ViewLimits,
};
use plimsoll_wire::WireError;
use thiserror::Error;

use super::{Body, outputs};
use crate::chat::Chat;
use crate::repair::{Reasoning, Repair, repair};

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
    /// The request, which remembers the places of its units.
    pub chat: Chat<'a>,
    /// The plan.
    pub plan: Plan,
    /// The tokens of the messages that are left.
    pub tokens: Tokens,
    /// The number of messages that are left, without the markers of gaps.
    pub left: usize,
    /// The repairs that were necessary after the plan: usually none, but all thinking is removed that is bound to the
    /// messages before it (AM10).
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

    fn cut_to(
        &self,
        view: &Transcript,
        policy: &Policy,
        line: &ViewLimits,
    ) -> Result<Option<BodyCut<'a>>, CutError> {
        let overhead = self.overhead(view.counter().as_ref());
        let budget = line.budget(overhead, view.instructions(), Calibration::default())?;
        let mut room = budget;
        let mut tokens = view.tokens();
        for tried in 1..=TRIES {
            let drawn = policy.plan(view, &room, Trigger::Asked);
            let drawn = drawn.map_err(|error| CannotFit {
                limit: budget.limit + budget.overhead,
                ..error
            })?;
            let Some(plan) = drawn else {
                return Ok(None);
            };
            let cut = self.planned(view, plan)?;
            if cut.tokens <= budget.limit {
                return Ok(Some(cut));
            }
            tokens = cut.tokens;
            let most = Tokens(room.limit.0 / 4 * 3);
            room.limit = room.limit.minus(tokens.minus(budget.limit));
            if tried >= FIRST_TRIES {
                room.limit = room.limit.min(most);
            }
            room.trigger = budget.trigger.min(room.limit);
            room.target = budget.target.min(room.limit);
        }
        Err(budget.cannot_fit(tokens).into())
    }

    /// Returns the body after a plan, repaired if that is necessary.
    fn planned(&self, view: &Transcript, plan: Plan) -> Result<BodyCut<'a>, CutError> {
        let mut after = view.clone();
        after.apply(&plan)?;
        let mut chat = self.changed(view, &after)?;
        let repairs = repair(&mut chat, &self.target, Reasoning::Keep);
        // The texts in outputs are shortened to another size than the plan says.
        if !repairs.is_empty() || !self.outputs.is_empty() {
            let body = Self::of(chat, &self.target)?;
            after = body.transcript(view.counter());
            chat = body.chat;
        }
        Ok(BodyCut {
            chat,
            plan,
            tokens: after.tokens(),
            left: messages(&after),
            repairs,
        })
    }
}

/// Returns the number of messages of a view, without the markers of gaps.
fn messages(view: &Transcript) -> usize {
    let items = view.items().iter();
    items
        .filter(|item| Gap::of(&item.message).is_none())
        .count()
}
