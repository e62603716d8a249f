//! [`OpenReply`]: a reply while it arrives, the same for all protocols.
//!
//! A protocol's events are mapped to operations on it (`decoder.rs`). It reports new content to
//! observers, counts the received bytes, and creates the final reply.

use plimsoll_context::{Bytes, CallId, Delta, Part, Reply, StopReason, Thinking, ToolCall, Usage};

use crate::call_ids::fnv1a;
use crate::error::WireError;
use crate::hosted;

/// The maximum size of one reply: more than ten times the longest answers of today, so that only a
/// faulty server reaches it.
pub const MAX_REPLY: Bytes = Bytes(16 * 1024 * 1024);
/// The maximum number of tool calls, blocks or items in one reply.
pub const MAX_PARTS: usize = 1_024;

/// A reply while it arrives. `B` is a protocol's state of each block.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenReply<B> {
    blocks: Vec<OpenBlock<B>>,
    /// The model that answers, as the provider names it.
    pub(crate) model: Option<String>,
    usage: Option<Usage>,
    stop: Option<StopReason>,
    /// The place and the provider's words for an unreadable call of the model.
    unreadable: Option<(&'static str, String)>,
    is_ended: bool,
    is_closed: bool,
    bytes: usize,
    deltas: Vec<Delta>,
}

/// A part of a reply while it arrives: a block, an output item, a tool call.
#[derive(Debug, Clone)]
pub(crate) struct OpenBlock<B> {
    pub(crate) content: OpenContent,
    pub(crate) state: B,
}

/// The model's output in a block so far.
#[derive(Debug, Clone)]
pub(crate) enum OpenContent {
    Text(String),
    Thinking(String),
    Call(OpenCall),
    /// A block that is sent back unchanged. The protocol stores it.
    Opaque {
        is_told: bool,
    },
}

/// A tool call while it arrives.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    is_told: bool,
    /// Whether the tool takes free text, not JSON.
    pub(crate) is_text: bool,
}

impl<B> OpenReply<B> {
    /// Counts bytes that arrived.
    ///
    /// # Errors
    ///
    /// [`WireError::TooLarge`] beyond [`MAX_REPLY`].
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes as u64 > MAX_REPLY.0 {
            return Err(WireError::TooLarge { limit: MAX_REPLY });
        }
        Ok(())
    }

    /// Opens a block behind the others. Returns its place.
    ///
    /// # Errors
    ///
    /// [`WireError::TooManyParts`] beyond [`MAX_PARTS`].
    pub(crate) fn open(&mut self, content: OpenContent, state: B) -> Result<usize, WireError> {
        let at = self.blocks.len();
        if at >= MAX_PARTS {
            return Err(WireError::TooManyParts { limit: MAX_PARTS });
        }
        self.blocks.push(OpenBlock { content, state });
        Ok(at)
    }

    pub(crate) fn blocks(&self) -> &[OpenBlock<B>] {
        &self.blocks
    }

    pub(crate) fn block_mut(&mut self, at: usize) -> Option<&mut OpenBlock<B>> {
        self.blocks.get_mut(at)
    }

    /// Returns the tool calls so far.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(OpenBlock::call)
    }

    /// Returns an id that no other call of the reply has, even if the server repeats ids. If it gives
    /// none, the id is derived from the reply so far, so that equal replies have equal ids and different
    /// ones usually do not. `response` is the id of the reply.
    pub(crate) fn call_id(&self, given: &str, response: &str) -> CallId {
        let mut id = given.to_owned();
        if id.is_empty() {
            let texts: String = self.blocks.iter().map(OpenBlock::text).collect();
            let content = format!("{response}\n{texts}");
            let number = self.calls().count();
            id = format!("call_{:016x}_{number}", fnv1a(content.as_bytes(), 0));
        }
        while self.calls().any(|call| call.id.0 == id) {
            id.push('_');
        }
        CallId(id)
    }

    /// Appends text to a block and counts it.
    ///
    /// # Errors
    ///
    /// [`WireError::TooLarge`] beyond [`MAX_REPLY`].
    pub(crate) fn write(&mut self, at: usize, more: &str) -> Result<(), WireError> {
        self.charge(more.len())?;
        self.push(at, more);
        Ok(())
    }

    /// Appends text to the block at this place, or to a new one with this content, and counts it.
    ///
    /// # Errors
    ///
    /// Those of [`OpenReply::open`] and [`OpenReply::write`].
    pub(crate) fn write_or_open(
        &mut self,
        at: Option<usize>,
        content: OpenContent,
        more: &str,
    ) -> Result<(), WireError>
    where
        B: Default,
    {
        let at = match at {
            _ if more.is_empty() => return Ok(()),
            Some(at) => at,
            None => self.open(content, B::default())?,
        };
        self.write(at, more)
    }

    /// Appends text to a block.
    pub(crate) fn push(&mut self, at: usize, more: &str) {
        let Some(block) = self.blocks.get_mut(at).filter(|_| !more.is_empty()) else {
            return;
        };
        match &mut block.content {
            OpenContent::Text(text) | OpenContent::Thinking(text) => text.push_str(more),
            OpenContent::Call(open) => open.call.arguments.push_str(more),
            OpenContent::Opaque { .. } => {}
        }
        self.deltas.extend(block.content.delta(more.to_owned()));
    }

    /// Replaces the arguments of a tool call without reporting it.
    pub(crate) fn begin_arguments(&mut self, at: usize, arguments: &str) {
        let block = self.blocks.get_mut(at);
        if let Some(OpenContent::Call(open)) = block.map(|block| &mut block.content) {
            arguments.clone_into(&mut open.call.arguments);
        }
    }

    /// Sets the final text of a block, and reports the part that is new. Text that was reported before
    /// cannot be taken back.
    pub(crate) fn settle(&mut self, at: usize, all: String) {
        let Some(block) = self.blocks.get_mut(at) else {
            return;
        };
        let rest = all.strip_prefix(block.text()).unwrap_or_default();
        if !rest.is_empty() {
            self.deltas.extend(block.content.delta(rest.to_owned()));
        }
        match &mut block.content {
            OpenContent::Text(text) | OpenContent::Thinking(text) => *text = all,
            OpenContent::Call(open) => open.call.arguments = all,
            OpenContent::Opaque { .. } => {}
        }
    }

    /// Reports that a tool call has begun, once.
    pub(crate) fn tell_call(&mut self, at: usize) {
        let block = self.blocks.get_mut(at);
        if let Some(OpenContent::Call(open)) = block.map(|block| &mut block.content)
            && !std::mem::replace(&mut open.is_told, true)
        {
            self.deltas.push(Delta::CallStarted {
                call: open.call.id.clone(),
                name: open.call.name.clone(),
            });
        }
    }

    /// Reports a complete block of the provider's own tools, once.
    pub(crate) fn tell_hosted(&mut self, at: usize, parts: &[Part]) {
        let block = self.blocks.get_mut(at);
        if let Some(OpenContent::Opaque { is_told }) = block.map(|block| &mut block.content)
            && !std::mem::replace(is_told, true)
        {
            let opaque = parts.iter().filter_map(|part| match part {
                Part::Opaque(opaque) => Some(opaque),
                _ => None,
            });
            self.deltas.extend(opaque.flat_map(hosted::deltas));
        }
    }

    /// Returns the new content since the last call.
    pub(crate) fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// Takes the usage, if the provider reports one.
    pub(crate) fn used(&mut self, usage: Option<Usage>) {
        self.usage = usage.or(self.usage);
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Sets the stop reason. Usage may still follow.
    pub(crate) fn stopped(&mut self, stop: StopReason) {
        self.stop = Some(stop);
        self.unreadable = None;
    }

    /// Sets the stop reason for a call that is not readable, with the provider's words.
    pub(crate) fn stopped_unreadable(&mut self, place: &'static str, words: &str) {
        self.stop = Some(StopReason::Other);
        self.unreadable = Some((place, words.to_owned()));
    }

    /// Marks the reply as whole: no event follows.
    pub(crate) fn end(&mut self) {
        self.is_ended = true;
        self.is_closed = true;
    }

    /// Marks the end of the events, whether the reply is whole or not.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.is_ended || self.stop.is_some()
    }

    /// Returns the stop reason of a reply that has not ended.
    pub(crate) fn stop_so_far(&self) -> StopReason {
        self.stop.unwrap_or(StopReason::Other)
    }

    /// Returns the stop reason. `None` if the reply has not ended.
    ///
    /// # Errors
    ///
    /// [`WireError::Expected`] if the provider could not read the only calls.
    pub(crate) fn stop(&self) -> Result<Option<StopReason>, WireError> {
        let calls = self.calls().next().is_some();
        if let Some((place, words)) = self.unreadable.as_ref().filter(|_| !calls) {
            return Err(WireError::Expected {
                place: (*place).to_owned(),
                expected: "a tool call that can be read".into(),
                got: words.clone(),
            });
        }
        let stop = match (self.stop, calls) {
            // Some servers report `stop`, or nothing, for a turn with tool calls.
            (Some(StopReason::Stop) | None, true) => StopReason::ToolCalls,
            (Some(StopReason::ToolCalls) | None, false) => StopReason::Stop,
            (Some(stop), _) => stop,
        };
        Ok(self.has_ended().then_some(stop))
    }

    pub(crate) fn reply(&self, parts: Vec<Part>, stop: StopReason) -> Reply {
        Reply {
            parts,
            stop,
            usage: self.usage,
            model: self.model.clone(),
        }
    }
}

impl<B> OpenBlock<B> {
    pub(crate) fn call(&self) -> Option<&ToolCall> {
        match &self.content {
            OpenContent::Call(open) => Some(&open.call),
            _ => None,
        }
    }

    /// Returns the model's output in the block so far.
    pub(crate) fn text(&self) -> &str {
        match &self.content {
            OpenContent::Text(text) | OpenContent::Thinking(text) => text,
            OpenContent::Call(open) => &open.call.arguments,
            OpenContent::Opaque { .. } => "",
        }
    }

    /// Returns the part for the model's output. `None` if there is no output.
    pub(crate) fn part(&self, stop: StopReason) -> Option<Part> {
        let OpenContent::Call(open) = &self.content else {
            let text = Some(self.text())
                .filter(|text| !text.is_empty())?
                .to_owned();
            let opaque = None;
            return Some(match self.content {
                OpenContent::Thinking(_) => Part::Thinking(Thinking { text, opaque }),
                _ => Part::text(text),
            });
        };
        let mut call = open.call.clone();
        // Some servers send empty arguments for a tool without parameters. Arguments that were cut stay
        // as they are.
        let is_whole = stop == StopReason::ToolCalls && !open.is_text;
        if is_whole && call.arguments.trim().is_empty() {
            call.arguments = "{}".into();
        }
        Some(Part::ToolCall(call))
    }
}

impl OpenContent {
    pub(crate) fn text() -> Self {
        Self::Text(String::new())
    }

    pub(crate) fn thinking() -> Self {
        Self::Thinking(String::new())
    }

    pub(crate) fn call(id: CallId, name: &str) -> Self {
        Self::from(ToolCall {
            id,
            name: name.to_owned(),
            arguments: String::new(),
            opaque: None,
        })
    }

    pub(crate) fn opaque() -> Self {
        Self::Opaque { is_told: false }
    }

    /// Returns the news of more content. The provider's own blocks are reported as a whole.
    fn delta(&self, text: String) -> Option<Delta> {
        match self {
            Self::Text(_) => Some(Delta::Text { text }),
            Self::Thinking(_) => Some(Delta::Thinking { text }),
            Self::Call(open) => Some(Delta::CallArguments {
                call: open.call.id.clone(),
                text,
            }),
            Self::Opaque { .. } => None,
        }
    }

    /// Returns `true` if both are blocks of one kind.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl From<ToolCall> for OpenContent {
    fn from(call: ToolCall) -> Self {
        Self::Call(OpenCall {
            call,
            is_told: false,
            is_text: false,
        })
    }
}
