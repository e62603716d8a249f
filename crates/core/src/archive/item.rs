//! [`Archived`], an item on its way into the archive, and [`Recalled`], [`Hit`] and [`ArchiveRow`],
//! what comes back out. Not how it is held; that is a store's business.

use std::fmt;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Image, Message, Part, Seq, Source};
use serde::{Deserialize, Serialize};

use crate::archive::key::RecallId;
use crate::archive::words::{Found, snippet};

/// One item that is about to leave the view or to be shortened in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Archived {
    /// Its number in the session.
    pub seq: Seq,
    /// The whole of it.
    pub message: Arc<Message>,
    /// The tool, where it is a result.
    pub tool: Option<String>,
    /// Why it leaves: the plan's trigger and stages, in a few words.
    pub why: String,
}

/// Whose words an archived item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The host's, above the user's.
    System,
    /// A person's.
    User,
    /// The model's.
    Assistant,
    /// A tool's.
    ToolResult,
    /// The host's, in the user's place.
    Notice,
    /// A summary of what left before.
    Summary,
}

/// One archived item, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recalled {
    /// Its id.
    pub id: RecallId,
    /// Whose words it is.
    pub kind: Kind,
    /// The tool, where it is a result.
    pub tool: Option<String>,
    /// The call, where it is a result.
    pub call: Option<CallId>,
    /// Seconds since 1970 when it left.
    pub left: u64,
    /// Why it left.
    pub why: String,
    /// The message as it was.
    pub message: Arc<Message>,
}

/// One item that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// Its id.
    pub id: RecallId,
    /// Whose words it is.
    pub kind: Kind,
    /// The tool, where it is a result.
    pub tool: Option<String>,
    /// The length of its text.
    pub bytes: Bytes,
    /// Where in its text the snippet begins, in bytes.
    pub offset: u64,
    /// The piece of its text where most of the terms stand together, 200 bytes at most.
    pub snippet: String,
    /// How many of the query's terms it has.
    pub terms: usize,
}

/// One item in a list of what a session's archive has or had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveRow {
    /// Its id.
    pub id: RecallId,
    /// Whose words it is.
    pub kind: Kind,
    /// The tool, where it is a result.
    pub tool: Option<String>,
    /// The call, where it is a result.
    pub call: Option<CallId>,
    /// The length of its text.
    pub bytes: Bytes,
    /// Seconds since 1970 when it left.
    pub left: u64,
    /// Why it left.
    pub why: String,
    /// Whether the archive has let go of it.
    pub expired: bool,
}

impl Archived {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> RecallId {
        RecallId(self.seq)
    }

    /// Whose words it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind::of(&self.message)
    }

    /// The call, where it is a result.
    #[must_use]
    pub fn call(&self) -> Option<&CallId> {
        match self.message.as_ref() {
            Message::ToolResult(result) => Some(&result.call),
            _ => None,
        }
    }
}

impl Recalled {
    /// Its text, see [`recall_text`].
    #[must_use]
    pub fn text(&self) -> String {
        recall_text(&self.message)
    }
}

impl Hit {
    /// A hit in a text; for stores.
    #[must_use]
    pub fn new(id: RecallId, kind: Kind, tool: Option<String>, text: &str, found: Found) -> Self {
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

impl Kind {
    /// The kind of a message.
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

    /// Its name in JSON, and in a store's columns.
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

    /// The kind of that name.
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

impl fmt::Display for Kind {
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

/// The text of a message, as it is recalled and searched: its text parts byte for byte, calls as
/// `name arguments`, and a word in brackets for what is no text, joined by line feeds. A message
/// of one text is exactly that text. Thinking is left out: it belongs to its provider.
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
            Kind::System,
            Kind::User,
            Kind::Assistant,
            Kind::ToolResult,
            Kind::Notice,
        ] {
            assert_eq!(Kind::named(kind.as_str()), Some(kind));
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.as_str());
        }
    }
}
