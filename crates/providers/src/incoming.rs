//! [`Incoming`]: a reply while it arrives, whatever wire it is of. The readers themselves are in
//! `wire`; here is only what receiving needs to know of them.

use plimsoll_context::{Delta, Reply, Usage};
use plimsoll_wire::{WireError, anthropic, openai_chat, openai_responses};

/// A reply while it arrives.
pub(crate) trait Incoming: Default {
    /// Takes the text of one event and says what is new in it.
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError>;
    /// Whether what the model says has ended; its usage may still come.
    fn has_ended(&self) -> bool;
    /// Whether nothing more can come.
    fn is_complete(&self) -> bool;
    /// What has arrived so far.
    fn partial(&self) -> Reply;
    /// What the provider has said so far that the call used.
    fn used(&self) -> Option<Usage>;
    /// The whole reply.
    fn finish(self) -> Result<Reply, WireError>;
    /// Reads a reply that came in one piece.
    fn whole(body: &str) -> Result<Reply, WireError>;
}

impl Incoming for openai_chat::StreamState {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        Self::push(self, data)
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self)
    }

    /// Usage comes after the end, and the end mark after that.
    fn is_complete(&self) -> bool {
        false
    }

    fn partial(&self) -> Reply {
        Self::partial(self)
    }

    fn used(&self) -> Option<Usage> {
        Self::usage(self)
    }

    fn finish(self) -> Result<Reply, WireError> {
        Self::finish(self)
    }

    fn whole(body: &str) -> Result<Reply, WireError> {
        openai_chat::read_reply(body)
    }
}

impl Incoming for openai_responses::StreamState {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        Self::push(self, data)
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self)
    }

    /// The last event has everything.
    fn is_complete(&self) -> bool {
        Self::has_ended(self)
    }

    fn partial(&self) -> Reply {
        Self::partial(self)
    }

    fn used(&self) -> Option<Usage> {
        Self::usage(self)
    }

    fn finish(self) -> Result<Reply, WireError> {
        Self::finish(self)
    }

    fn whole(body: &str) -> Result<Reply, WireError> {
        openai_responses::read_reply(body)
    }
}

impl Incoming for anthropic::StreamState {
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        Self::push(self, data)
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self)
    }

    /// Usage comes with the end, and the end mark after it is worth a moment, not more.
    fn is_complete(&self) -> bool {
        Self::is_complete(self)
    }

    fn partial(&self) -> Reply {
        Self::partial(self)
    }

    fn used(&self) -> Option<Usage> {
        Self::usage(self)
    }

    fn finish(self) -> Result<Reply, WireError> {
        Self::finish(self)
    }

    fn whole(body: &str) -> Result<Reply, WireError> {
        anthropic::read_reply(body)
    }
}
