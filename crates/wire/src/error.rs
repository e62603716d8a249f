//! [`WireError`]: the reason why a response or a request could not be read. Refusals of requests are
//! classified in `overflow.rs`.

use plimsoll_context::{Bytes, Reply};
use serde_json::Value;
use thiserror::Error;

use crate::value::kind;

/// The reason why a text could not be read.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WireError {
    /// The text is not JSON.
    #[error("not valid JSON: {reason}")]
    NotJson {
        /// The parser's message, with line and column.
        reason: String,
    },
    /// A value is of another type than expected, or is missing.
    #[error("{place}: expected {expected}, got {got}")]
    Expected {
        /// The place, such as `messages[3].content`.
        place: String,
        /// The expected value.
        expected: String,
        /// The actual value.
        got: String,
    },
    /// The provider sent an error instead of a reply, or in the middle of one. Its text is kept whole,
    /// and [`classify`](crate::overflow::classify) determines the reaction.
    #[error("the provider answered with an error: {body}")]
    Provider {
        /// The error as JSON text.
        body: String,
    },
    /// The stream ended before the reply did, with neither a finish reason nor an end mark.
    #[error("the stream was cut in the middle of the reply; try again")]
    Cut {
        /// The reply as far as it had arrived.
        partial: Box<Reply>,
    },
    /// The reply is larger than allowed.
    #[error("the reply exceeds {limit} bytes; ask for fewer output tokens")]
    TooLarge {
        /// The limit.
        limit: Bytes,
    },
    /// The reply has more parts than allowed, regardless of their size.
    #[error(
        "the reply contains more than {limit} tool calls or other parts; ask the model for fewer \
         calls at a time, or try another model"
    )]
    TooManyParts {
        /// The limit.
        limit: usize,
    },
}

impl WireError {
    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        let reason = error.to_string();
        // The parser's own limit, which protects the stack.
        let deep = reason.strip_prefix("recursion limit exceeded");
        Self::NotJson {
            reason: match deep {
                Some(place) => format!(
                    "nested deeper than 127 levels{place}; take that value out or put it in as text"
                ),
                None => reason,
            },
        }
    }

    /// Returns the error for a value of the wrong type, or for a missing value.
    #[doc(hidden)]
    pub fn expected(place: impl Into<String>, expected: &str, got: Option<&Value>) -> Self {
        Self::Expected {
            place: place.into(),
            expected: expected.to_owned(),
            got: got.map_or("nothing", kind).to_owned(),
        }
    }
}

/// The description of a chat, for errors about a JSON object of another shape.
pub(crate) const CHAT: &str = "an array of messages (a chat is an object with `messages` or `input`, or such an \
                    array alone)";
