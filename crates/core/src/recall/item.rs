//! [`RecallId`], the id of a message, and the [`RecallKey`] that a model or a user writes for it.
//! [`RecalledItem`] and [`Hit`] are the results of recalling and searching. An ambiguous key is an
//! error.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Image, Message, Part, Seq, Source};
use serde::{Deserialize, Serialize};

use super::search::{BestMatch, snippet};
use crate::store::StoreError;

/// Maximum length of a displayed key in bytes. Longer keys are cut.
pub const MAX_KEY: usize = 512;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecallId(pub Seq);

/// The requested message: an id, or another name that must match exactly one of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecallKey {
    /// The number of an item, written `#12`.
    Id(RecallId),
    /// The number of an item (`m12` or `12`) or the id of a tool call. Matches nothing if these are
    /// two different items.
    Named(String),
}

/// One complete message of a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The key is the id of several calls, or of a call and the number of another item.
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

/// The error if a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id of a message; they look like m12")]
pub struct BadRecallId(String);

impl RecalledItem {
    /// Returns the text of the message; see [`recall_text`].
    #[must_use]
    pub fn text(&self) -> String {
        recall_text(&self.message)
    }
}

impl Hit {
    pub(super) fn new(
        id: RecallId,
        kind: MessageKind,
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

impl RecallKey {
    /// Returns the sequence number that the key may stand for.
    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Id(id) => Some(id.0),
            Self::Named(name) => digits(name.strip_prefix('m').unwrap_or(name)).map(Seq),
        }
    }
}

impl From<&str> for RecallKey {
    /// Parses a key as written by a model. Removes surrounding quotes and backticks.
    fn from(text: &str) -> Self {
        let text = text.trim().trim_matches(['`', '"', '\'']);
        match text.parse() {
            Ok(id) if text.starts_with('#') => Self::Id(id),
            _ => Self::Named(text.to_owned()),
        }
    }
}

impl From<RecallId> for RecallKey {
    fn from(id: RecallId) -> Self {
        Self::Id(id)
    }
}

impl fmt::Display for RecallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Named(name) => f.write_str(&shown(name)),
        }
    }
}

impl FromStr for RecallId {
    type Err = BadRecallId;

    /// Parses `m12` and `#12`.
    fn from_str(text: &str) -> Result<Self, BadRecallId> {
        text.strip_prefix(['m', '#'])
            .and_then(digits)
            .map(|number| Self(Seq(number)))
            .ok_or_else(|| BadRecallId(shown(text)))
    }
}

impl TryFrom<String> for RecallId {
    type Error = BadRecallId;
    fn try_from(text: String) -> Result<Self, BadRecallId> {
        text.parse()
    }
}

impl From<RecallId> for String {
    fn from(id: RecallId) -> Self {
        id.to_string()
    }
}

impl From<Seq> for RecallId {
    fn from(seq: Seq) -> Self {
        Self(seq)
    }
}

impl fmt::Display for RecallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0.0)
    }
}

/// Parses a number without sign, spaces or leading zeros.
fn digits(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    (plain && !padded).then(|| text.parse().ok())?
}

fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_KEY);
    text.get(..end).unwrap_or_default().to_owned()
}

fn list(ids: &[RecallId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("#{}", id.0.0)).collect();
    ids.join(" or ")
}

/// Resolves a name to an item.
///
/// `number` is the item with that number, if it exists, and `calls` are the items with that call id,
/// each with a flag for whether it was evicted. Others are ignored if one was. If none was, the newest
/// of `calls` is meant.
///
/// # Errors
/// If no item matches, or more than one.
pub(super) fn resolve(
    key: &str,
    number: Option<(RecallId, bool)>,
    calls: &BTreeMap<RecallId, bool>,
) -> Result<RecallId, RecallError> {
    let named = calls.iter().map(|(id, is_evicted)| (*id, *is_evicted));
    let evicted = named.chain(number).filter(|(_, is_evicted)| *is_evicted);
    let mut candidates: Vec<RecallId> = evicted.map(|(id, _)| id).collect();
    if candidates.is_empty() {
        candidates.extend(calls.keys().next_back());
        candidates.extend(number.map(|(id, _)| id));
    }
    candidates.sort_unstable();
    candidates.dedup();
    match candidates.as_slice() {
        [] => Err(RecallError::Unknown(shown(key))),
        [one] => Ok(*one),
        several => Err(RecallError::Ambiguous {
            key: shown(key),
            candidates: several.iter().copied().take(10).collect(),
        }),
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
    fn a_key_is_read_as_models_write_it() {
        let id = |number| RecallKey::Id(RecallId(Seq(number)));
        let named = |name: &str| RecallKey::Named(name.to_owned());
        let table = [
            ("m12", named("m12")),
            ("#12", id(12)),
            (" `m12` ", named("m12")),
            (" `#12` ", id(12)),
            ("\"m0\"", named("m0")),
            ("12", named("12")),
            ("m012", named("m012")),
            ("m-1", named("m-1")),
            ("m", named("m")),
            ("", named("")),
            ("call_7", named("call_7")),
            ("m99999999999999999999", named("m99999999999999999999")),
            ("m１２", named("m１２")),
        ];
        for (text, key) in table {
            assert_eq!(RecallKey::from(text), key, "{text:?}");
        }
        for text in ["12", "m12", "#12"] {
            assert_eq!(RecallKey::from(text).seq(), Some(Seq(12)), "{text}");
        }
        for text in ["call_7", "m", "m012", "mm1", "m#1"] {
            assert_eq!(RecallKey::from(text).seq(), None, "{text}");
        }
    }

    #[test]
    fn an_id_survives_json() {
        let id = RecallId(Seq(12));
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"m12\"");
        assert_eq!(serde_json::from_str::<RecallId>("\"m12\"").unwrap(), id);
        assert!(serde_json::from_str::<RecallId>("\"12\"").is_err());
    }

    #[test]
    fn a_name_of_two_items_means_none_and_names_both() {
        let id = |number| RecallId(Seq(number));
        let calls = |of: &[(u64, bool)]| of.iter().map(|(seq, held)| (id(*seq), *held)).collect();
        let meant = |number: Option<u64>, of: &[(u64, bool)]| {
            let number = number.map(|number| (id(number), true));
            let meant = resolve("m3", number, &calls(of));
            meant.map_err(|error| error.to_string())
        };
        let ambiguous = |items: &str| {
            Err(format!(
                "`m3` is ambiguous: it may mean item {items}; write it like that"
            ))
        };
        assert_eq!(meant(Some(3), &[]), Ok(id(3)));
        assert_eq!(meant(Some(3), &[(3, true)]), Ok(id(3)));
        assert_eq!(meant(None, &[(9, true)]), Ok(id(9)));
        assert_eq!(meant(Some(3), &[(9, true)]), ambiguous("#3 or #9"));
        assert_eq!(meant(None, &[(5, true), (9, true)]), ambiguous("#5 or #9"));
        // An item in the view is ignored if another one was evicted.
        assert_eq!(meant(None, &[(5, false), (9, true)]), Ok(id(9)));
        assert_eq!(meant(None, &[(5, true), (9, false)]), Ok(id(5)));
        assert_eq!(meant(None, &[(5, false), (9, false)]), Ok(id(9)));
        let in_view = Some((id(3), false));
        assert_eq!(resolve("m3", in_view, &calls(&[(9, true)])), Ok(id(9)));
        let error = resolve("m3", in_view, &calls(&[(9, false)])).unwrap_err();
        assert!(error.to_string().contains("item #3 or #9"), "{error}");
        assert!(matches!(
            resolve("m3", None, &BTreeMap::new()),
            Err(RecallError::Unknown(_))
        ));
    }

    #[test]
    fn a_giant_key_is_shown_in_part() {
        let giant = "é".repeat(10_000);
        let said = resolve(&giant, None, &BTreeMap::new())
            .unwrap_err()
            .to_string();
        assert!(said.len() < 800, "{}", said.len());
        assert!(RecallKey::from(giant.as_str()).to_string().len() <= MAX_KEY);
    }
}
