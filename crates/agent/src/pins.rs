//! Pins: what must stay in the view, whole, until the host says otherwise. Nothing that a tool
//! returns can set or take one; a model can, by a tool of its own, within [`MAX_PINS`].

use std::sync::Arc;

use plimsoll_context::{CannotFit, Message, Pin, Pinned, Seq, Tokens};

use crate::entry::Entry;
use crate::run::Run;

/// Pins of one session, at most: each is sent with every request.
pub const MAX_PINS: usize = 64;

/// Why something cannot be pinned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The item is not in the view as it was said, or has no such part.
    #[error(
        "{0} cannot be pinned: it is not in the view as it was said; pin it earlier, or recall it and pin that"
    )]
    NotInView(Seq),
    /// There are [`MAX_PINS`] already.
    #[error("{MAX_PINS} things are pinned already; unpin one first")]
    TooMany,
    /// It is empty.
    #[error("an empty text cannot be pinned; say what must stay")]
    Empty,
    /// What is pinned would leave no room for anything else.
    #[error(
        "it cannot be pinned: with it {pinned} tokens would be pinned, and all of a request may weigh {limit}, of which at most half may be pinned; pin less, or allow a larger window"
    )]
    TooLarge {
        /// What would be pinned in all.
        pinned: Tokens,
        /// What a request may weigh, system prompt and tools included.
        limit: Tokens,
    },
    /// System prompt and tools leave no room at all.
    #[error(transparent)]
    CannotFit(#[from] CannotFit),
}

impl Run {
    /// Pins an item of the view, or a part of it.
    ///
    /// # Errors
    /// Where it is not there as it was said, or where too much would be pinned.
    pub fn pin(&mut self, seq: Seq, what: Pinned) -> Result<(), PinError> {
        let view = &self.state.transcript;
        let item = view.get(seq).ok_or(PinError::NotInView(seq))?;
        if item.form != plimsoll_context::Form::Original {
            return Err(PinError::NotInView(seq));
        }
        let pin = Pin::on(&item.message, what).ok_or(PinError::NotInView(seq))?;
        if item.pin.as_ref() == Some(&pin) {
            return Ok(());
        }
        let weight = item.tokens;
        let more = if item.pin.is_some() {
            Tokens::ZERO
        } else {
            weight
        };
        self.check_pins(more)?;
        self.record(Entry::Pinned { seq, pin });
        Ok(())
    }

    /// Says a rule in the host's name and pins it. The same rule is not said twice.
    ///
    /// # Errors
    /// Where it is empty or too much would be pinned.
    pub fn pin_text(&mut self, text: &str) -> Result<Seq, PinError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(PinError::Empty);
        }
        let message = Message::Notice {
            text: format!("[Pinned: this holds for the whole session.]\n{text}"),
        };
        let pinned = self.pinned().find(|(_, said)| **said == message);
        if let Some((seq, _)) = pinned {
            return Ok(seq);
        }
        self.check_pins(self.setup.counter.message(&message))?;
        self.open();
        let seq = self.state.transcript.next_seq();
        self.record(Entry::Said {
            message: Arc::new(message),
        });
        self.pin(seq, Pinned::Whole)?;
        Ok(seq)
    }

    /// Takes a pin off. False where there is none.
    pub fn unpin(&mut self, seq: Seq) -> bool {
        let pinned = self.pinned().any(|(at, _)| at == seq);
        pinned && self.record(Entry::Unpinned { seq })
    }

    /// What is pinned, in view order.
    pub fn pinned(&self) -> impl Iterator<Item = (Seq, &Message)> {
        let items = self.state.transcript.items().iter();
        let pinned = items.filter(|item| item.pin.is_some());
        pinned.map(|item| (item.seq, item.message.as_ref()))
    }

    fn check_pins(&self, more: Tokens) -> Result<(), PinError> {
        let items = self.state.transcript.items().iter();
        let pinned = items.filter(|item| item.pin.is_some());
        let (count, weight) = pinned.fold((0, Tokens::ZERO), |(count, weight), item| {
            (count + 1, weight + item.tokens)
        });
        if count >= MAX_PINS {
            return Err(PinError::TooMany);
        }
        let budget = self.line().budget(self.overhead, self.state.calibration)?;
        let after = weight + more;
        if after > Tokens(budget.limit.0 / 2) {
            return Err(PinError::TooLarge {
                pinned: after,
                limit: budget.limit + self.overhead,
            });
        }
        Ok(())
    }
}
