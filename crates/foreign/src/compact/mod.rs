//! [`Body`]: a chat with its messages, which are removed, shortened or added in place.
//!
//! It is a request of any protocol that can be read, its messages alone, or a log. [`Body::cut`] makes the changes
//! that a policy plans; units of messages that do not change keep their bytes.

mod cut;
mod edit;
mod outputs;
mod protected;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_context::{CallId, Message, Opaque, TOOL_OVERHEAD, TokenCounter, Tokens};
use plimsoll_wire::{Document, Target, WireError};
use serde_json::Value;

pub use cut::{BodyCut, CutError};

use crate::chat::Chat;
use crate::unit::Unit;

/// A chat, and its messages.
#[derive(Debug, Clone)]
pub struct Body<'a> {
    /// The chat, as units.
    pub chat: Chat<'a>,
    /// The messages. A system prompt beside the list is the first of them.
    pub messages: Vec<Arc<Message>>,
    /// The tools, and the places of the messages.
    pub document: Document,
    /// The units of each entry of the list.
    entries: Vec<Range<usize>>,
    /// The messages that are outputs of the provider's own tools, with the ids of their calls.
    outputs: BTreeMap<usize, CallId>,
    /// The messages that must stay whole besides system messages: the provider's own compaction, which stands for
    /// everything before it (OR6), and messages that load tools, with the calls that they answer.
    standing: Vec<usize>,
    target: Target,
}

impl<'a> Body<'a> {
    /// Reads a request, or a bare list of messages or items, in the protocol of `target`. Repairs
    /// nothing; [`repair`](crate::repair) does, which a cut requires.
    ///
    /// # Errors
    ///
    /// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a wrong
    /// kind.
    pub fn read(text: &'a str, target: &Target) -> Result<Self, WireError> {
        Self::of(Chat::read(text, target.protocol())?, target)
    }

    /// Reads the messages of a chat.
    ///
    /// # Errors
    ///
    /// [`WireError::Expected`] with the place of the first value of a wrong kind. None for a chat that was
    /// repaired.
    pub fn of(mut chat: Chat<'a>, target: &Target) -> Result<Self, WireError> {
        // The messages are read from the texts.
        chat.units.iter_mut().for_each(Unit::forget_value);
        let (mut document, entries) = chat.document()?;
        let messages = std::mem::take(&mut document.messages);
        Ok(Self {
            standing: protected::of(&messages),
            outputs: outputs::of(&messages),
            messages: messages.into_iter().map(Arc::new).collect(),
            document,
            entries,
            target: target.clone(),
            chat,
        })
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

    /// Returns the indexes of the units of a message.
    fn units_of(&self, message: usize) -> impl Iterator<Item = usize> {
        let span = self.document.spans.get(message);
        let is_beside = span.is_some_and(|span| span.entries.is_empty());
        let blocks = span.map_or(0..0, |span| span.blocks.clone());
        let entries = span.and_then(|span| self.entries.get(span.entries.clone()));
        let entries = entries.unwrap_or_default().iter().cloned().flatten();
        let left = entries.filter(|at| self.chat.units.get(*at).is_some_and(Unit::is_left));
        let left = left.skip(blocks.start).take(blocks.len());
        is_beside.then_some(0).into_iter().chain(left)
    }
}
