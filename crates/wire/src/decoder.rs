//! [`StreamDecoder`]: the interface of the protocols' stream decoders.

use std::fmt::Debug;

use plimsoll_context::{Delta, Reply, Usage};

use crate::error::WireError;

/// Assembles a reply from the events of a stream.
///
/// A decoder receives the text of each event (the `data:` field of a server-sent event) and knows
/// nothing of the transport.
pub trait StreamDecoder: Debug + Send {
    /// Decodes the text of one event and returns what is new in it.
    ///
    /// # Errors
    ///
    /// [`WireError::Provider`] for an error in the stream, [`WireError::NotJson`] or
    /// [`WireError::Expected`] for a broken event, [`WireError::TooLarge`] and
    /// [`WireError::TooManyParts`] beyond the bounds of a reply. What had arrived stays readable
    /// through [`StreamDecoder::partial`].
    fn push(&mut self, data: &str) -> Result<Vec<Delta>, WireError>;

    /// Returns `true` if the model has finished its reply. Usage may still follow.
    fn has_ended(&self) -> bool;

    /// Returns `true` if no further event can follow.
    fn is_complete(&self) -> bool {
        false
    }

    /// Returns what has arrived so far.
    fn partial(&self) -> Reply;

    /// Returns the usage that the provider has reported so far.
    fn usage(&self) -> Option<Usage>;

    /// Returns the whole reply.
    ///
    /// # Errors
    ///
    /// [`WireError::Cut`], with what had arrived, if the stream ended before the reply did.
    fn finish(&self) -> Result<Reply, WireError>;

    /// Reads a reply that was not streamed.
    ///
    /// # Errors
    ///
    /// Those of [`StreamDecoder::push`] and [`StreamDecoder::finish`].
    fn read_whole(&mut self, body: &str) -> Result<Reply, WireError>;
}
