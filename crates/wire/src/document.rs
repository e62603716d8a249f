//! [`Document`]: the messages and the tools of a request, and the place of each message in it.
//!
//! A [`DocumentFormat`] reads the entries of a protocol's list of messages, and writes messages as such
//! entries.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Range;

use plimsoll_context::{Message, Opaque, ToolSpec};
use serde_json::value::RawValue;

use crate::error::{CHAT, WireError};
use crate::raw::{RawObject, parse, with_list};
use crate::read::wrong;

/// All blocks of a content.
pub(crate) const WHOLE: Range<usize> = 0..usize::MAX;

/// A request, or a bare list of its messages, that was read.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// The messages. A system prompt beside the list is the first of them.
    pub messages: Vec<Message>,
    /// The place of each message in the request.
    pub spans: Vec<MessageSpan>,
    /// The tools that the caller runs.
    pub tools: Vec<ToolSpec>,
    /// The tools that the provider runs, as JSON.
    pub hosted_tools: Vec<Opaque>,
    /// The names of the tools that the model does not see until a tool reference names them.
    pub deferred_tools: BTreeSet<String>,
}

/// The place of a message in the request that it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSpan {
    /// The entries of the list. Empty for a system prompt beside the list. One entry may contain
    /// several messages, and one message may consist of several entries.
    pub entries: Range<usize>,
    /// The blocks in the content of the entry. Beyond its end for all of them.
    pub blocks: Range<usize>,
}

/// How a protocol reads and writes a list of messages.
#[derive(Debug)]
pub struct DocumentFormat {
    /// The key of the list in a request.
    pub key: &'static str,
    /// The key of the system prompt beside the list, if there is one.
    pub system: Option<&'static str>,
    /// Whether a turn may consist of several entries.
    pub has_items: bool,
    pub(crate) read_system: fn(&str) -> Result<Option<Message>, WireError>,
    /// Reads entries. The last argument returns the place of an entry.
    pub(crate) read_entries: fn(Entries<'_>, Places<'_>) -> ReadEntries,
    /// Reads the tools of a request with these keys. Its messages are already read.
    pub(crate) read_tools: fn(&RawObject<'_>, &mut Document) -> Result<(), WireError>,
    /// Returns the entries of each message as JSON texts, written without the messages around them.
    /// A summary is framed and sent in the user's role.
    pub write: fn(&[&Message]) -> NewEntries,
}

/// The JSON texts of the entries of a list. Each may be made when it is read, so that not all are in memory.
pub(crate) type Entries<'e> = &'e mut dyn Iterator<Item = Cow<'e, str>>;
/// The messages of a list, or the reason why it cannot be read.
pub(crate) type ReadEntries = Result<Vec<(Message, MessageSpan)>, WireError>;
/// The entries of each new message.
pub type NewEntries = Result<Vec<Vec<String>>, WireError>;
/// Returns the place of an entry in errors.
pub(crate) type Places<'p> = &'p dyn Fn(usize) -> String;

impl Document {
    /// Reads a bare list of messages or items, or a request that contains one.
    ///
    /// # Errors
    ///
    /// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a
    /// wrong kind.
    pub fn read(text: &str, format: &DocumentFormat) -> Result<Self, WireError> {
        let (object, list) = with_list(text, format.key)?;
        let list = list.ok_or_else(|| WireError::expected(format.key, CHAT, None))?;
        let is_text = format.has_items && object.is_some() && list.starts_with('"');
        let entries: Vec<&RawValue> = if list.starts_with('[') {
            parse(list)?
        } else if is_text {
            Vec::new()
        } else {
            return Err(wrong(list, format.key, CHAT));
        };
        let mut entries = entries.into_iter().map(|raw| Cow::Borrowed(raw.get()));
        let keys = object.as_ref();
        let system = keys.and_then(|keys| keys.get(format.system?));
        let mut document = Self::of_entries(keys, system, &mut entries, format)?;
        if is_text {
            let text: String = parse(list)?;
            document.push(Message::user(text), MessageSpan::entry(0));
        }
        Ok(document)
    }

    /// Reads a request from its parts: the keys beside the list (`None` for a bare list), the system prompt
    /// beside it, and the entries of the list.
    ///
    /// # Errors
    ///
    /// [`WireError::Expected`] with the place of the first value of a wrong kind.
    pub fn of_entries(
        keys: Option<&RawObject<'_>>,
        system: Option<&str>,
        entries: Entries<'_>,
        format: &DocumentFormat,
    ) -> Result<Self, WireError> {
        let mut document = Self::default();
        if let Some(message) = system.map(format.read_system).transpose()?.flatten() {
            document.push(message, MessageSpan::BESIDE);
        }
        let place = |index| format!("{}[{index}]", format.key);
        for (message, span) in (format.read_entries)(entries, &place)? {
            document.push(message, span);
        }
        if let Some(keys) = keys {
            (format.read_tools)(keys, &mut document)?;
        }
        Ok(document)
    }

    fn push(&mut self, message: Message, span: MessageSpan) {
        self.messages.push(message);
        self.spans.push(span);
    }
}

impl MessageSpan {
    /// The span of a message that is no entry of the list.
    const BESIDE: Self = Self {
        entries: 0..0,
        blocks: WHOLE,
    };

    /// Creates the span of a message that consists of one entry.
    pub(crate) fn entry(index: usize) -> Self {
        Self {
            entries: index..index + 1,
            blocks: WHOLE,
        }
    }

    /// Returns `true` for a system prompt beside the list.
    #[must_use]
    pub fn is_beside(&self) -> bool {
        self.entries.is_empty()
    }
}
