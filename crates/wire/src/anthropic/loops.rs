//! Decides about thinking blocks for whole tool loops: a loop that begins with a signed thinking block
//! keeps all of its thinking or loses all of it (V4, AM10). Changes no message.

use plimsoll_context::{Message, Part};
use serde_json::Value;

use super::binding::{LocatedThinking, Prefix, ThinkingIncluded, Trace};
use super::pause;
use super::{MessagesProfile, ThinkingStyle};
use crate::prompt_texts;
use crate::request::LeftOut;

/// Judges the tool loops of a transcript.
///
/// A loop begins with a user message, a summary or a system message, and ends before the next one that
/// follows an answer.
#[derive(Debug)]
pub(super) struct Judge {
    model: String,
    /// The reason why the thinking of each message is left out. `None` if it is sent.
    pub(super) without: Vec<Option<LeftOut>>,
    /// The messages with thinking.
    thinking: Vec<usize>,
    /// The prefix after the last message.
    trace: Trace,
    newest: Loop,
}

/// The loop that the next message may belong to.
#[derive(Debug)]
struct Loop {
    /// Its first message.
    first: usize,
    /// The prefix before the loop.
    before: Trace,
    /// Whether it contains more than questions.
    answered: bool,
    /// Whether the prefix of some of its thinking is unknown.
    unknown: bool,
    fault: Option<LeftOut>,
}

impl Judge {
    /// Judges a transcript. `start` is the prefix before the messages.
    pub(super) fn of(
        model: &str,
        start: Trace,
        messages: &[&Message],
        profile: &MessagesProfile,
    ) -> Self {
        let mut judge = Self {
            model: model.to_owned(),
            without: Vec::new(),
            thinking: Vec::new(),
            trace: start.clone(),
            newest: Loop::new(0, start),
        };
        for (index, message) in messages.iter().enumerate() {
            judge.message(message, messages, index, profile);
        }
        judge
    }

    fn message(
        &mut self,
        message: &Message,
        messages: &[&Message],
        index: usize,
        profile: &MessagesProfile,
    ) {
        if asks(message) && self.newest.answered {
            // Only the newest loop is certain not to have been edited.
            if self.newest.unknown {
                self.leave_out(LeftOut::UnknownPrefix, messages);
            }
            self.newest = Loop::new(index, self.trace.clone());
        }
        self.newest.answered |= !asks(message);
        let mut parts = message.parts().iter();
        if parts.any(|part| matches!(part, Part::Thinking(_))) {
            self.thinking.push(index);
        }
        let known = self.newest.fault;
        let fault = known.or_else(|| self.fault(message, profile));
        self.without.push(fault);
        match (known, fault) {
            (None, None) => self.trace.message(message, ThinkingIncluded::Yes),
            (None, Some(fault)) => self.leave_out(fault, messages),
            (Some(_), _) => self.trace.message(message, ThinkingIncluded::No),
        }
    }

    /// Leaves out the thinking of the newest loop.
    fn leave_out(&mut self, fault: LeftOut, messages: &[&Message]) {
        let first = self.newest.first;
        self.trace = self.newest.before.clone();
        let loop_so_far = self.without.iter_mut().skip(first);
        for (without, message) in loop_so_far.zip(messages.iter().skip(first)) {
            self.trace.message(message, ThinkingIncluded::No);
            *without = Some(fault);
        }
        self.newest.fault = Some(fault);
    }

    /// Returns the reason why the newest loop loses its thinking because of a message.
    fn fault(&mut self, message: &Message, profile: &MessagesProfile) -> Option<LeftOut> {
        let Message::Assistant { parts } = message else {
            return None;
        };
        for part in parts {
            let Part::Thinking(thinking) = part else {
                continue;
            };
            let bound = thinking.opaque.as_ref().and_then(LocatedThinking::of);
            let Some(bound) = bound.filter(|bound| is_signed(bound.block)) else {
                return Some(LeftOut::ForeignThinking);
            };
            let other = |bound: String| bound != self.model;
            if profile.thinking == ThinkingStyle::None || bound.model.is_some_and(other) {
                return Some(LeftOut::OtherModel);
            }
            if !profile.binds_prefix {
                continue;
            }
            match (bound.hash, self.trace.hash()) {
                (Some(then), Some(now)) if then != now => return Some(LeftOut::OtherPrefix),
                (None, _) => self.newest.unknown = true,
                _ => {}
            }
        }
        None
    }

    /// Returns the reasons for leaving out all thinking, for each message. Then a longer transcript has
    /// the same beginning. Returns `None` if no thinking is left.
    pub(super) fn without_any(&self) -> Option<Vec<Option<LeftOut>>> {
        let is_left = |index: &usize| self.without.get(*index).is_some_and(Option::is_none);
        let why = |without: &Option<LeftOut>| without.or(Some(LeftOut::UnaskedThinking));
        let any = self.thinking.iter().any(is_left);
        any.then(|| self.without.iter().map(why).collect())
    }

    /// Returns the prefix of the whole request, to which the thinking of its reply is bound.
    pub(super) fn prefix(&self, context: Option<&str>, messages: &[&Message]) -> Prefix {
        let mut trace = self.trace.clone();
        match (context, messages.last()) {
            (Some(context), _) => trace.context(context),
            // The answer to a final assistant message is also part of this request only.
            (None, Some(Message::Assistant { .. })) if !pause::is_paused(messages) => {
                trace.context(prompt_texts::GO_ON);
            }
            _ => {}
        }
        trace.prefix(&self.model)
    }
}

impl Loop {
    fn new(first: usize, before: Trace) -> Self {
        Self {
            first,
            before,
            answered: false,
            unknown: false,
            fault: None,
        }
    }
}

/// Returns `true` if a message begins a loop.
pub(crate) fn asks(message: &Message) -> bool {
    matches!(
        message,
        Message::User { .. } | Message::Summary { .. } | Message::System { .. }
    )
}

/// Returns `true` if a block is signed. A block without a signature is not a provider's.
fn is_signed(block: &str) -> bool {
    let block: Value = serde_json::from_str(block).unwrap_or_default();
    let text = |key| block.get(key).and_then(Value::as_str);
    match text("type") {
        Some("thinking") => {
            text("thinking").is_some() && text("signature").is_some_and(|text| !text.is_empty())
        }
        Some("redacted_thinking") => text("data").is_some(),
        _ => false,
    }
}
