//! The thinking of a request that depends on other messages: it is bound to the messages before it (AM10),
//! or a tool loop has to begin with it (AM9).

use plimsoll_context::{Message, Part};
use plimsoll_wire::__internals::anthropic::asks;
use plimsoll_wire::{Document, Target};
use serde_json::Value;

/// The messages with thinking that is bound to earlier messages, each with the number of its tool loop.
#[derive(Debug, Clone, Default)]
pub(super) struct BoundThinking {
    messages: Vec<(usize, usize)>,
}

impl BoundThinking {
    /// Returns the bound thinking of a request. Empty if the model signs only the thinking itself.
    pub(super) fn of(messages: &[Message], target: &Target) -> Self {
        if !matches!(target, Target::Messages(profile) if profile.binds_prefix) {
            return Self::default();
        }
        let loops = loops(messages);
        let of = |index: usize| Some((index, *loops.get(index)?));
        let thinks = |message: &Message| {
            let mut parts = message.parts().iter();
            parts.any(|part| matches!(part, Part::Thinking(_)))
        };
        let all = messages.iter().enumerate();
        let thinking = all
            .filter(|(_, message)| thinks(message))
            .map(|(index, _)| index);
        Self {
            messages: thinking.filter_map(of).collect(),
        }
    }

    /// Returns the messages that lose their thinking if message `first` changes: those behind it, and the
    /// rest of their tool loops.
    pub(super) fn behind(&self, first: usize) -> Vec<usize> {
        let after = self.messages.iter().find(|(index, _)| *index > first);
        let Some((_, from)) = after else {
            return Vec::new();
        };
        let unthinking = self.messages.iter().filter(|(_, number)| number >= from);
        unthinking.map(|(index, _)| *index).collect()
    }
}

/// Returns the number of the tool loop of each message. A loop begins with a user message, a summary or
/// a system message.
fn loops(messages: &[Message]) -> Vec<usize> {
    let (mut number, mut is_after_question) = (0, true);
    let mut loops = Vec::with_capacity(messages.len());
    for message in messages {
        let asks = asks(message);
        if asks && !is_after_question {
            number += 1;
        }
        is_after_question = asks;
        loops.push(number);
    }
    loops
}

/// Returns the assistant message that began the current tool loop with thinking.
///
/// Returns `None` if there is no loop, if it began without thinking, or if the model does not think
/// with a budget.
pub(super) fn opening(document: &Document<'_>, messages: &[Message]) -> Option<usize> {
    let thinking: Value = serde_json::from_str(document.key("thinking")?).ok()?;
    if thinking.get("type")? != "enabled" {
        return None;
    }
    let mut reply_start = None;
    let mut end = messages.len();
    loop {
        let (from, answers) = entry(document, messages, end)?;
        let is_result = |message: &Message| matches!(message, Message::ToolResult(_));
        if !answers.iter().any(is_result) {
            break;
        }
        match entry(document, messages, from) {
            Some((at, [Message::Assistant { parts }])) => {
                reply_start = Some((at, parts));
                end = at;
            }
            _ => break,
        }
    }
    let (at, parts) = reply_start?;
    matches!(parts.first(), Some(Part::Thinking(_))).then_some(at)
}

/// Returns the messages of the last entry before `end`, and the index of the first of them.
fn entry<'m>(
    document: &Document<'_>,
    messages: &'m [Message],
    end: usize,
) -> Option<(usize, &'m [Message])> {
    let last = document.spans.get(end.checked_sub(1)?)?;
    let spans = document.spans.get(..end)?.iter().rev();
    let count = spans
        .take_while(|span| span.entries == last.entries)
        .count();
    let from = end - count;
    let messages = (!last.is_beside()).then_some(messages)?;
    Some((from, messages.get(from..end)?))
}
