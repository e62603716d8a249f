//! [`Body`]: a request that is changed in place.
//!
//! It is a request of any protocol that can be read, or its messages alone. Messages are removed, shortened
//! or added; everything else keeps its bytes. [`Body::write`] makes these changes, and [`Body::cut`] makes
//! those that a policy plans.
//!
//! ```
//! use plimsoll_context::Message;
//! use plimsoll_foreign::{Body, Slot};
//!
//! let request = r#"{"model": "claude-opus-4-6", "max_tokens": 1024, "system": "Be brief.",
//!   "messages": [{"role":"user", "content":"One."}, {"role":"assistant","content":"1"},
//!                {"role":"user","content":"Two." }]}"#;
//! let target = plimsoll_wire::Target::of_request(&serde_json::from_str(request).unwrap_or_default());
//! let body = Body::read(request, &target)?;
//! assert_eq!(body.messages.len(), 4, "the system prompt is the first of them");
//!
//! let note = Message::Summary { text: "One was counted.".into() };
//! let written = body.write([Slot::Original(0), Slot::New(&note), Slot::Original(3)])?;
//! assert!(written.text.starts_with(r#"{"model":"claude-opus-4-6","max_tokens":1024,"#));
//! assert!(written.text.ends_with(r#"{"role":"user","content":"Two." }]}"#));
//! assert!(written.repairs.is_empty());
//! # Ok::<(), plimsoll_wire::WireError>(())
//! ```

mod cut;
mod protected;
mod thinking;

use std::collections::BTreeSet;

use plimsoll_context::{Message, Opaque, TOOL_OVERHEAD, TokenCounter, Tokens};
use plimsoll_wire::{Document, Target, WireError};
use serde_json::Value;

pub use cut::{BodyCut, CutError};
pub use plimsoll_wire::Slot;

use thinking::{BoundThinking, opening};

use crate::protocol::Protocol;
use crate::repair::{Reasoning, Repair, repair_request};

/// A request, or a history, that was read.
#[derive(Debug, Clone)]
pub struct Body<'a> {
    /// The messages. A system prompt beside the list is the first of them. May be taken out: writing
    /// does not need them.
    pub messages: Vec<Message>,
    /// The messages that must stay.
    standing: Vec<usize>,
    bound: BoundThinking,
    /// The message that began the current tool loop with thinking that has to stay first in it.
    opening: Option<usize>,
    text: &'a str,
    target: Target,
    /// The request, without its messages.
    pub document: Document<'a>,
}

/// A body that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenBody {
    /// The request.
    pub text: String,
    /// Messages that lost their thinking, because it is bound to messages that have changed (AM10).
    /// This affects all thinking in each tool loop behind the first change.
    pub unthinking: Vec<usize>,
    /// The further repairs that were necessary, usually none. Places refer to `text`.
    pub repairs: Vec<Repair>,
}

impl<'a> Body<'a> {
    /// Reads a request, or a bare list of messages or items, in the protocol of `target`. Repairs
    /// nothing; [`repair_request`] does.
    ///
    /// # Errors
    ///
    /// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a wrong
    /// kind.
    pub fn read(text: &'a str, target: &Target) -> Result<Self, WireError> {
        let mut document = Document::read(text, Protocol::of(target).format())?;
        let messages = std::mem::take(&mut document.messages);
        Ok(Self {
            opening: if matches!(target, Target::Messages(_)) {
                opening(&document, &messages)
            } else {
                None
            },
            standing: protected::of(&messages, target),
            bound: BoundThinking::of(&messages, target),
            messages,
            text,
            target: target.clone(),
            document,
        })
    }

    /// Returns `true` if there is no message besides a system prompt beside the list.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.count() == usize::from(self.document.has_system())
    }

    /// Returns the raw JSON text of a key beside the list, for example of `max_tokens`.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'a str> {
        self.document.key(name)
    }

    /// Returns the tokens of the tools that are sent beside the messages.
    ///
    /// The system prompt counts as one of the messages. Tools with deferred loading count zero until a
    /// tool reference loads them.
    #[must_use]
    pub fn overhead(&self, counter: &dyn TokenCounter) -> Tokens {
        let tools = self.document.tools.iter();
        let tools = tools.filter(|tool| !self.document.deferred_tools.contains(&tool.name));
        let hosted = self.document.hosted_tools.iter();
        let hosted = hosted.filter(|tool| !self.is_deferred(tool));
        let hosted: Tokens = hosted
            .map(|tool| TOOL_OVERHEAD + counter.text(&tool.data))
            .sum();
        tools.map(|tool| counter.tool(tool)).sum::<Tokens>() + hosted
    }

    fn is_deferred(&self, tool: &Opaque) -> bool {
        let tool: Value = serde_json::from_str(&tool.data).unwrap_or_default();
        let name = tool.get("name").and_then(Value::as_str);
        name.is_some_and(|name| self.document.deferred_tools.contains(name))
    }

    /// Returns the messages that must stay whole besides system messages:
    ///
    /// - the provider's own compaction, which stands for everything before it (OR6),
    /// - messages that load tools, with the calls that they answer,
    /// - the person's first or last message, if the first or last message in the user's role consists
    ///   of the client's items.
    #[must_use]
    pub fn standing(&self) -> &[usize] {
        &self.standing
    }

    /// Returns the messages whose thinking is bound to the messages before it (AM10) and cannot stay if
    /// message `first` changes: those behind it, and the rest of their tool loops (V4).
    #[must_use]
    pub fn bound_to(&self, first: usize) -> Vec<usize> {
        self.bound.behind(first)
    }

    /// Writes the body with other messages, in its original shape.
    ///
    /// Unedited messages and all other keys keep their bytes. A new message is rendered in the form of
    /// the protocol; a summary is framed and sent in the user's role. A system prompt beside the list
    /// is removed if it has no slot. A slot is ignored if its index is beyond the messages.
    ///
    /// If a change leaves messages that the API would refuse, they are repaired and reported. The caller
    /// should keep whole exchanges. A call without its result is closed, and a result without its call
    /// is dropped.
    ///
    /// # Errors
    ///
    /// None in practice. It could only fail on a value that is not JSON.
    pub fn write<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
    ) -> Result<WrittenBody, WireError> {
        let mut slots: Vec<Slot<'m>> = slots.into_iter().collect();
        slots.retain(|slot| slot.index().is_none_or(|index| index < self.count()));
        let Some(first) = self.first_change(&slots) else {
            return self.written(self.text.trim().to_owned(), Vec::new());
        };
        let kept: BTreeSet<usize> = slots.iter().filter_map(Slot::index).collect();
        let mut unthinking = self.bound_to(first);
        unthinking.retain(|index| kept.contains(index));
        let without = unthinking.iter().copied().collect();
        let text = self.document.write_without(slots, &without)?;
        self.written(text, unthinking)
    }

    fn written(&self, text: String, unthinking: Vec<usize>) -> Result<WrittenBody, WireError> {
        let repaired = repair_request(&text, &self.target, Reasoning::Keep)?;
        Ok(WrittenBody {
            text: repaired.request,
            unthinking,
            repairs: repaired.repairs,
        })
    }

    /// Returns the index of the first message that changes, if one does.
    fn first_change(&self, slots: &[Slot<'_>]) -> Option<usize> {
        let same =
            |(at, slot): &(usize, &Slot<'_>)| matches!(slot, Slot::Original(index) if index == at);
        let same = slots.iter().enumerate().take_while(same).count();
        (same < self.count().max(slots.len())).then_some(same)
    }

    /// Returns the number of messages that were read.
    fn count(&self) -> usize {
        self.document.spans.len()
    }
}
