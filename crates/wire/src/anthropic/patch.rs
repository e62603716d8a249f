//! Edits the messages of a Messages request in place. Only the changed blocks of an edited message are
//! written anew.

use plimsoll_context::{Message, Part, ToolResult};

use super::MARK;
use super::read;
use super::read_block::{self, parts};
use super::write::{MessagesParts, MessagesWriter, RULES, block_json};
use crate::compose::TurnWriter;
use crate::document::{DocumentFormat, Member, WHOLE};
use crate::error::WireError;
use crate::message_patch::{PiecePatcher, is_thinking};
use crate::normalize::Normalizer;
use crate::object::{Object, array};
use crate::prompt_texts;
use crate::raw::{RawObject, parse, pieces, quoted};
use crate::tools;
use crate::turns::Turn;

/// The messages of Anthropic Messages.
pub static FORMAT: DocumentFormat = DocumentFormat {
    key: "messages",
    system: Some("system"),
    has_items: false,
    expected: ["an array of messages", "an array"],
    bare: "messages",
    read_system: read::system,
    read_entries: read::messages,
    read_tools: read::tools,
    edit_system,
    edit,
    write: |messages, _| Ok(messages.iter().map(|message| written(message)).collect()),
};

fn edit_system(raw: &str, message: &Message) -> Result<String, WireError> {
    let whole = Member {
        blocks: WHOLE,
        edited: Some(message),
        unthinking: false,
    };
    content(raw, &[whole])
}

/// Keeps the breakpoints of the blocks that stay. A message without blocks is left out.
fn edit(entries: &[&str], members: &[Member<'_>]) -> Result<Vec<String>, WireError> {
    let mut edited = Vec::with_capacity(entries.len());
    for raw in entries {
        let object: RawObject<'_> = parse(raw)?;
        let content = content(object.get("content").unwrap_or("null"), members)?;
        if content != "[]" {
            edited.push(object.with(&[("content", Some(content))]));
        }
    }
    Ok(edited)
}

fn written(message: &Message) -> Vec<String> {
    let turns = rendered(message);
    turns.iter().map(|turn| MessagesWriter.json(turn)).collect()
}

/// Returns a content with the blocks of these messages. A plain text stays a plain text.
fn content(raw: &str, members: &[Member<'_>]) -> Result<String, WireError> {
    let raws = pieces(raw)?;
    let mut blocks: Vec<String> = Vec::new();
    for member in members {
        let end = member.blocks.end.min(raws.len());
        let own = raws.get(member.blocks.start..end).unwrap_or_default();
        let mut own: Vec<&str> = own.to_vec();
        if member.unthinking {
            own.retain(|raw| !thinks(raw));
        }
        match member.edited {
            None => blocks.extend(own.into_iter().map(str::to_owned)),
            Some(Message::Assistant { parts }) if member.unthinking => {
                let parts = parts.iter().filter(|part| !is_thinking(part));
                let parts = parts.cloned().collect();
                blocks.extend(BlockPatcher.edited(&own, &Message::Assistant { parts })?);
            }
            Some(message) => blocks.extend(BlockPatcher.edited(&own, message)?),
        }
    }
    Ok(join(raw, &blocks))
}

/// Changes the blocks of a message.
struct BlockPatcher;

impl PiecePatcher for BlockPatcher {
    fn parts(&self, raw: &str) -> Result<Vec<Part>, WireError> {
        if raw.starts_with('"') {
            Ok(vec![Part::text(parse::<String>(raw)?)])
        } else {
            parts(raw, "a block")
        }
    }

    /// Changes a block. A changed text loses its citations.
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
                let input = tools::object(&call.arguments).into_owned();
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
                parts: prompt_texts::sent_parts(message).into_owned(),
            }),
        }
    }
}

/// Renders a message by itself.
fn rendered(message: &Message) -> Vec<Turn> {
    let later;
    let message = match message {
        Message::System { .. } => {
            later = Message::user(format!(
                "{}\n\n{}",
                prompt_texts::LATER_SYSTEM,
                message.text()
            ));
            &later
        }
        other => other,
    };
    let mut normalizer = Normalizer::new(RULES);
    normalizer.message(message, &mut MessagesParts::default());
    normalizer.open.finish(None);
    let mut turns = normalizer.open.turns;
    // A turn that was only inserted between others belongs to no message.
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

/// Joins blocks to a content. A plain text stays a plain text.
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
