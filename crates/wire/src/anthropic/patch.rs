//! Writing a request back: messages that nobody touched as the very bytes that were read, of the
//! others only the blocks changed that were edited. Not rendering a request; `render.rs` does.

use std::collections::BTreeSet;

use plimsoll_context::{Message, Part, ToolResult};

use super::MARK;
use super::read::Chat;
use super::read_block::{self, parts};
use super::write::{MessagesParts, MessagesWriter, RULES, block_json};
use crate::aligned::{PiecePatcher, is_thinking};
use crate::arguments;
use crate::compose::Writer;
use crate::error::WireError;
use crate::frames;
use crate::normalize::Normalizer;
use crate::object::{Object, array};
use crate::openai_chat::Slot;
use crate::raw::{RawObject, parse, pieces, quoted};
use crate::turns::Turn;

impl Chat<'_> {
    /// Writes the request with other messages, in the shape in which it was read, all other keys
    /// kept as they were. What several messages stand in keeps its bytes where all of them do; of an
    /// edited message each block that the edit did not touch does, and so do the breakpoints of what
    /// stays. A system prompt beside the messages that has no slot is taken out. A slot whose index
    /// is beyond the request is left out.
    ///
    /// # Errors
    ///
    /// [`WireError::NotJson`] or [`WireError::Expected`] if an original is not what was read.
    pub fn write<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
    ) -> Result<String, WireError> {
        self.write_without(slots, &BTreeSet::new())
    }

    /// The same, but these messages lose their thinking.
    pub fn write_without<'m>(
        &self,
        slots: impl IntoIterator<Item = Slot<'m>>,
        without: &BTreeSet<usize>,
    ) -> Result<String, WireError> {
        let mut list: Vec<String> = Vec::new();
        let mut system = self
            .from
            .first()
            .is_some_and(Option::is_none)
            .then_some(None);
        for group in self.groups(slots) {
            match group {
                Group::System(None) => system = None,
                Group::System(Some(edited)) => {
                    let raw = self.key("system").unwrap_or("null");
                    system = Some(Some(content(raw, &[(0..usize::MAX, Some(edited), false)])?));
                }
                Group::Entry(entry, members) => list.extend(self.entry(entry, &members, without)?),
                Group::New(message) => list.extend(
                    rendered(message)
                        .iter()
                        .map(|turn| MessagesWriter.json(turn)),
                ),
            }
        }
        let list = array(list.iter().map(String::as_str));
        let Some(object) = &self.object else {
            return Ok(list);
        };
        let mut changes = vec![("messages", Some(list))];
        changes.extend(system.map(|system| ("system", system)));
        Ok(object.with(&changes))
    }

    /// The slots, those together that are written as one message.
    fn groups<'m>(&self, slots: impl IntoIterator<Item = Slot<'m>>) -> Vec<Group<'m>> {
        let mut groups: Vec<Group<'m>> = Vec::new();
        for slot in slots {
            let (index, edited) = match slot {
                Slot::New(message) => {
                    groups.push(Group::New(message));
                    continue;
                }
                Slot::Original(index) => (index, None),
                Slot::Edited(index, message) => (index, Some(message)),
            };
            let Some(from) = self.from.get(index) else {
                continue;
            };
            let Some(entry) = *from else {
                groups.push(Group::System(edited));
                continue;
            };
            let member = Member { index, edited };
            match groups.last_mut() {
                Some(Group::Entry(last, members))
                    if *last == entry && members.last().is_some_and(|one| one.index < index) =>
                {
                    members.push(member);
                }
                _ => groups.push(Group::Entry(entry, vec![member])),
            }
        }
        groups
    }

    /// One message of the request with what is left of it; `None` where nothing is.
    fn entry(
        &self,
        entry: usize,
        members: &[Member<'_>],
        without: &BTreeSet<usize>,
    ) -> Result<Option<String>, WireError> {
        let Some(raw) = self.original(entry) else {
            return Ok(None);
        };
        let first = self.from.partition_point(|from| *from < Some(entry));
        let end = self.from.partition_point(|from| *from <= Some(entry));
        let untouched = |one: &Member<'_>| one.edited.is_none() && !without.contains(&one.index);
        if members.len() == end - first && members.iter().all(untouched) {
            return Ok(Some(raw.to_owned()));
        }
        let object: RawObject<'_> = parse(raw)?;
        let members = members.iter().map(|one| {
            let span = self.spans.get(one.index).cloned().unwrap_or_default();
            (span, one.edited, without.contains(&one.index))
        });
        let members: Vec<Of<'_>> = members.collect();
        let content = content(object.get("content").unwrap_or("null"), &members)?;
        Ok((content != "[]").then(|| object.with(&[("content", Some(content))])))
    }
}

/// What is written together.
enum Group<'m> {
    /// The system prompt beside the messages.
    System(Option<&'m Message>),
    /// Messages that stand in one of the request.
    Entry(usize, Vec<Member<'m>>),
    New(&'m Message),
}

struct Member<'m> {
    index: usize,
    edited: Option<&'m Message>,
}

/// The blocks of a message, what it says now, and whether it loses its thinking.
type Of<'m> = (std::ops::Range<usize>, Option<&'m Message>, bool);

/// A content with the blocks of these messages, one text where it was one.
fn content(raw: &str, members: &[Of<'_>]) -> Result<String, WireError> {
    let raws = pieces(raw)?;
    let mut blocks: Vec<String> = Vec::new();
    for (span, edited, is_silent) in members {
        let end = span.end.min(raws.len());
        let mut mine: Vec<&str> = raws.get(span.start..end).unwrap_or_default().to_vec();
        if *is_silent {
            mine.retain(|raw| !thinks(raw));
        }
        match edited {
            None => blocks.extend(mine.into_iter().map(str::to_owned)),
            Some(Message::Assistant { parts }) if *is_silent => {
                let parts = parts.iter().filter(|part| !is_thinking(part));
                let parts = parts.cloned().collect();
                blocks.extend(BlockPatcher.edited(&mine, &Message::Assistant { parts })?);
            }
            Some(message) => blocks.extend(BlockPatcher.edited(&mine, message)?),
        }
    }
    Ok(join(raw, &blocks))
}

/// Changes the blocks of a message.
struct BlockPatcher;

impl PiecePatcher for BlockPatcher {
    fn parts(&self, raw: &str) -> Result<Vec<Part>, WireError> {
        match raw.starts_with('"') {
            true => Ok(vec![Part::text(parse::<String>(raw)?)]),
            false => parts(raw, "a block"),
        }
    }

    /// A text that is cited no more loses its citations.
    fn changed(&self, raw: &str, _: &[Part], new: &[Part]) -> Result<Option<String>, WireError> {
        let Some(part) = new.first() else {
            return Ok(None);
        };
        if raw.starts_with('"') {
            return Ok(part.as_text().map(quoted));
        }
        let object: RawObject<'_> = parse(raw)?;
        let kind = read_block::text(&object, "type", "a block")?;
        Ok(match (kind.as_str(), part) {
            ("text", Part::Text { text }) => {
                Some(object.with(&[("text", Some(quoted(text))), ("citations", None)]))
            }
            ("tool_use", Part::ToolCall(call)) => {
                let input = arguments::object(&call.arguments).into_owned();
                Some(object.with(&[("input", Some(input))]))
            }
            (_, Part::Text { text }) => {
                let block = Object::of("text").text("text", text);
                Some(match object.get(MARK) {
                    Some(mark) => block.raw(MARK, mark).end(),
                    None => block.end(),
                })
            }
            _ => None,
        })
    }

    fn result(&self, raw: &str, new: &ToolResult) -> Result<Option<String>, WireError> {
        let object = parse::<RawObject<'_>>(raw).ok();
        let is_result = |block: &RawObject<'_>| block.get("type") == Some("\"tool_result\"");
        let Some(object) = object.filter(is_result) else {
            return Ok(None);
        };
        let inner = object.get("content").unwrap_or("null");
        let content = match (
            self.in_place(&pieces(inner)?, &new.parts)?,
            new.parts.as_slice(),
        ) {
            (Some(blocks), _) => Some(join(inner, &blocks)),
            (None, [Part::Text { text }]) => Some(quoted(text)),
            (None, _) => {
                let blocks = blocks_of(&Message::ToolResult(new.clone()));
                let anew: Option<RawObject<'_>> =
                    blocks.first().map(|block| parse(block)).transpose()?;
                anew.and_then(|anew| anew.get("content").map(str::to_owned))
            }
        };
        Ok(Some(object.with(&[("content", content)])))
    }

    fn anew(&self, message: &Message) -> Vec<String> {
        match message {
            Message::Assistant { .. } | Message::ToolResult(_) => blocks_of(message),
            message => blocks_of(&Message::User {
                parts: frames::spoken(message).into_owned(),
            }),
        }
    }
}

/// Renders a message by itself.
fn rendered(message: &Message) -> Vec<Turn> {
    let later;
    let message = match message {
        Message::System { .. } => {
            later = Message::user(format!("{}\n\n{}", frames::LATER_SYSTEM, message.text()));
            &later
        }
        other => other,
    };
    let mut normalizer = Normalizer::new(RULES);
    normalizer.message(message, &mut MessagesParts::default());
    normalizer.open.finish(None);
    let mut turns = normalizer.open.turns;
    // A turn that only stands between others belongs to no message.
    turns.retain(|turn| !turn.from.is_empty());
    turns
}

fn blocks_of(message: &Message) -> Vec<String> {
    let turns = rendered(message).into_iter();
    let blocks = turns.flat_map(|turn| turn.blocks);
    blocks
        .map(|block| block_json(&block).into_owned())
        .collect()
}

/// A content of these blocks: one text where it was one.
fn join(before: &str, blocks: &[String]) -> String {
    match blocks {
        [one] if before.trim().starts_with('"') && one.starts_with('"') => one.clone(),
        many => array(many.iter().map(String::as_str)),
    }
}

fn thinks(block: &str) -> bool {
    let object: Option<RawObject<'_>> = parse(block).ok();
    let kind = object.and_then(|object| object.get("type"));
    matches!(kind, Some("\"thinking\"" | "\"redacted_thinking\""))
}
