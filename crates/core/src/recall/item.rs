//! [`RecallId`], the id of a message. [`RecalledItem`] and [`Hit`] are the results of recalling and
//! searching.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Image, Message, Part, Seq, Source, clip};
use serde::{Serialize, Serializer};

use crate::store::StoreError;

/// Maximum length of a displayed key in bytes. Longer keys are cut.
pub const MAX_KEY: usize = 512;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A system message.
    System,
    /// A user message.
    User,
    /// An assistant message.
    Assistant,
    /// A tool result.
    ToolResult,
    /// A notice from the host, in the role of the user.
    Notice,
    /// A summary of earlier messages.
    Summary,
}

/// Id of a message: `m` followed by its sequence number in the session, for example `m12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecallId(pub Seq);

/// One complete message of a log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecalledItem {
    /// Id of the item.
    pub id: RecallId,
    /// Kind of message.
    pub kind: MessageKind,
    /// Name of the tool, if it is a tool result.
    pub tool: Option<String>,
    /// Id of the tool call, if it is a tool result.
    pub call: Option<CallId>,
    /// The original message.
    pub message: Arc<Message>,
}

/// One search result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Id of the item.
    pub id: RecallId,
    /// Kind of message.
    pub kind: MessageKind,
    /// Name of the tool, if it is a tool result.
    pub tool: Option<String>,
    /// Length of the text in bytes.
    pub bytes: Bytes,
    /// Offset of the snippet in the text, in bytes.
    pub offset: u64,
    /// The part of the text with the most terms close together, at most 200 bytes.
    pub snippet: String,
    /// Number of query terms that the text contains.
    pub terms: usize,
}

/// Why nothing was recalled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// No message of this session has that name.
    #[error(
        "nothing of this session is called `{0}`; ids look like m12 and stand where something left, and recall_search finds what left by its words"
    )]
    Unknown(
        /// The key.
        String,
    ),
    /// The key is the id of several results, or of a result and the number of another item.
    #[error("`{key}` is ambiguous: it may mean item {}; write it like that", list(.candidates))]
    Ambiguous {
        /// The key.
        key: String,
        /// The items that match the key, at most 10.
        candidates: Vec<RecallId>,
    },
    /// The query contains no word.
    #[error("the query has no word in it; give one or more words that the text has")]
    NoWords,
    /// The log cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RecalledItem {
    /// Returns the text of the message; see [`recall_text`].
    #[must_use]
    pub fn text(&self) -> String {
        recall_text(&self.message)
    }
}

impl MessageKind {
    /// Returns the kind of a message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        match message {
            Message::System { .. } => Self::System,
            Message::User { .. } => Self::User,
            Message::Assistant { .. } => Self::Assistant,
            Message::ToolResult(_) => Self::ToolResult,
            Message::Notice { .. } => Self::Notice,
            Message::Summary { .. } => Self::Summary,
        }
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system message",
            Self::User => "user message",
            Self::Assistant => "assistant message",
            Self::ToolResult => "tool result",
            Self::Notice => "notice",
            Self::Summary => "summary",
        })
    }
}

impl FromStr for RecallId {
    type Err = RecallError;

    /// Parses `m12`, `#12` and `12`.
    fn from_str(text: &str) -> Result<Self, RecallError> {
        let number = text.strip_prefix(['m', '#']).unwrap_or(text);
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let is_padded = number.len() > 1 && number.starts_with('0');
        match number.parse() {
            Ok(number) if is_plain && !is_padded => Ok(Self(Seq(number))),
            _ => Err(RecallError::Unknown(shown(text))),
        }
    }
}

impl Serialize for RecallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for RecallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0.0)
    }
}

pub(super) fn shown(text: &str) -> String {
    clip(text, Bytes(MAX_KEY as u64)).to_owned()
}

fn list(ids: &[RecallId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("#{}", id.0.0)).collect();
    ids.join(" or ")
}

/// Returns the text of a message as it is recalled and searched.
///
/// Text parts are copied byte for byte, tool calls become `name arguments`, and other parts a word
/// in brackets. Parts are joined by line feeds, so a message with a single text part is exactly
/// that text. Thinking is omitted, because only its provider can use it.
#[must_use]
pub fn recall_text(message: &Message) -> String {
    match message {
        Message::Notice { text } | Message::Summary { text } => text.clone(),
        _ => {
            let pieces: Vec<String> = message.parts().iter().filter_map(piece).collect();
            pieces.join("\n")
        }
    }
}

fn piece(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text.clone()),
        Part::ToolCall(call) => Some(format!("{} {}", call.name, call.arguments)),
        Part::Image(Image { source, .. }) => Some(format!("[image: {}]", source_name(source))),
        Part::File(file) => {
            let name = file.name.as_deref().unwrap_or("without a name");
            Some(format!("[file {name}: {}]", source_name(&file.source)))
        }
        Part::Thinking(_) | Part::Opaque(_) => None,
    }
}

fn source_name(source: &Source) -> String {
    match source {
        Source::Url { url } => url.clone(),
        Source::Data { media_type, base64 } => {
            format!("{media_type}, {} bytes of base64", base64.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::{Thinking, ToolCall};

    #[test]
    fn the_text_of_one_text_is_exactly_it() {
        for text in ["", "0", "false", "null", "  two\r\nlines \n", "\u{0}é🦀"] {
            let call = CallId("c".to_owned());
            let messages = [
                Message::user(text),
                Message::result(call.clone(), text),
                Message::error_result(call, text),
                Message::Notice {
                    text: text.to_owned(),
                },
                Message::Summary {
                    text: text.to_owned(),
                },
            ];
            for message in messages {
                assert_eq!(recall_text(&message), text);
            }
        }
    }

    #[test]
    fn calls_keep_their_arguments_and_what_is_no_text_is_named() {
        let message = Message::Assistant {
            parts: vec![
                Part::Thinking(Thinking {
                    text: "secret".to_owned(),
                    opaque: None,
                }),
                Part::text("I look."),
                Part::ToolCall(ToolCall {
                    id: CallId("c".to_owned()),
                    name: "read".to_owned(),
                    arguments: "{\"path\": 1.50}".to_owned(),
                    opaque: None,
                }),
                Part::Image(Image {
                    source: Source::Data {
                        media_type: "image/png".to_owned(),
                        base64: "AAAA".to_owned(),
                    },
                    size: None,
                    detail: None,
                }),
            ],
        };
        assert_eq!(
            recall_text(&message),
            "I look.\nread {\"path\": 1.50}\n[image: image/png, 4 bytes of base64]"
        );
    }

    #[test]
    fn an_id_is_read_as_models_write_it() {
        for text in ["12", "m12", "#12"] {
            assert_eq!(text.parse(), Ok(RecallId(Seq(12))), "{text}");
        }
        let long = "m99999999999999999999";
        for text in [
            "call_7", "m", "", "m012", "mm1", "m#1", "m-1", "m+1", "m１２", long,
        ] {
            let bad = RecallError::Unknown(text.to_owned());
            assert_eq!(text.parse::<RecallId>(), Err(bad), "{text}");
        }
        let id = RecallId(Seq(12));
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"m12\"");
    }
}
