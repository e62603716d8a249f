//! [`Script`]: what the model says, request by request. One JSON object a line, so that it can be
//! written by hand. Not how it is said on a wire.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::MockError;

/// Turns of a script, at most.
pub const MAX_SCRIPT: usize = 100_000;

/// What the model does when it is asked. All keys are optional.
///
/// ```
/// use plimsoll_mock::Script;
/// let script = Script::parse(r#"
/// {"think": "A file would tell.", "call": [{"name": "read", "arguments": {"path": "a"}}]}
/// {"fail": 429, "message": "Rate limit reached", "retry_after": 1}
/// {"say": "Done.", "slow_ms": 5}
/// {"say": "This breaks off here and", "cut": true}
/// {"say": "And so on.", "repeat": true}
/// "#)?;
/// assert_eq!(script.len(), 5);
/// # Ok::<(), plimsoll_mock::MockError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// It reasons first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<String>,
    /// It says this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// It calls tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub call: Vec<Call>,
    /// The request fails with this HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<u16>,
    /// What the failure says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Seconds of its Retry-After header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Why the model stopped, in the wire's words, where it is not what the rest makes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// Milliseconds before each piece of the answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow_ms: u64,
    /// The connection breaks in the middle of the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The answer never ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hang: bool,
    /// It is said to every further request too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// A tool call of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// The arguments: JSON, or a text that is sent as it is, valid or not.
    pub arguments: Value,
}

/// What the model says, request by request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script(VecDeque<Turn>);

impl Script {
    /// Of these turns.
    #[must_use]
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self(turns.into_iter().take(MAX_SCRIPT).collect())
    }

    /// Reads one turn a line; empty lines and those that begin with `#` say nothing.
    ///
    /// # Errors
    /// Where a line is no turn, or where there are too many.
    pub fn parse(text: &str) -> Result<Self, MockError> {
        let mut turns = VecDeque::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let turn = serde_json::from_str(line).map_err(|error| MockError::Script {
                line: at + 1,
                why: error.to_string(),
            })?;
            turns.push_back(turn);
        }
        match turns.len() > MAX_SCRIPT {
            true => Err(MockError::TooLong(MAX_SCRIPT)),
            false => Ok(Self(turns)),
        }
    }

    /// How many turns are left.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next turn; one that repeats stays.
    pub(crate) fn next(&mut self) -> Option<Turn> {
        if self.0.len() == 1 && self.0.front().is_some_and(|turn| turn.repeat) {
            return self.0.front().cloned();
        }
        self.0.pop_front()
    }
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
            call: vec![Call {
                name: name.into(),
                arguments,
            }],
            ..Self::default()
        }
    }

    /// The same to every further request.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        self.repeat = true;
        self
    }
}

impl Call {
    /// The arguments as the wire has them.
    pub(crate) fn arguments(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_named() {
        let fault = |text: &str| Script::parse(text).unwrap_err().to_string();
        assert!(
            fault("{\"say\": \"a\"}\n\n{\"sya\": \"b\"}")
                .starts_with("line 3 of the script cannot be read: unknown field `sya`")
        );
        assert!(fault("say hello").starts_with("line 1 of the script"));
    }

    #[test]
    fn the_last_turn_may_repeat() {
        let mut script =
            Script::parse("{\"say\":\"a\"}\n# so on\n{\"say\":\"b\",\"repeat\":true}").unwrap();
        let said: Vec<String> = (0..4)
            .map(|_| script.next().unwrap().say.unwrap())
            .collect();
        assert_eq!(said, ["a", "b", "b", "b"]);
        assert_eq!(Script::default().next(), None);
    }
}
