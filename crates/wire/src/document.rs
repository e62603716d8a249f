//! [`Document`]: a request that was read, with the text of each message, so that it can be written back.
//!
//! Messages that were not edited keep their bytes, and so do all other keys. A [`DocumentFormat`] reads
//! and edits the entries of a protocol's list of messages; everything else is the same for all protocols.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Range;

use plimsoll_context::{Message, Opaque, ToolSpec};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::WireError;
use crate::raw::{Raw, RawObject, parse, with_list};

/// All blocks of a content.
pub(crate) const WHOLE: Range<usize> = 0..usize::MAX;

/// A request, or a bare list of its messages, that was read.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    /// The messages. A system prompt beside the list is the first of them. May be taken out: writing
    /// does not need them.
    pub messages: Vec<Message>,
    /// The place of each message in the request.
    pub spans: Vec<MessageSpan>,
    /// The tools that the caller runs.
    pub tools: Vec<ToolSpec>,
    /// The tools that the provider runs, as JSON.
    pub hosted_tools: Vec<Opaque>,
    /// The names of the tools that the model does not see until a tool reference names them.
    pub deferred_tools: BTreeSet<String>,
    entries: Vec<&'a str>,
    /// The keys of the request. `None` for a bare list.
    object: Option<RawObject<'a>>,
    format: &'static DocumentFormat,
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

/// One message of a document that is written back.
#[derive(Debug, Clone, Copy)]
pub enum Slot<'m> {
    /// The original message at this index, byte for byte.
    Original(usize),
    /// The original message at this index with the content of this one.
    Edited(usize, &'m Message),
    /// A new message.
    New(&'m Message),
}

/// How a protocol writes a list of messages.
#[derive(Debug)]
pub struct DocumentFormat {
    /// The key of the list in a request.
    pub key: &'static str,
    /// The key of the system prompt beside the list, if there is one.
    pub(crate) system: Option<&'static str>,
    /// Whether a turn may consist of several entries.
    pub has_items: bool,
    /// The values that errors name if the list is missing, and if it is of another type.
    pub(crate) expected: [&'static str; 2],
    /// The name of a list without a request around it.
    pub(crate) bare: &'static str,
    pub(crate) read_system: fn(&str) -> Result<Option<Message>, WireError>,
    /// Reads entries. The last argument returns the place of an entry.
    pub(crate) read_entries: fn(&[&str], Places<'_>) -> ReadEntries,
    pub(crate) read_tools: fn(&mut Document<'_>) -> Result<(), WireError>,
    /// Returns the system prompt with another content.
    pub(crate) edit_system: fn(&str, &Message) -> Result<String, WireError>,
    /// Returns the entries of messages that are edited or not all kept.
    pub(crate) edit: fn(&[&str], &[Member<'_>]) -> Result<Entries, WireError>,
    /// Returns the entries of each new message. The second argument contains the entries of the kept
    /// messages.
    pub(crate) write: fn(&[&Message], &[&str]) -> NewEntries,
}

/// The messages of a list, or the reason why it cannot be read.
pub(crate) type ReadEntries = Result<Vec<(Message, MessageSpan)>, WireError>;
/// The texts of entries.
pub(crate) type Entries = Vec<String>;
/// The entries of each new message.
pub(crate) type NewEntries = Result<Vec<Entries>, WireError>;
/// Returns the place of an entry in errors.
pub(crate) type Places<'p> = &'p dyn Fn(usize) -> String;

/// A message that is written as a part of its entries.
#[derive(Debug)]
pub(crate) struct Member<'m> {
    pub(crate) blocks: Range<usize>,
    /// The new content, if the message was edited.
    pub(crate) edited: Option<&'m Message>,
    /// Whether it loses its thinking.
    pub(crate) unthinking: bool,
}

impl<'a> Document<'a> {
    /// Reads a bare list of messages or items, or a request that contains one.
    ///
    /// # Errors
    ///
    /// [`WireError::NotJson`], or [`WireError::Expected`] with the place of the first value of a
    /// wrong kind.
    pub fn read(text: &'a str, format: &'static DocumentFormat) -> Result<Self, WireError> {
        let (object, list) = with_list(text, format.key)?;
        let [missing, expected] = format.expected;
        let list = list.ok_or_else(|| WireError::expected(format.key, missing, None))?;
        // The name of a bare list is not part of the place of an entry.
        let (place, key) = match &object {
            None if format.bare != format.key => (format.bare, ""),
            _ => (format.key, format.key),
        };
        let is_text = format.has_items && object.is_some() && list.starts_with('"');
        if !list.starts_with('[') && !is_text {
            let value: Value = parse(list)?;
            return Err(WireError::expected(place, expected, Some(&value)));
        }
        let mut document = Self::new(object, list, format)?;
        document.read_system()?;
        if is_text {
            let text: String = parse(list)?;
            document.push(Message::user(text), MessageSpan::entry(0));
        } else {
            let place = |index| format!("{key}[{index}]");
            for (message, span) in (format.read_entries)(&document.entries, &place)? {
                document.push(message, span);
            }
        }
        (format.read_tools)(&mut document)?;
        Ok(document)
    }

    /// Creates a document without reading its messages. A text in place of the list is its only entry.
    fn new(
        object: Option<RawObject<'a>>,
        list: &'a str,
        format: &'static DocumentFormat,
    ) -> Result<Self, WireError> {
        let entries = if list.starts_with('[') {
            parse::<Vec<&'a RawValue>>(list)?
                .into_iter()
                .map(RawValue::get)
                .collect()
        } else {
            vec![list]
        };
        Ok(Self {
            messages: Vec::new(),
            spans: Vec::new(),
            tools: Vec::new(),
            hosted_tools: Vec::new(),
            deferred_tools: BTreeSet::new(),
            entries,
            object,
            format,
        })
    }

    /// Reads the system prompt beside the list.
    fn read_system(&mut self) -> Result<(), WireError> {
        let raw = self.format.system.and_then(|key| self.key(key));
        if let Some(message) = raw.map(self.format.read_system).transpose()?.flatten() {
            self.push(message, MessageSpan::BESIDE);
        }
        Ok(())
    }

    fn push(&mut self, message: Message, span: MessageSpan) {
        self.messages.push(message);
        self.spans.push(span);
    }

    /// Returns `true` for a request, and `false` for a bare list.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.object.is_some()
    }

    /// Returns the texts of the entries that a message was read from.
    #[must_use]
    pub fn originals(&self, message: usize) -> &[&'a str] {
        let span = self.spans.get(message);
        let entries = span.and_then(|span| self.entries.get(span.entries.clone()));
        entries.unwrap_or_default()
    }

    /// Returns the raw JSON text of a key beside the list, for example of `max_tokens`.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&'a str> {
        self.object.as_ref()?.get(name)
    }

    /// Returns `true` if the first message is a system prompt beside the list.
    #[must_use]
    pub fn has_system(&self) -> bool {
        self.spans.first().is_some_and(MessageSpan::is_beside)
    }

    /// Writes the request with other messages, in its original shape.
    ///
    /// All other keys stay unchanged. Entries with all their messages keep their bytes. Blocks or items
    /// that an edit did not touch keep theirs. A system prompt beside the list is removed if it has no
    /// slot. A slot is ignored if its index is beyond the messages.
    ///
    /// # Errors
    ///
    /// [`WireError::NotJson`] or [`WireError::Expected`] if an original cannot be read again.
    pub fn write<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
    ) -> Result<String, WireError> {
        self.write_without(slots, &BTreeSet::new())
    }

    /// Like [`Document::write`], but removes the thinking from the messages in `unthinking`.
    ///
    /// # Errors
    ///
    /// Those of [`Document::write`].
    pub fn write_without<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
        unthinking: &BTreeSet<usize>,
    ) -> Result<String, WireError> {
        let mut slots: Vec<Slot<'m>> = slots.into_iter().collect();
        slots.retain(|slot| slot.index().is_none_or(|index| index < self.spans.len()));
        let mut new = self.new_entries(&slots)?.into_iter();
        let mut system = self.has_system().then_some(None);
        let mut list: Vec<Cow<'_, str>> = Vec::new();
        for group in slots.chunk_by(|one, next| self.are_together(one, next)) {
            let span = group.first().and_then(|slot| self.span(slot));
            match (span, group) {
                (Some(span), [slot, ..]) if span.is_beside() => {
                    let key = self.format.system.unwrap_or_default();
                    let raw = self.key(key).unwrap_or("null");
                    let edit = |message| (self.format.edit_system)(raw, message);
                    system = slot.edited().map(edit).transpose()?.map(Some);
                }
                (Some(span), group) => list.extend(self.group(span, group, unthinking)?),
                (None, _) => list.extend(new.next().into_iter().flatten().map(Cow::Owned)),
            }
        }
        // A plain text in place of the list stays one. With other entries, it becomes a user message.
        if list.len() > 1 {
            for raw in list.iter_mut().filter(|raw| raw.starts_with('"')) {
                *raw = format!(r#"{{"role":"user","content":{raw}}}"#).into();
            }
        }
        let entries: Vec<&str> = list.iter().map(AsRef::as_ref).collect();
        let system = system.as_ref().map(Option::as_deref);
        Ok(self.with_entries(&entries, self.format.system.zip(system)))
    }

    /// Returns the entries of each new message.
    fn new_entries(&self, slots: &[Slot<'_>]) -> Result<Vec<Vec<String>>, WireError> {
        let messages = slots.iter().filter_map(|slot| match slot {
            Slot::New(message) => Some(*message),
            Slot::Original(_) | Slot::Edited(..) => None,
        });
        let messages: Vec<&Message> = messages.collect();
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let kept = slots.iter().filter_map(Slot::index);
        let kept = kept.flat_map(|index| self.originals(index)).copied();
        (self.format.write)(&messages, &kept.collect::<Vec<_>>())
    }

    fn span(&self, slot: &Slot<'_>) -> Option<&MessageSpan> {
        self.spans.get(slot.index()?)
    }

    /// Returns `true` if two slots are written as parts of the same entries.
    fn are_together(&self, one: &Slot<'_>, next: &Slot<'_>) -> bool {
        let spans = self.span(one).zip(self.span(next));
        one.index() < next.index()
            && spans.is_some_and(|(one, next)| !one.is_beside() && one.entries == next.entries)
    }

    /// Returns the entries of messages that are written together.
    fn group(
        &self,
        MessageSpan { entries, .. }: &MessageSpan,
        slots: &[Slot<'_>],
        unthinking: &BTreeSet<usize>,
    ) -> Result<Vec<Cow<'a, str>>, WireError> {
        let raws = self.entries.get(entries.clone()).unwrap_or_default();
        let is_before = |one: &MessageSpan| one.is_beside() || one.entries.start < entries.start;
        let first = self.spans.partition_point(is_before);
        let all = self.spans.iter().skip(first);
        let all = all.take_while(|one| one.entries == *entries).count();
        let members = slots.iter().map(|slot| Member {
            blocks: self.span(slot).map_or(WHOLE, |span| span.blocks.clone()),
            edited: slot.edited(),
            unthinking: slot
                .index()
                .is_some_and(|index| unthinking.contains(&index)),
        });
        let members: Vec<Member<'_>> = members.collect();
        if members.len() == all && members.iter().all(Member::is_untouched) {
            return Ok(raws.iter().copied().map(Cow::Borrowed).collect());
        }
        let edited = (self.format.edit)(raws, &members)?;
        Ok(edited.into_iter().map(Cow::Owned).collect())
    }

    /// Returns the request with these entries. `change` is another key and its value; a value of `None`
    /// removes the key.
    fn with_entries(&self, entries: &[&str], change: Option<(&str, Option<&str>)>) -> String {
        let list = match entries {
            [one] if one.starts_with('"') => Raw::Text(one),
            entries => Raw::List(entries),
        };
        let entry = (self.format.key, Some(list));
        let change = change.map(|(key, value)| (key, value.map(Raw::Text)));
        match (&self.object, change) {
            (Some(object), Some(change)) => object.with_raw(&[change, entry]),
            (Some(object), None) => object.with_raw(&[entry]),
            (None, Some(change @ (_, Some(_)))) => RawObject::default().with_raw(&[change, entry]),
            (None, _) => list.to_text(),
        }
    }
}

impl<'m> Slot<'m> {
    /// Returns the index of the original message, unless it is new.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        match self {
            Self::Original(index) | Self::Edited(index, _) => Some(*index),
            Self::New(_) => None,
        }
    }

    fn edited(&self) -> Option<&'m Message> {
        match self {
            Self::Edited(_, message) => Some(message),
            Self::Original(_) | Self::New(_) => None,
        }
    }
}

impl Member<'_> {
    fn is_untouched(&self) -> bool {
        self.edited.is_none() && !self.unthinking
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
