//! [`Message`] and [`Part`]: the content of a session, independent of any provider's format. `wire`
//! converts messages to the formats of providers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The messages of a view, shared with the request made from it. A view that grows while such a request
/// exists copies one pointer for each message.
pub type MessageList = Arc<Vec<Arc<Message>>>;

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Message {
    /// Instructions of the host, with a higher priority than the user's.
    System {
        /// The content.
        parts: Vec<Part>,
    },
    /// A message from the user.
    User {
        /// The content.
        parts: Vec<Part>,
    },
    /// A message from the model: text, thinking and tool calls in the order in which they arrived.
    Assistant {
        /// The content.
        parts: Vec<Part>,
    },
    /// The result of one tool call.
    #[strum(serialize = "tool")]
    ToolResult(ToolResult),
    /// A note from the host in the user's role: a limit was reached, or a call was refused, for
    /// example. It is never taken for a task, and not protected once the model has read it.
    Notice {
        /// The text, sent in the user's role.
        text: String,
    },
    /// A summary that replaces messages removed from the view.
    Summary {
        /// The text, sent in the user's role as a reference for the model.
        text: String,
    },
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// A file that the provider reads directly, such as a PDF.
    File(File),
    /// The model's reasoning.
    Thinking(Thinking),
    /// The model's request to run a tool. Only in an assistant's message.
    ToolCall(ToolCall),
    /// A provider-specific block that is passed through unchanged.
    Opaque(Opaque),
}

/// An image, by URL or as data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Image {
    /// The URL or the data of the image.
    pub source: Source,
    /// Width and height in pixels, if known. They determine the image's token count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, u32)>,
    /// The requested detail (`low`, `high`, `auto`), as the provider spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A file, by URL or as data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct File {
    /// The file name, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The URL or the data of the file.
    pub source: Source,
}

/// The location of an image or a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Source {
    /// A URL that the provider fetches, or an id that it knows.
    Url {
        /// The URL or id.
        url: String,
    },
    /// The data itself.
    Data {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The data in base64.
        base64: String,
    },
}

/// The model's reasoning, with the data that its provider needs to get back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thinking {
    /// The readable text; empty if the provider does not disclose it.
    pub text: String,
    /// A signature or encrypted content, returned to the provider byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// Opaque data of a provider, stored unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Opaque {
    /// The provider format of the data: `openai-chat`, `anthropic`, …. It is never sent to another
    /// provider.
    pub origin: String,
    /// The JSON text as it was received.
    pub data: String,
}

/// The id of a tool call; unique among the calls of its message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CallId(pub String);

/// The model's request to run a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The id that the provider assigned.
    pub id: CallId,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments as JSON text, exactly as the model wrote them. They may be invalid.
    pub arguments: String,
    /// Data that the provider needs to get back with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// The result of one tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// The id of the call.
    pub call: CallId,
    /// Text, images or files.
    pub parts: Vec<Part>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl Message {
    /// Creates a system message with one text.
    pub fn system(text: impl Into<String>) -> Self {
        Self::System {
            parts: vec![Part::text(text)],
        }
    }

    /// Creates a user message with one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            parts: vec![Part::text(text)],
        }
    }

    /// Creates an assistant message with one text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant {
            parts: vec![Part::text(text)],
        }
    }

    /// Creates a successful tool result with one text.
    pub fn result(call: CallId, text: impl Into<String>) -> Self {
        Self::ToolResult(ToolResult {
            call,
            parts: vec![Part::text(text)],
            is_error: false,
        })
    }

    /// Creates a failed tool result with one text.
    pub fn error_result(call: CallId, text: impl Into<String>) -> Self {
        Self::ToolResult(ToolResult {
            call,
            parts: vec![Part::text(text)],
            is_error: true,
        })
    }

    /// Checks whether the message may replace another: it has the same role, the same call and
    /// outcome, and the same calls.
    pub(crate) fn is_form_of(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::System { .. }, Self::System { .. })
            | (Self::User { .. }, Self::User { .. })
            | (Self::Notice { .. }, Self::Notice { .. })
            | (Self::Summary { .. }, Self::Summary { .. }) => true,
            (Self::Assistant { .. }, Self::Assistant { .. }) => {
                self.calls()
                    .map(|call| (&call.id, &call.name))
                    .eq(now.calls().map(|call| (&call.id, &call.name)))
                    && self.thinking().eq(now.thinking())
            }
            (Self::ToolResult(to), Self::ToolResult(now)) => {
                to.call == now.call && to.is_error == now.is_error
            }
            _ => false,
        }
    }

    fn thinking(&self) -> impl Iterator<Item = &Part> {
        self.parts()
            .iter()
            .filter(|part| matches!(part, Part::Thinking(_)))
    }

    /// Returns the parts of the message. A notice or a summary has none.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::System { parts } | Self::User { parts } | Self::Assistant { parts } => parts,
            Self::ToolResult(result) => &result.parts,
            Self::Notice { .. } | Self::Summary { .. } => &[],
        }
    }

    /// Returns the tool calls of an assistant's message, in order. Other messages have none.
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

    /// Returns all text parts joined by line feeds, for display and search.
    #[must_use]
    pub fn text(&self) -> String {
        if let Self::Notice { text } | Self::Summary { text } = self {
            return text.clone();
        }
        Part::texts(self.parts())
    }

    /// Returns `true` for a system message.
    #[must_use]
    pub fn is_system(&self) -> bool {
        matches!(self, Self::System { .. })
    }

    /// Returns `true` for a message from the user.
    #[must_use]
    pub fn is_user(&self) -> bool {
        matches!(self, Self::User { .. })
    }
}

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns all text parts joined by line feeds.
    #[must_use]
    pub fn texts(parts: &[Self]) -> String {
        let texts: Vec<&str> = parts.iter().filter_map(Self::as_text).collect();
        texts.join("\n")
    }

    /// Returns the text of a text part, or `None` for other parts.
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
