//! [`Turn`]: what the model does when it is asked once. Not how it is said on a wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::gate::{Gate, Opener};

/// What the model does when it is asked. All keys are optional; an unknown one is refused.
///
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// It reasons first. Where a wire lets the request say whether it may, only if it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<String>,
    /// It reasons once more, and nobody may read it (Anthropic Messages).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// It says this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// What `say` cites, in the wire's own form (Anthropic Messages, OpenAI Responses).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Value>,
    /// Blocks or items of the wire's own, such as those of a server's tools; they follow what is
    /// said and are given as they stand (Anthropic Messages, OpenAI Responses).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Value>,
    /// It calls tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub call: Vec<Call>,
    /// It says this after its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say_after: Option<String>,
    /// Why the model stopped, in the wire's words, where it is not what the rest makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Counts that are reported in place of the server's own, in the wire's words.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub usage: Map<String, Value>,
    /// The request fails with this HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<u16>,
    /// The answer begins well and then fails, as if with this status; one that is not streamed
    /// fails with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_in_stream: Option<u16>,
    /// What the failure says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Seconds of its Retry-After header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The answer's body in place of all that: a text as it stands, or JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The answer's events in place of all that: texts as they stand behind `data: `, or JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<Value>>,
    /// Headers of the answer besides the usual ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Milliseconds before each piece of the answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow_ms: u64,
    /// Each byte of the answer is a piece.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bytewise: bool,
    /// The connection breaks in the middle of the answer, or at the end of `body` and `events`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The answer stops in the middle and never ends, or at the end of `body` and `events`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hang: bool,
    /// It is said to every further request too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    /// Where the answer waits for a test.
    #[serde(skip)]
    pub gate: Option<Gate>,
}

/// A tool call of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// The arguments: JSON, or a text that is sent as it is, valid or not.
    #[serde(default)]
    pub arguments: Value,
    /// Its id, where it is not the server's own choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Turn {
    /// It says this.
    #[must_use]
    pub fn say(text: impl Into<String>) -> Self {
        Self {
            say: Some(text.into()),
            ..Self::default()
        }
    }

    /// It calls a tool.
    #[must_use]
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            call: vec![Call::new(name, arguments)],
            ..Self::default()
        }
    }

    /// The request fails with this status.
    #[must_use]
    pub fn fail(status: u16) -> Self {
        Self {
            fail: Some(status),
            ..Self::default()
        }
    }

    /// The answer has this body: a text as it stands, or JSON.
    #[must_use]
    pub fn body(status: u16, body: impl Into<Value>) -> Self {
        Self {
            fail: Some(status),
            body: Some(body.into()),
            ..Self::default()
        }
    }

    /// The answer has these events: texts as they stand, or JSON.
    #[must_use]
    pub fn events<E: Into<Value>>(events: impl IntoIterator<Item = E>) -> Self {
        Self {
            events: Some(events.into_iter().map(Into::into).collect()),
            ..Self::default()
        }
    }

    /// The answer has this header too.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Each byte is a piece.
    #[must_use]
    pub fn bytewise(mut self) -> Self {
        self.bytewise = true;
        self
    }

    /// The connection breaks: in the middle, or at the end of a body or of events.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    /// Nothing more comes: from the middle on, or from the end of a body or of events.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.hang = true;
        self
    }

    /// It waits before the piece at this place until it is told to go on.
    #[must_use]
    pub fn gated(mut self, at: usize) -> (Self, Opener) {
        let (gate, opener) = Gate::new(at);
        self.gate = Some(gate);
        (self, opener)
    }

    /// The same to every further request.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        self.repeat = true;
        self
    }
}

impl Call {
    /// Of that tool, with these arguments.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            name: name.into(),
            arguments,
            id: None,
        }
    }

    /// The arguments as text.
    pub(crate) fn text(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            Value::Null => "{}".to_owned(),
            other => other.to_string(),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
