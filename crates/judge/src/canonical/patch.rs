//! Changes single keys of a request's texts, and breakpoints of the prompt cache.

use plimsoll_wire::__internals::anthropic::MARK;
use serde_json::Value;

use super::lenient::{list, object};
use super::parsed_request::Unit;

/// The keys of a chat message that Plimsoll interprets. They are written anew.
const KNOWN: [&str; 9] = [
    "role",
    "content",
    "reasoning_content",
    "reasoning",
    "refusal",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "audio",
];

/// Returns a JSON array of these texts.
fn array(texts: &[String]) -> String {
    format!("[{}]", texts.join(","))
}

/// Returns a chat message in its new form, with the other keys of the original.
pub(super) fn patched(before: &str, after: &str) -> String {
    let (Some(old), Some(new)) = (object(before), object(after)) else {
        return after.to_owned();
    };
    let mut changes: Vec<(&str, Option<String>)> = Vec::new();
    for key in KNOWN {
        match (old.get(key), new.get(key)) {
            (_, Some(raw)) if old.get(key).is_none_or(|old| !same(old, raw)) => {
                changes.push((key, Some(raw.to_owned())));
            }
            // It is written under its other name.
            (Some(_), None) => changes.push((key, None)),
            _ => {}
        }
    }
    old.with(&changes)
}

/// Returns the items of a Responses turn, with unchanged messages in their original form.
///
/// They keep their annotations. They keep their id only if the reasoning that the id depends on is
/// present.
pub(super) fn restored(units: &[&Unit<'_>], after: &[String]) -> Vec<String> {
    let mut before = units.iter().flat_map(|unit| &unit.raws).filter_map(|raw| {
        let text = assistant_text(raw)?;
        Some((*raw, text))
    });
    let mut reasoned = false;
    let mut items = Vec::with_capacity(after.len());
    for raw in after {
        reasoned |= kind(raw).is_some_and(|kind| kind == "reasoning");
        let unchanged = assistant_text(raw).and_then(|now| before.find(|(_, then)| *then == now));
        items.push(match unchanged.and_then(|(raw, _)| object(raw)) {
            Some(object) if reasoned => object.with(&[]),
            Some(object) => object.with(&[("id", None)]),
            None => raw.clone(),
        });
    }
    items
}

/// Returns the text of an assistant message if all its parts are text.
fn assistant_text(item: &str) -> Option<String> {
    let item: Value = serde_json::from_str(item).ok()?;
    if item.get("role")? != "assistant" {
        return None;
    }
    match item.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| part.get("text")?.as_str());
            texts.collect()
        }
        _ => None,
    }
}

fn kind(item: &str) -> Option<String> {
    let item: Value = serde_json::from_str(item).ok()?;
    Some(item.get("type")?.as_str()?.to_owned())
}

/// Returns a message with a cache breakpoint on its last block, if the original had one.
pub(super) fn with_mark_of(units: &[&Unit<'_>], after: &str) -> String {
    let marks = units.iter().flat_map(|unit| &unit.raws);
    let mark = marks.filter_map(|raw| last_mark(raw)).next_back();
    let marked = mark.and_then(|mark| {
        let message = object(after)?;
        let blocks = list(message.get("content")?)?;
        let (last, before) = blocks.split_last()?;
        let block = object(last)?;
        let thinks = block
            .get("type")
            .is_some_and(|kind| kind.contains("thinking"));
        if thinks {
            return None;
        }
        let mut texts: Vec<String> = before.iter().map(|raw| (*raw).to_owned()).collect();
        texts.push(block.with(&[(MARK, Some(mark))]));
        Some(message.with(&[("content", Some(array(&texts)))]))
    });
    marked.unwrap_or_else(|| after.to_owned())
}

/// Returns a request that does not enable thinking. `None` if the request did not contain the setting.
pub(super) fn without_thinking(request: &str) -> Option<String> {
    let object = object(request)?;
    object.get("thinking")?;
    Some(object.with(&[("thinking", None)]))
}

/// Removes all breakpoints but the last `keep` ones from a list of blocks, or of values with blocks in
/// `content`.
pub(super) fn unmarked(blocks: &str, keep: &mut usize) -> String {
    let Some(entries) = list(blocks) else {
        return blocks.to_owned();
    };
    let mut texts: Vec<String> = Vec::with_capacity(entries.len());
    for raw in entries.iter().rev() {
        let Some(entry) = object(raw) else {
            texts.push((*raw).to_owned());
            continue;
        };
        let mut changes = Vec::new();
        if entry.get(MARK).is_some_and(|mark| mark != "null") {
            match keep.checked_sub(1) {
                Some(fewer) => *keep = fewer,
                None => changes.push((MARK, None)),
            }
        }
        if let Some(inner) = entry.get("content").filter(|inner| inner.starts_with('[')) {
            let after = unmarked(inner, keep);
            if after != inner {
                changes.push(("content", Some(after)));
            }
        }
        texts.push(if changes.is_empty() {
            (*raw).to_owned()
        } else {
            entry.with(&changes)
        });
    }
    texts.reverse();
    if entries == texts {
        blocks.to_owned()
    } else {
        array(&texts)
    }
}

/// Returns the number of breakpoints in a list of blocks.
pub(super) fn marks(list: &str) -> usize {
    let list: Value = serde_json::from_str(list).unwrap_or_default();
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let marked = list.iter().filter(|block| {
        let mark = block.get(MARK);
        mark.is_some_and(|mark| !mark.is_null())
    });
    marked.count()
}

fn last_mark(message: &str) -> Option<String> {
    let message = object(message)?;
    let blocks = list(message.get("content")?)?;
    let mark = |raw: &&str| {
        let mark = object(raw)?.get(MARK)?.to_owned();
        (mark != "null").then_some(mark)
    };
    blocks.iter().filter_map(mark).next_back()
}

fn same(one: &str, other: &str) -> bool {
    let value = |raw| serde_json::from_str::<Value>(raw).ok();
    one == other || value(one) == value(other)
}
