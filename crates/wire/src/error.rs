//! [`WireError`]: why a text of the wire could not be read. Not a provider's refusal of a
//! request; `overflow.rs` classifies those.

use plimsoll_context::{Bytes, Reply};
use serde_json::Value;
use thiserror::Error;

/// Why a text of the wire could not be read.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WireError {
    /// The text is not JSON.
    #[error("not valid JSON: {reason}")]
    NotJson {
        /// What the parser says, with line and column.
        reason: String,
    },
    /// Something stands where something else is expected.
    #[error("{place}: expected {expected}, got {got}")]
    Expected {
        /// Where: `messages[3].content`.
        place: String,
        /// What is expected there.
        expected: String,
        /// What stands there.
        got: String,
    },
    /// The provider sent an error instead of (the rest of) a reply. Its words are kept whole:
    /// [`classify`](crate::overflow::classify) tells what to do about it.
    #[error("the provider answered with an error: {body}")]
    Provider {
        /// The error as JSON text.
        body: String,
    },
    /// The stream ended before the reply did: neither a finish reason nor an end mark came.
    #[error("the stream was cut in the middle of the reply; try again")]
    Cut {
        /// What had arrived.
        partial: Box<Reply>,
    },
    /// More arrived than one reply may hold.
    #[error("the reply exceeds {limit} bytes; ask for fewer output tokens")]
    TooLarge {
        /// The bound.
        limit: Bytes,
    },
    /// The reply consists of more parts than one reply may hold, however small they are.
    #[error(
        "the reply contains more than {limit} tool calls or other parts; ask the model for fewer \
         calls at a time, or try another model"
    )]
    TooManyParts {
        /// The bound.
        limit: usize,
    },
}

impl WireError {
    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        let reason = error.to_string();
        // The parser's own bound against texts that would exhaust the stack.
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

    /// Returns the error for a value of a wrong kind, or for one that is missing.
    #[doc(hidden)]
    pub fn expected(place: impl Into<String>, expected: &str, got: Option<&Value>) -> Self {
        Self::Expected {
            place: place.into(),
            expected: expected.to_owned(),
            got: got.map_or("nothing", kind).to_owned(),
        }
    }
}

/// What a chat is, for a JSON object that is none.
pub const CHAT: &str = "an array of messages (a chat is an object with `messages` or `input`, or such an \
                    array alone)";

/// The JSON kind of a value, as error texts name it.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
