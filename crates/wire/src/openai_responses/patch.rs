//! Edits the messages of a Responses request in place. Only the changed items of an edited message are
//! written anew.

use std::collections::BTreeSet;

use plimsoll_context::{Message, Part, ToolResult};
use serde_json::Value;

use super::items;
use super::read;
use super::write::{InputWriter, RULES, ResponsesParts};
use super::{ReasoningItems, ResponsesProfile};
use crate::compose::TurnWriter;
use crate::document::{DocumentFormat, Member};
use crate::error::WireError;
use crate::message_patch::PiecePatcher;
use crate::normalize::Normalizer;
use crate::prompt_texts;
use crate::raw::{RawObject, parse, pieces, quoted};

/// The items of Responses.
pub static FORMAT: DocumentFormat = DocumentFormat {
    key: "input",
    system: Some("instructions"),
    has_items: true,
    expected: [
        "a string or an array of items",
        "an array of items, or an object with `input`",
    ],
    bare: "the list",
    read_system: read::instructions,
    read_entries: read::messages,
    read_tools: read::tools,
    edit_system: |_, message| Ok(quoted(&message.text())),
    edit,
    write,
};

fn edit(entries: &[&str], members: &[Member<'_>]) -> Result<Vec<String>, WireError> {
    match members.iter().find_map(|member| member.edited) {
        Some(edited) => ItemPatcher.edited(entries, edited),
        None => Ok(entries.iter().map(|raw| (*raw).to_owned()).collect()),
    }
}

/// Writes new messages together, because the kind of a result depends on its call.
fn write(messages: &[&Message], kept: &[&str]) -> Result<Vec<Vec<String>>, WireError> {
    let mut results = messages.iter();
    let has_results = results.any(|message| matches!(message, Message::ToolResult(_)));
    let custom_id = |raw: &&str| {
        let item: Value = serde_json::from_str(raw).ok()?;
        let custom = items::kind(&item) == "custom_tool_call";
        let id = item.get("call_id").filter(|_| custom)?;
        id.as_str().map(str::to_owned)
    };
    let custom = if has_results {
        kept.iter().filter_map(custom_id).collect()
    } else {
        BTreeSet::new()
    };
    Ok(written(messages.iter().copied(), custom))
}

/// Returns a profile that leaves no reasoning out. The caller decides which reasoning may be sent.
fn whole() -> ResponsesProfile {
    ResponsesProfile {
        reasoning: ReasoningItems::Plain,
        ..ResponsesProfile::openai()
    }
}

/// Changes the items of a message.
struct ItemPatcher;

impl PiecePatcher for ItemPatcher {
    fn parts(&self, raw: &str) -> Result<Vec<Part>, WireError> {
        if raw.starts_with('"') {
            return Ok(vec![Part::text(parse::<String>(raw)?)]);
        }
        let read = read::messages(&[raw], &|index| format!("[{index}]"))?;
        Ok(match read.into_iter().next() {
            Some((Message::Summary { text }, _)) => {
                vec![Part::text(prompt_texts::framed_summary(&text))]
            }
            Some((message, _)) => message.parts().to_vec(),
            None => Vec::new(),
        })
    }

    fn changed(&self, raw: &str, old: &[Part], new: &[Part]) -> Result<Option<String>, WireError> {
        if raw.starts_with('"') {
            return Ok(new.first().and_then(Part::as_text).map(quoted));
        }
        let object: RawObject<'_> = parse(raw)?;
        let item: Value = parse(raw)?;
        let change = match (items::kind(&item), new) {
            ("function_call", [Part::ToolCall(call)]) => ("arguments", quoted(&call.arguments)),
            ("custom_tool_call", [Part::ToolCall(call)]) => ("input", quoted(&call.arguments)),
            ("message", _) => {
                let content = object.get("content").unwrap_or("[]");
                // The keys beside the content come first, and stay.
                let count = pieces(content)?.len();
                let extra_count = old.len().saturating_sub(count);
                let text_type = if item.get("role").is_some_and(|role| role == "assistant") {
                    "output_text"
                } else {
                    "input_text"
                };
                let content = with_parts(
                    content,
                    old.get(extra_count..),
                    new.get(extra_count..),
                    text_type,
                )?;
                ("content", content)
            }
            _ => return Ok(None),
        };
        Ok(Some(object.with(&[(change.0, Some(change.1))])))
    }

    fn result(&self, raw: &str, new: &ToolResult) -> Result<Option<String>, WireError> {
        let object = parse::<RawObject<'_>>(raw).ok();
        let object = object.filter(|item| item.get("call_id").is_some());
        let Some((object, output)) = object.and_then(|item| {
            let output = item.get("output")?;
            Some((item, output))
        }) else {
            return Ok(None);
        };
        let old = self.parts(raw)?;
        let output = match new.parts.as_slice() {
            [Part::Text { text }] if old.len() != 1 => quoted(text),
            parts if parts.len() == old.len() => {
                with_parts(output, Some(&old), Some(parts), "input_text")?
            }
            _ => {
                let items = self.anew(&Message::ToolResult(new.clone()));
                let anew: Option<RawObject<'_>> =
                    items.first().map(|raw| parse(raw)).transpose()?;
                let anew = anew.and_then(|anew| anew.get("output").map(str::to_owned));
                anew.unwrap_or_else(|| output.to_owned())
            }
        };
        Ok(Some(object.with(&[("output", Some(output))])))
    }

    fn anew(&self, message: &Message) -> Vec<String> {
        let items = written([message], BTreeSet::new());
        items.into_iter().flatten().collect()
    }

    /// Removes the id of items whose reasoning was removed, because the server would require the
    /// reasoning (OR4).
    fn without_gone(
        &self,
        old: &[Vec<Part>],
        kept: Vec<Option<String>>,
    ) -> Result<Vec<String>, WireError> {
        let mut items = Vec::with_capacity(kept.len());
        // Whether there was reasoning before, and whether it is still there.
        let (mut reasoned, mut reasons) = (false, false);
        for (old, item) in old.iter().zip(kept) {
            let thinks = matches!(old.as_slice(), [Part::Thinking(_)]);
            reasoned |= thinks;
            reasons |= thinks && item.is_some();
            if let Some(item) = item {
                items.push(if reasoned && !reasons {
                    without_tie(item)?
                } else {
                    item
                });
            }
        }
        Ok(items)
    }
}

/// Returns the items of each message. `custom` contains the ids of calls outside of these messages
/// whose tools take free text.
fn written<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    custom: BTreeSet<String>,
) -> Vec<Vec<String>> {
    let profile = whole();
    let mut normalizer = Normalizer::new(RULES);
    normalizer.knows_custom(custom);
    let items = messages.into_iter().map(|message| {
        normalizer.message(message, &mut ResponsesParts::new(&profile));
        let turns = normalizer.open.turns.drain(..);
        turns
            .map(|turn| InputWriter(&profile).json(&turn))
            .collect()
    });
    items.collect()
}

/// Returns an item without the id by which the server would require removed reasoning (OR4).
fn without_tie(item: String) -> Result<String, WireError> {
    let value: Value = parse(&item)?;
    if !items::is_tied(items::kind(&value)) || value.get("id").is_none() {
        return Ok(item);
    }
    Ok(parse::<RawObject<'_>>(&item)?.with(&[("id", None)]))
}

/// Returns a content with its new parts. A plain text stays one, anything else is a list.
fn with_parts(
    content: &str,
    old: Option<&[Part]>,
    new: Option<&[Part]>,
    kind: &'static str,
) -> Result<String, WireError> {
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let raws = pieces(content)?;
    let mut blocks = Vec::with_capacity(raws.len());
    for (raw, (old, new)) in raws.iter().zip(old.iter().zip(new)) {
        let text = new.as_text().filter(|_| old != new);
        blocks.push(match text {
            None => (*raw).to_owned(),
            Some(text) if raw.starts_with('"') => quoted(text),
            Some(text) if old.as_text().is_some() => {
                let block: RawObject<'_> = parse(raw)?;
                // The annotations belong to the old text.
                let none = block.get("annotations").map(|_| "[]".to_owned());
                block.with(&[
                    ("text", Some(quoted(text))),
                    ("annotations", none),
                    ("logprobs", None),
                ])
            }
            Some(text) => format!("{{\"type\":\"{kind}\",\"text\":{}}}", quoted(text)),
        });
    }
    Ok(match blocks.as_slice() {
        [one] if content.trim().starts_with('"') => one.clone(),
        many => format!("[{}]", many.join(",")),
    })
}
