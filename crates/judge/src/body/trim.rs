//! [`Body::trim`]: the first or the last messages of a body that fit, written back.

use plimsoll_context::{CannotFit, Tokens, Transcript, Trim};

use super::cut::{CutError, TRIES};
use super::{Body, BodyCut, Slot};

impl Body<'_> {
    /// Keeps the messages that `trim` selects within `max_tokens` for the whole request, and writes the
    /// body. Returns `None` if that is all of them. `view` is the result of [`Body::transcript`].
    ///
    /// # Errors
    ///
    /// [`CutError::CannotFit`] if no message is left besides instructions, and [`CutError::NoSuchRole`]
    /// if none has a role that `trim` requires.
    pub fn trim(
        &self,
        view: &Transcript,
        trim: &Trim,
        max_tokens: Tokens,
    ) -> Result<Option<BodyCut>, CutError> {
        match self.settled(view, trim, max_tokens) {
            Err(CutError::CannotFit(error)) => {
                let mut minimum = error.minimum;
                // The first number does not include the repairs after the cut.
                for _ in 0..TRIES {
                    match self.settled(view, trim, minimum) {
                        Err(CutError::CannotFit(next)) => {
                            minimum = next.minimum.max(minimum + Tokens(1));
                        }
                        Err(error) => return Err(error),
                        Ok(_) => break,
                    }
                }
                Err(CannotFit { minimum, ..error }.into())
            }
            trimmed => trimmed,
        }
    }

    /// Trims until nothing changes any more: a repair after a cut may remove the message with which the
    /// rest began or ended.
    fn settled(
        &self,
        view: &Transcript,
        trim: &Trim,
        max_tokens: Tokens,
    ) -> Result<Option<BodyCut>, CutError> {
        let Some(mut cut) = self.trim_to(view, trim, max_tokens)? else {
            return Ok(None);
        };
        for _ in 0..TRIES {
            if cut.repairs.is_empty() {
                break;
            }
            let mut body = Body::read(&cut.text, &self.target)?;
            let view = body.transcript(view.counter());
            let Some(again) = body.trim_to(&view, trim, max_tokens)? else {
                break;
            };
            cut.repairs.extend(again.repairs);
            (cut.text, cut.tokens, cut.left) = (again.text, again.tokens, again.left);
        }
        Ok(Some(cut))
    }

    fn trim_to(
        &self,
        view: &Transcript,
        trim: &Trim,
        max_tokens: Tokens,
    ) -> Result<Option<BodyCut>, CutError> {
        let overhead = self.overhead(view.counter().as_ref());
        let cannot_fit = |minimum: Tokens| CannotFit {
            minimum: minimum + overhead,
            overhead: overhead + view.instructions(),
            limit: max_tokens,
        };
        let limit = max_tokens.minus(overhead);
        let mut space = limit;
        let mut weighs = view.tokens();
        for _ in 0..TRIES {
            let kept = match trim.keep(view, space) {
                Ok(kept) => kept,
                Err(Some(minimum)) => {
                    // Repairs after the cut need space as well.
                    return Err(cannot_fit(minimum + limit.minus(space)).into());
                }
                Err(None) => return Err(CutError::NoSuchRole),
            };
            if kept.len() == view.items().len() && kept.iter().all(|one| one.part.is_none()) {
                return Ok(None);
            }
            let slots = kept.iter().map(|one| match &one.part {
                None => Slot::Original(one.at),
                Some(part) => Slot::Edited(one.at, part),
            });
            let written = self.write(slots)?;
            // A removed message may have to be put back, for example a user's last message.
            if written.text == self.text.trim() {
                return Ok(None);
            }
            let mut body = Body::read(&written.text, &self.target)?;
            let after = body.transcript(view.counter());
            weighs = after.tokens();
            if weighs <= limit {
                return Ok(Some(BodyCut {
                    text: written.text,
                    plan: None,
                    planned: view.clone(),
                    tokens: weighs,
                    left: kept.len(),
                    unthinking: written.unthinking,
                    repairs: written.repairs,
                }));
            }
            space = space.minus(weighs.minus(limit));
        }
        Err(cannot_fit(weighs).into())
    }
}
