//! Pins: messages that stay in the view unshortened until the host unpins them.
//!
//! Tool results cannot set or remove pins. A model can set pins with a dedicated tool, up to
//! [`MAX_PINS`].

use std::sync::Arc;

use plimsoll_context::{CannotFit, Exchange, Form, Item, Message, Pin, PinnedPart, Seq, Tokens};

use crate::entry::Entry;
use crate::run::Run;

/// Maximum number of pins of one session. Each is sent with every request.
pub const MAX_PINS: usize = 64;

/// The reason why something cannot be pinned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The item is not in the view in its original form, or has no such part.
    #[error(
        "{0} cannot be pinned: it is not in the view as it was said; pin it earlier, or recall it and pin that"
    )]
    NotInView(Seq),
    /// A run is in progress, or tool calls of the last answer have no results.
    #[error(
        "nothing can be pinned while a run is under way or a tool call is open; wait for its end, or carry the session on first"
    )]
    Pending,
    /// The session already has [`MAX_PINS`] pins.
    #[error("{MAX_PINS} things are pinned already; unpin one first")]
    TooMany,
    /// The text is empty.
    #[error("an empty text cannot be pinned; say what must stay")]
    Empty,
    /// The pins would leave too few tokens for anything else.
    #[error(
        "it cannot be pinned: with it {pinned} tokens would be pinned, and all of a request may weigh {limit}, of which at most half may be pinned; pin less, or allow a larger window"
    )]
    TooLarge {
        /// The total size of all pins.
        pinned: Tokens,
        /// Maximum size of a request, including system prompt and tools.
        limit: Tokens,
    },
    /// System prompt and tools alone exceed the budget.
    #[error(transparent)]
    CannotFit(#[from] CannotFit),
}

impl Run {
    /// Pins an item of the view, or a part of it.
    ///
    /// # Errors
    /// If the item is not in the view in its original form, if the pins would be too large, or if a run
    /// is in progress.
    pub fn pin(&mut self, seq: Seq, what: PinnedPart) -> Result<(), PinError> {
        if self.is_running() {
            return Err(PinError::Pending);
        }
        self.open();
        self.set_pin(seq, what)
    }

    /// Adds a rule of the host to the view and pins it. A rule that is already in the view is not added
    /// again.
    ///
    /// # Errors
    /// If the text is empty, if the pins would be too large, if a run is in progress, or if tool calls
    /// have no results: no message may be inserted between a call and its result.
    pub fn pin_text(&mut self, text: &str) -> Result<Seq, PinError> {
        if self.is_running() || self.state.batch.is_some() {
            return Err(PinError::Pending);
        }
        self.open();
        self.say_rule(text)
    }

    /// Adds and pins a rule like [`Run::pin_text`], but waits for open tool calls instead of failing.
    ///
    /// # Errors
    /// If the text is empty, if the pins would be too large, or if a run is in progress.
    pub fn pin_rule(&mut self, text: &str) -> Result<(), PinError> {
        if self.state.batch.is_none() || self.is_running() {
            return self.pin_text(text).map(|_| ());
        }
        let message = rule(text);
        if text.trim().is_empty() {
            return Err(PinError::Empty);
        }
        if !self.pinned().any(|(_, said)| *said == message) {
            let waiting = self.rules.iter().map(|text| rule(text));
            let counter = &self.setup.counter;
            let waiting: Vec<Tokens> = waiting.map(|said| counter.message(&said)).collect();
            let more = counter.message(&message) + waiting.iter().copied().sum();
            let (count, weight) = self.held(None);
            self.check_pins(count + 1 + waiting.len(), weight + more)?;
            self.rules.push(text.to_owned());
        }
        Ok(())
    }

    /// Adds and pins the waiting rules of the host and texts of tools. No tool call may be open.
    pub(crate) fn say_pins(&mut self) {
        let mut waiting = self.state.facts.to_pin.clone();
        waiting.append(&mut self.rules);
        for text in waiting {
            if let Err(error) = self.say_rule(&text) {
                self.notice(format!("{REFUSAL} {error}]"));
            }
        }
    }

    fn say_rule(&mut self, text: &str) -> Result<Seq, PinError> {
        if text.trim().is_empty() {
            return Err(PinError::Empty);
        }
        let message = rule(text);
        // The message may have been added but not pinned before a crash.
        let items = self.state.transcript.items().iter();
        let mut said = items.filter(|item| *item.message == message && item.form == Form::Original);
        if let Some(item) = said.next() {
            let seq = item.seq;
            self.set_pin(seq, PinnedPart::Whole)?;
            return Ok(seq);
        }
        let (count, weight) = self.held(None);
        let more = self.setup.counter.message(&message);
        self.check_pins(count + 1, weight + more)?;
        let seq = self.state.transcript.next_seq();
        self.record(Entry::Said {
            message: Arc::new(message),
            queued: None,
        });
        self.set_pin(seq, PinnedPart::Whole)?;
        Ok(seq)
    }

    fn set_pin(&mut self, seq: Seq, what: PinnedPart) -> Result<(), PinError> {
        let view = &self.state.transcript;
        let item = view.get(seq).ok_or(PinError::NotInView(seq))?;
        if item.form != Form::Original {
            return Err(PinError::NotInView(seq));
        }
        let pin = Pin::on(&item.message, what).ok_or(PinError::NotInView(seq))?;
        match &item.pin {
            // A message that is pinned as a whole needs no further pin.
            Some(there) if *there == pin || there.what == PinnedPart::Whole => {}
            Some(_) => {
                self.record(Entry::Pinned { seq, pin });
            }
            None => {
                let (count, weight) = self.held(Some(seq));
                self.check_pins(count, weight)?;
                self.record(Entry::Pinned { seq, pin });
            }
        }
        Ok(())
    }

    /// Removes a pin. Returns `false` if the item is not pinned.
    pub fn unpin(&mut self, seq: Seq) -> bool {
        if !self.pinned().any(|(at, _)| at == seq) {
            return false;
        }
        self.open();
        self.record(Entry::Unpinned { seq })
    }

    /// Returns the pinned messages, in view order.
    pub fn pinned(&self) -> impl Iterator<Item = (Seq, &Message)> {
        let items = self.state.transcript.items().iter();
        let pinned = items.filter(|item| item.pin.is_some());
        pinned.map(|item| (item.seq, item.message.as_ref()))
    }

    /// Returns the number of pins, including `one_more`, and the size of all messages that they keep in
    /// the view: their exchanges, except for other tool results, which can be removed.
    fn held(&self, one_more: Option<Seq>) -> (usize, Tokens) {
        let items = self.state.transcript.items();
        let is_pinned = |item: &Item| item.pin.is_some() || Some(item.seq) == one_more;
        let (mut count, mut weight) = (0, Tokens::ZERO);
        for exchange in Exchange::of(items) {
            let items = items.get(exchange.at).unwrap_or_default();
            let pinned = items.iter().filter(|item| is_pinned(item)).count();
            if pinned > 0 {
                let is_result = |item: &Item| matches!(*item.message, Message::ToolResult(_));
                let stays = items
                    .iter()
                    .filter(|item| is_pinned(item) || !is_result(item));
                count += pinned;
                weight += stays.map(|item| item.tokens).sum();
            }
        }
        (count, weight)
    }

    fn check_pins(&self, count: usize, weight: Tokens) -> Result<(), PinError> {
        if count > MAX_PINS {
            return Err(PinError::TooMany);
        }
        let budget = self.budget().map_err(|why| self.reported(why))?;
        if weight > Tokens(budget.limit.0 / 2) {
            return Err(PinError::TooLarge {
                pinned: weight,
                limit: budget.limit + self.tools.overhead,
            });
        }
        Ok(())
    }
}

/// The start of the notice that something could not be pinned.
const REFUSAL: &str = "[Not pinned:";

/// Returns a rule as the message that enters the view.
pub(crate) fn rule(text: &str) -> Message {
    Message::Notice {
        text: format!(
            "[Pinned: this holds for the whole session.]\n{}",
            text.trim()
        ),
    }
}

/// Checks whether a message reports that something could not be pinned.
pub(crate) fn is_refusal(message: &Message) -> bool {
    matches!(message, Message::Notice { text } if text.starts_with(REFUSAL))
}
