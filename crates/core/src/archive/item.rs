//! [`ArchivedItem`], an item to be archived, and [`RecalledItem`], [`Hit`] and [`ArchiveRow`], the
//! results of recalling, searching and listing.

use std::fmt;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Image, Message, Part, Seq, Source};
use serde::{Deserialize, Serialize};

use crate::archive::key::RecallId;
use crate::archive::words::{BestMatch, snippet};

/// An item that is about to be removed from the view or shortened in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedItem {
    /// Sequence number in the session.
    pub seq: Seq,
    /// The complete message.
    pub message: Arc<Message>,
    /// Name of the tool, if it is a tool result.
    pub tool: Option<String>,
    /// The reason: the plan's trigger and stages in a few words.
    pub why: String,
}

/// The origin of an archived item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArchivedKind {
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

/// One complete archived item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecalledItem {
    /// Id of the item.
    pub id: RecallId,
    /// Kind of message.
    pub kind: ArchivedKind,
    /// Name of the tool, if it is a tool result.
    pub tool: Option<String>,
    /// Id of the tool call, if it is a tool result.
    pub call: Option<CallId>,
    /// When it was archived, in seconds since 1970.
    pub left: u64,
    /// Why it was archived.
    pub why: String,
    /// The original message.
    pub message: Arc<Message>,
}

/// One search result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// Id of the item.
    pub id: RecallId,
    /// Kind of message.
    pub kind: ArchivedKind,
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

/// One entry of the list of current and expired items of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveRow {
    /// Id of the item.
    pub id: RecallId,
    /// Kind of message.
    pub kind: ArchivedKind,
    /// Name of the tool, if it is a tool result.
    pub tool: Option<String>,
    /// Id of the tool call, if it is a tool result.
    pub call: Option<CallId>,
    /// Length of the text in bytes.
    pub bytes: Bytes,
    /// When it was archived, in seconds since 1970.
    pub left: u64,
    /// Why it was archived.
    pub why: String,
    /// Whether the item has expired.
    pub expired: bool,
}

impl ArchivedItem {
    /// Returns the id of the item.
    #[must_use]
    pub fn id(&self) -> RecallId {
        RecallId(self.seq)
    }

    /// Returns the kind of message.
    #[must_use]
    pub fn kind(&self) -> ArchivedKind {
        ArchivedKind::of(&self.message)
    }

    /// Returns the id of the tool call, if it is a tool result.
    #[must_use]
    pub fn call(&self) -> Option<&CallId> {
        match self.message.as_ref() {
            Message::ToolResult(result) => Some(&result.call),
            _ => None,
        }
    }
}

impl RecalledItem {
    /// Returns the text of the message; see [`recall_text`].
    #[must_use]
    pub fn text(&self) -> String {
        recall_text(&self.message)
    }
}

impl Hit {
    /// Creates a hit from a match in a text, for stores.
    #[must_use]
    pub fn new(
        id: RecallId,
        kind: ArchivedKind,
        tool: Option<String>,
        text: &str,
        found: BestMatch,
    ) -> Self {
        let (offset, piece) = snippet(text, found.at);
        Self {
            id,
            kind,
            tool,
            bytes: Bytes(text.len() as u64),
            offset: offset as u64,
            snippet: piece.to_owned(),
            terms: found.terms,
        }
    }
}

impl ArchivedKind {
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

    /// Returns the name used in JSON and in the columns of a store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolResult => "tool_result",
            Self::Notice => "notice",
            Self::Summary => "summary",
        }
    }

    /// Parses such a name. Returns `None` for an unknown name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let kinds = [
            Self::System,
            Self::User,
            Self::Assistant,
            Self::ToolResult,
            Self::Notice,
            Self::Summary,
        ];
        kinds.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for ArchivedKind {
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
    fn every_kind_is_found_by_its_name() {
        for kind in [
            ArchivedKind::System,
            ArchivedKind::User,
            ArchivedKind::Assistant,
            ArchivedKind::ToolResult,
            ArchivedKind::Notice,
        ] {
            assert_eq!(ArchivedKind::named(kind.as_str()), Some(kind));
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.as_str());
        }
    }
}
