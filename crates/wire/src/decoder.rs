//! [`StreamDecoder`]: the interface of the protocols' stream decoders. [`StreamState`] implements it
//! for all: a protocol's [`ReplyEvents`] map its events to operations on an [`OpenReply`].

use std::fmt::Debug;

use plimsoll_context::{Delta, Part, Reply, StopReason, Usage};

use crate::error::WireError;
use crate::open_reply::OpenReply;

/// The text that ends a stream at most servers.
const DONE: &str = "[DONE]";

/// Assembles a reply from the events of a stream.
///
/// A decoder receives the text of each event (the `data:` field of a server-sent event) and is
/// independent of the transport.
pub trait StreamDecoder: Debug + Send {
    /// Decodes the text of one event and returns the new content.
    ///
    /// # Errors
    ///
    /// [`WireError::Provider`] for an error in the stream, [`WireError::NotJson`] or
    /// [`WireError::Expected`] for a broken event, [`WireError::TooLarge`] and
    /// [`WireError::TooManyParts`] beyond the limits of a reply. The earlier content stays available
    /// through [`StreamDecoder::partial`].
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError>;

    /// Decodes a reply that was not streamed and returns its content.
    ///
    /// # Errors
    ///
    /// Those of [`StreamDecoder::push`].
    fn push_whole(&mut self, body: &str) -> Result<Vec<Delta>, WireError>;

    /// Returns `true` if the model has finished its reply. Usage may still follow.
    fn has_ended(&self) -> bool;

    /// Returns `true` if no further event can follow.
    fn is_complete(&self) -> bool;

    /// Returns the reply as far as it has arrived.
    fn partial(&self) -> Reply;

    /// Returns `true` if nothing has arrived, not even the model's name.
    fn is_empty(&self) -> bool {
        let partial = self.partial();
        partial.parts.is_empty() && partial.model.is_none()
    }

    /// Returns the usage that the provider has reported so far.
    fn usage(&self) -> Option<Usage>;

    /// Returns the whole reply.
    ///
    /// # Errors
    ///
    /// [`WireError::Cut`], with the partial reply, if the stream ended before the reply did.
    /// [`WireError::Expected`] if the provider could not read a call that the model wrote.
    fn finish(&self) -> Result<Reply, WireError>;

    /// Reads a reply that was not streamed.
    ///
    /// # Errors
    ///
    /// Those of [`StreamDecoder::push`] and [`StreamDecoder::finish`].
    fn read_whole(&mut self, body: &str) -> Result<Reply, WireError> {
        self.push_whole(body)?;
        self.finish()
    }
}

/// How the events of one protocol change a reply.
pub trait ReplyEvents {
    /// Whether `[DONE]` ends a reply that has no other end.
    const DONE_ENDS: bool = false;

    /// Takes one event.
    ///
    /// # Errors
    ///
    /// Those of [`StreamDecoder::push`].
    fn event(&mut self, data: &str) -> Result<(), WireError>;

    /// Takes a reply that was not streamed.
    ///
    /// # Errors
    ///
    /// Those of [`StreamDecoder::push`].
    fn whole(&mut self, body: &str) -> Result<(), WireError>;

    /// Returns the content received so far as parts of a message.
    fn parts(&self, stop: StopReason) -> Vec<Part>;
}

/// A reply while it arrives in the events of a protocol: `E` is the protocol's state of the reply, `B` that
/// of a block, besides the model's output.
#[derive(Debug, Clone, Default)]
pub struct StreamState<E, B> {
    pub(crate) events: E,
    pub(crate) reply: OpenReply<B>,
}

impl<E, B: Default> StreamState<E, B> {
    pub(crate) fn of(events: E) -> Self {
        let reply = OpenReply::default();
        Self { events, reply }
    }
}

impl<E: Default, B: Default> StreamState<E, B> {
    /// Creates the state of an empty reply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<E: Debug + Send, B: Debug + Send> StreamDecoder for StreamState<E, B>
where
    Self: ReplyEvents,
{
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError> {
        let data = data.trim();
        if data.is_empty() || self.reply.is_ended() {
            return Ok(Vec::new());
        }
        if data == DONE {
            if Self::DONE_ENDS {
                self.reply.end()
            } else {
                self.reply.close()
            }
            return Ok(Vec::new());
        }
        let read = self.event(data);
        let deltas = self.reply.take_deltas();
        read.map(|()| deltas)
    }

    fn push_whole(&mut self, body: &str) -> Result<Vec<Delta>, WireError> {
        let read = self.whole(body);
        let deltas = self.reply.take_deltas();
        read.map(|()| deltas)
    }

    fn has_ended(&self) -> bool {
        self.reply.has_ended()
    }

    fn is_complete(&self) -> bool {
        self.reply.is_closed()
    }

    fn partial(&self) -> Reply {
        let stop = self.reply.stop_so_far();
        self.reply.reply(self.parts(stop), stop)
    }

    fn usage(&self) -> Option<Usage> {
        self.reply.usage()
    }

    fn finish(&self) -> Result<Reply, WireError> {
        let Some(stop) = self.reply.stop()? else {
            let partial = Box::new(self.partial());
            return Err(WireError::Cut { partial });
        };
        Ok(self.reply.reply(self.parts(stop), stop))
    }
}
