//! What is said: a [`Message`] and its [`Part`]s. Not the form any provider wants; that is `wire`.

use serde::{Deserialize, Deserializer, Serialize};

use crate::tagged::FirstTag;

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions of the host, above the user's.
    System {
        /// What it says.
        parts: Vec<Part>,
    },
    /// What a person says.
    User {
        /// What it says.
        parts: Vec<Part>,
    },
    /// What the model says: text, thinking and tool calls in the order in which they came.
    Assistant {
        /// What it says.
        parts: Vec<Part>,
    },
    /// What one tool call returned.
    ToolResult(ToolResult),
    /// What the host says in the user's place: a limit reached, a call refused. Never a task, and
    /// never protected once it has been read.
    Notice {
        /// What it says; sent in the user's role.
        text: String,
    },
    /// A summary that stands for messages which left the view.
    Summary {
        /// What it says; sent to the model as a reference in the user's role.
        text: String,
    },
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Image),
    /// A file that the provider reads by itself (a PDF, say).
    File(File),
    /// The model's reasoning.
    Thinking(Thinking),
    /// A request of the model to run a tool; only in an assistant's message.
    ToolCall(ToolCall),
    /// A provider's own block that is passed through untouched.
    Opaque(Opaque),
}

/// An image, by address or by value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Image {
    /// Where the pixels are.
    pub source: Source,
    /// Width and height in pixels, where known: they decide what the image weighs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, u32)>,
    /// The detail asked for (`low`, `high`, `auto`), as the provider spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A file, by address or by value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct File {
    /// Its name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where its bytes are.
    pub source: Source,
}

/// Where the bytes of an image or a file are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// An address that the provider fetches, or an id that it knows.
    Url {
        /// The address or id.
        url: String,
    },
    /// The bytes themselves.
    Data {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The bytes in base64.
        base64: String,
    },
}

/// The model's reasoning, with what its provider needs to have back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thinking {
    /// What may be read of it; empty where the provider keeps it to itself.
    pub text: String,
    /// Signature or encrypted content, given back byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// Bytes of a provider that only it understands; kept exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Opaque {
    /// Whose they are: `openai-chat`, `anthropic`, …; another provider never gets them.
    pub origin: String,
    /// The JSON text as it was received.
    pub data: String,
}

/// Names one tool call; unique among the calls of its message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CallId(pub String);

/// A request of the model to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Its id, as the provider gave it.
    pub id: CallId,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments as JSON text, exactly as the model wrote them; not always valid.
    pub arguments: String,
    /// What the provider needs to have back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// What one tool call returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// The call that it answers.
    pub call: CallId,
    /// Text, images or files.
    pub parts: Vec<Part>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// The variants of [`Message`], for its way from JSON: what serde derives for a tagged enum takes twice as long.
/// The compiler sees that they are the same; that none is missing, in tests.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Serialize))]
#[serde(remote = "Message", rename_all = "snake_case")]
enum MessageFields {
    System { parts: Vec<Part> },
    User { parts: Vec<Part> },
    Assistant { parts: Vec<Part> },
    ToolResult(ToolResult),
    Notice { text: String },
    Summary { text: String },
}

/// The variants of [`Part`], likewise.
#[derive(Deserialize)]
#[cfg_attr(test, derive(Serialize))]
#[serde(remote = "Part", rename_all = "snake_case")]
enum PartFields {
    Text { text: String },
    Image(Image),
    File(File),
    Thinking(Thinking),
    ToolCall(ToolCall),
    Opaque(Opaque),
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        MessageFields::deserialize(FirstTag::new(deserializer, "role"))
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PartFields::deserialize(FirstTag::new(deserializer, "type"))
    }
}

impl Message {
    /// A system message of one text.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System {
            parts: vec![Part::text(text)],
        }
    }

    /// A user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            parts: vec![Part::text(text)],
        }
    }

    /// An assistant message of one text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant {
            parts: vec![Part::text(text)],
        }
    }

    /// A successful tool result of one text.
    pub fn result(call: CallId, text: impl Into<String>) -> Self {
        Self::ToolResult(ToolResult {
            call,
            parts: vec![Part::text(text)],
            is_error: false,
        })
    }

    /// A failed tool result of one text.
    pub fn error_result(call: CallId, text: impl Into<String>) -> Self {
        Self::ToolResult(ToolResult {
            call,
            parts: vec![Part::text(text)],
            is_error: true,
        })
    }

    /// Its parts; none for a notice or a summary.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::System { parts } | Self::User { parts } | Self::Assistant { parts } => parts,
            Self::ToolResult(result) => &result.parts,
            Self::Notice { .. } | Self::Summary { .. } => &[],
        }
    }

    /// The tool calls of an assistant's message, in order; none for any other.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let parts = match self {
            Self::Assistant { parts } => parts.as_slice(),
            _ => &[],
        };
        parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// All its text parts joined by line feeds; for people and for search, not for sending.
    #[must_use]
    pub fn text(&self) -> String {
        if let Self::Notice { text } | Self::Summary { text } = self {
            return text.clone();
        }
        let texts: Vec<&str> = self.parts().iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }

    /// Returns `true` if it instructs the model on behalf of the host.
    #[must_use]
    pub fn is_system(&self) -> bool {
        matches!(self, Self::System { .. })
    }

    /// Whether a person said it.
    #[must_use]
    pub fn is_user(&self) -> bool {
        matches!(self, Self::User { .. })
    }
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Its text, where it is a text part.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            _ => None,
        }
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_json_byte_for_byte() {
        let message = Message::Assistant {
            parts: vec![
                Part::Thinking(Thinking {
                    text: "hm".into(),
                    opaque: Some(Opaque {
                        origin: "anthropic".into(),
                        data: "{\"b\":1,  \"a\":2}".into(),
                    }),
                }),
                Part::text("done"),
                Part::ToolCall(ToolCall {
                    id: CallId("c1".into()),
                    name: "read".into(),
                    arguments: "{\"path\": 1.50}".into(),
                    opaque: None,
                }),
            ],
        };
        let json = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
        assert_eq!(message.calls().count(), 1);
        assert_eq!(message.text(), "done");
    }
}
