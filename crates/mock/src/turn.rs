//! [`Turn`]: the model's answer to one request, independent of the protocol.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::gate::{Gate, Opener};

/// The model's answer to one request. All keys are optional; unknown keys are an error.
/// ```
/// use plimsoll_mock::Script;
/// let script = Script::parse(r#"
/// {"think": "A file would tell.", "call": [{"name": "read", "arguments": {"path": "a"}}]}
/// {"fail": 429, "message": "Rate limit reached", "retry_after": 1}
/// {"say": "Half of it, and then", "fail_in_stream": 529}
/// {"say": "Done.", "slow_ms": 5}
/// {"say": "This breaks off here and", "cut": true}
/// {"say": "And so on.", "repeat": true}
/// "#)?;
/// assert_eq!(script.len(), 6);
/// # Ok::<(), plimsoll_mock::MockError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// The reasoning before the answer. If the protocol lets the request disable reasoning, it is
    /// only sent if allowed.
    pub think: Option<String>,
    /// Whether to add a redacted thinking block (Anthropic Messages).
    pub redacted: bool,
    /// The text of the answer.
    pub say: Option<String>,
    /// The citations of `say`, in the protocol's format (Anthropic Messages, OpenAI Responses).
    pub citations: Vec<Value>,
    /// Blocks or items in the protocol's format, such as those of hosted tools. They follow the
    /// text and are sent unchanged (Anthropic Messages, OpenAI Responses).
    pub blocks: Vec<Value>,
    /// The tool calls.
    pub call: Vec<Call>,
    /// The text after the calls.
    pub say_after: Option<String>,
    /// The stop reason in the protocol's terms, if it differs from the default for this turn.
    pub stop: Option<String>,
    /// Usage counts that override the server's own, in the protocol's terms.
    pub usage: Map<String, Value>,
    /// The HTTP status with which the request fails.
    pub fail: Option<u16>,
    /// The status of a failure in the middle of the stream. An answer without streaming fails with
    /// this status.
    pub fail_in_stream: Option<u16>,
    /// The message of the failure.
    pub message: Option<String>,
    /// The seconds in the Retry-After header.
    pub retry_after: Option<u64>,
    /// The complete body of the answer, as a text that is sent unchanged or as JSON. Replaces the
    /// fields above.
    pub body: Option<Value>,
    /// The complete events of the answer, as texts that are sent unchanged after `data: ` or as
    /// JSON. Replaces the fields above.
    pub events: Option<Vec<Value>>,
    /// Additional headers of the answer.
    pub headers: BTreeMap<String, String>,
    /// Milliseconds before each piece of the answer.
    pub slow_ms: u64,
    /// Whether each byte of the answer is sent as a separate piece.
    pub bytewise: bool,
    /// Whether the connection breaks in the middle of the answer, or at the end of `body` and
    /// `events`.
    pub cut: bool,
    /// Whether the answer stops in the middle and never ends, or at the end of `body` and `events`.
    pub hang: bool,
    /// Whether the turn also answers every further request.
    pub repeat: bool,
    /// The position at which the answer waits for a test.
    #[serde(skip)]
    pub gate: Option<Gate>,
}

/// A tool call of a turn.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The name of the tool.
    pub name: String,
    /// The arguments: JSON, or a text that is sent unchanged, valid or not.
    #[serde(default)]
    pub arguments: Value,
    /// The id of the call. Default: chosen by the server.
    #[serde(default)]
    pub id: Option<String>,
}

impl Turn {
    /// Creates a turn with a text.
    #[must_use]
    pub fn say(text: impl Into<String>) -> Self {
        Self {
            say: Some(text.into()),
            ..Self::default()
        }
    }

    /// Creates a turn with a tool call.
    #[must_use]
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            call: vec![Call::new(name, arguments)],
            ..Self::default()
        }
    }

    /// Creates a turn that fails with this status.
    #[must_use]
    pub fn fail(status: u16) -> Self {
        Self {
            fail: Some(status),
            ..Self::default()
        }
    }

    /// Creates a turn with this body: a text that is sent unchanged, or JSON.
    #[must_use]
    pub fn body(status: u16, body: impl Into<Value>) -> Self {
        Self {
            fail: Some(status),
            body: Some(body.into()),
            ..Self::default()
        }
    }

    /// Creates a turn with these events: texts that are sent unchanged, or JSON.
    #[must_use]
    pub fn events<E: Into<Value>>(events: impl IntoIterator<Item = E>) -> Self {
        Self {
            events: Some(events.into_iter().map(Into::into).collect()),
            ..Self::default()
        }
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sends each byte as a separate piece.
    #[must_use]
    pub fn bytewise(mut self) -> Self {
        self.bytewise = true;
        self
    }

    /// Breaks the connection in the middle of the answer, or at the end of a body or of events.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    /// Stops the answer in the middle, or at the end of a body or of events, and never ends it.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.hang = true;
        self
    }

    /// Waits before the piece with this index until the opener is used.
    #[must_use]
    pub fn gated(mut self, at: usize) -> (Self, Opener) {
        let (gate, opener) = Gate::new(at);
        self.gate = Some(gate);
        (self, opener)
    }

    /// Uses the turn for every further request.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        self.repeat = true;
        self
    }
}

impl Call {
    /// Creates a call of a tool with arguments.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            name: name.into(),
            arguments,
            id: None,
        }
    }

    /// Returns the arguments as text.
    pub(crate) fn text(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            Value::Null => "{}".to_owned(),
            other => other.to_string(),
        }
    }
}
