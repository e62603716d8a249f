//! [`ArchivedItem`], an item to be archived, its [`RecallId`], and the [`RecallKey`] that a model or a
//! user writes for it. [`RecalledItem`], [`Hit`] and [`ArchiveRow`] are the results of recalling,
//! searching and listing. An ambiguous key is an error.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Image, Message, Part, Seq, Source};
use serde::{Deserialize, Serialize};

use crate::archive::search::{BestMatch, snippet};
use crate::store::StoreError;

/// Maximum length of a displayed key in bytes. Longer keys are cut.
pub const MAX_KEY: usize = 512;

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

/// Id of an archived item: `m` followed by its sequence number in the session, for example `m12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecallId(pub Seq);

/// The requested item: an id, or another name that must match exactly one item of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecallKey {
    /// The number of an item, written `#12`.
    Id(RecallId),
    /// The number of an item (`m12` or `12`) or the id of a tool call. Matches nothing if these are
    /// two different items.
    Named(String),
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

/// Why nothing was recalled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// No item of this session has that name.
    #[error(
        "nothing of this session is archived as `{0}`; ids look like m12 and stand where something left, and recall_search finds what left by its words"
    )]
    Unknown(
        /// The key.
        String,
    ),
    /// The item was archived but has expired.
    #[error(
        "expired: the archive no longer holds {0}; do again what gave it, for example call the tool again"
    )]
    Expired(
        /// The expired item.
        RecallId,
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
    /// The archive itself fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The error if a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no id of something archived; they look like m12")]
pub struct BadRecallId(String);

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

/// Returns an archived item with its message, for stores.
#[must_use]
pub fn recalled(row: ArchiveRow, message: Arc<Message>) -> RecalledItem {
    RecalledItem {
        id: row.id,
        kind: row.kind,
        tool: row.tool,
        call: row.call,
        left: row.left,
        why: row.why,
        message,
    }
}

/// Resolves a name to an item, for stores.
///
/// `number` is the item with that number, if it exists or has existed. `calls` are the items with
/// that call id, each with a flag for whether it is still held. Expired items are ignored if
/// another one is still held.
///
/// # Errors
/// If no item matches, or more than one.
pub fn resolve(
    key: &str,
    number: Option<RecallId>,
    calls: &BTreeMap<RecallId, bool>,
) -> Result<RecallId, RecallError> {
    let held = calls.iter().filter(|(_, is_held)| **is_held);
    let mut candidates: Vec<RecallId> = held.map(|(id, _)| *id).collect();
    if candidates.is_empty() {
        candidates.extend(calls.keys().next_back());
    }
    candidates.extend(number);
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
            let meant = resolve("m3", number.map(id), &calls(of));
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
        // An expired item is ignored if another one is held.
        assert_eq!(meant(None, &[(5, false), (9, true)]), Ok(id(9)));
        assert_eq!(meant(None, &[(5, true), (9, false)]), Ok(id(5)));
        assert_eq!(meant(None, &[(5, false), (9, false)]), Ok(id(9)));
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
