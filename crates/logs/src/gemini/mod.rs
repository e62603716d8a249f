//! Chats of Gemini CLI: since 2026 JSONL (records of messages, updates and rewinds), before that
//! one JSON document. A call and its result are in one entry of `toolCalls`, or, behind a resumption, in parts of the
//! contents of two messages.

pub(crate) mod copy;

use std::collections::HashSet;

use plimsoll_foreign::Role;
use serde_json::Value;

use crate::blocks;
use crate::error::LogError;
use crate::input::{Entry, for_each_entry};
use crate::read::NO_MESSAGE;
use crate::session::{SessionLog, text};
use crate::tree::{EntryContent, LinkId, Node, Tree, push_again};

/// The beginning of the texts that Gemini CLI puts behind a message for the files that it names: `@a.rs`.
const FILES: &str = "--- Content from referenced files ---";
/// Beginnings of user texts that Gemini CLI does not send again: commands, and texts of Gemini CLI
/// itself.
const IGNORED: [&str; 4] = ["/", "?", "<session_context>", "<hook_context>"];

/// Reads a log and returns the messages that Gemini CLI would send next.
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    let mut tree: Tree<()> = Tree::default();
    for_each_entry(log, |log, entry| take(log, &mut tree, entry))?;
    let known = |key: &str| text(&log.metadata, key).map(str::to_owned);
    let (id, title) = (known("/sessionId"), known("/summary"));
    (log.id, log.title) = (id.unwrap_or_default(), title);
    let mut known = HashSet::new();
    let nodes: Vec<&Node<()>> = tree.nodes.iter().collect();
    push_again(log, &nodes, |entry, ()| {
        let mut read = content(&entry.object()?.into());
        // A chat that was resumed may have a call and its result in both forms.
        read.blocks.retain(|(.., block)| {
            let id = text(block, "/id").or(text(block, "/tool_use_id"));
            let id = id.filter(|id| *id != blocks::wire_id(""));
            id.is_none_or(|id| {
                known.insert((text(block, "/type") == Some("tool_use"), id.to_owned()))
            })
        });
        Ok(read)
    })?;
    Ok(NO_MESSAGE)
}

/// Takes a record in the same way as Gemini CLI: a message, which is written again whenever it is extended, data of the
/// chat, or a rewind.
fn take(log: &mut SessionLog, tree: &mut Tree<()>, entry: &Entry<'_>) {
    let id = entry.text("id");
    let is_message = id.is_some() || entry.place.is_listed;
    if let Some(id) = entry.text("$rewindTo") {
        tree.remove_from(tree.find(LinkId::of(id)).unwrap_or_default());
    } else if is_message {
        let id = id.unwrap_or_else(|| format!("#{}", tree.nodes.len()));
        let place = entry.place;
        let node = Node {
            place,
            ..Node::default()
        };
        tree.push(LinkId::of(id), node);
    } else {
        let set = entry.raw("$set");
        let update = set.map_or_else(|| entry.object(), serde_json::from_str);
        let Value::Object(metadata) = &mut log.metadata else {
            return;
        };
        match update {
            Ok(mut update) => {
                let messages = update.shift_remove("messages");
                if set.is_some() && messages.is_some_and(|list| list.is_array()) {
                    tree.remove_from(0);
                }
                metadata.extend(update);
            }
            Err(error) => log.unread(entry, "it", &error),
        }
    }
}

/// Returns the part of a message that a model sees. A block of `toolCalls` has its number behind those of the content.
fn content(message: &Value) -> EntryContent {
    let parts = parts(message);
    let blocks = parts.iter().enumerate();
    let blocks = blocks.filter_map(|(at, part)| Some((at, block(part)?)));
    let mut blocks: Vec<(usize, Value)> = blocks.collect();
    let texts = blocks.iter().filter_map(|(_, block)| text(block, "/text"));
    let words: String = texts.collect();
    let mut read = EntryContent::default();
    match text(message, "/type") {
        Some("user") => {
            let is_ignored = IGNORED.iter().any(|start| words.trim().starts_with(start));
            let mut is_file = false;
            for (_, block) in &mut blocks {
                let own = text(block, "/text").unwrap_or_default();
                is_file |= own.trim_start().starts_with(FILES);
                if is_file {
                    blocks::mark_as_host(block);
                }
            }
            let is_result = |block: &Value| block.get("tool_use_id").is_some();
            blocks.retain(|(_, block)| is_result(block) || !is_ignored && !words.trim().is_empty());
            let blocks = blocks.into_iter();
            read.blocks = blocks.map(|(at, block)| (at, Role::User, block)).collect();
        }
        Some("gemini") => {
            read.model = text(message, "/model").map(str::to_owned);
            let tokens = message.pointer("/tokens/total").and_then(Value::as_u64);
            read.answer = Some((tokens.unwrap_or_default(), None));
            let said = { blocks.into_iter() }.map(|(at, block)| (at, Role::Assistant, block));
            let calls = message.get("toolCalls").and_then(Value::as_array);
            let calls = (parts.len()..).zip(calls.into_iter().flatten());
            let asked = calls.clone();
            let asked = asked.map(|(at, call)| (at, Role::Assistant, self::call(call)));
            let answered = calls.filter_map(|(at, call)| Some((at, Role::User, result(call)?)));
            read.blocks = said.chain(asked).chain(answered).collect();
        }
        Some("error") => read.answer = Some((0, Some(words))),
        _ => {}
    }
    read
}

/// Returns a call of `toolCalls`, or of a part.
fn call(call: &Value) -> Value {
    let name = call.get("name").cloned().unwrap_or_default();
    blocks::call(id_of(call), name, call.get("args"))
}

fn id_of(value: &Value) -> &str {
    text(value, "/id").unwrap_or_default()
}

/// Returns the result of a call, or `None` if it has none.
fn result(call: &Value) -> Option<Value> {
    let id = text(call, "/id")?;
    let mut content = Vec::new();
    match call.get("result")? {
        Value::Null => return None,
        Value::String(text) => content.push(blocks::text(text)),
        Value::Array(list) => {
            for part in list {
                match part.get("functionResponse") {
                    Some(response) => content.push(response_text(response)),
                    None => content.extend(block(part)),
                }
            }
        }
        other => content.push(response_text(
            other.get("functionResponse").unwrap_or(other),
        )),
    }
    let is_error = call.get("status").and_then(Value::as_str) == Some("error");
    Some(blocks::result(id, content, is_error))
}

fn response_text(response: &Value) -> Value {
    let response = response.get("response").unwrap_or(response);
    let output = response.get("output").or_else(|| response.get("error"));
    match output.and_then(Value::as_str) {
        Some(text) => blocks::text(text),
        None => blocks::text(&response.to_string()),
    }
}

/// Returns the parts of a message.
pub(super) fn parts(message: &Value) -> &[Value] {
    match message.get("content") {
        Some(Value::Array(parts)) => parts,
        Some(part) => std::slice::from_ref(part),
        None => &[],
    }
}

/// Returns the block of a part, or `None` for a thought and for a part that no model sees.
pub(super) fn block(part: &Value) -> Option<Value> {
    let of = |pointer: &str| text(part, pointer);
    if part.get("thought") == Some(&Value::Bool(true)) {
        return None;
    }
    if let Some(call) = part.get("functionCall") {
        return Some(self::call(call));
    }
    if let Some(response) = part.get("functionResponse") {
        let is_error = response.pointer("/response/error").is_some();
        return Some(blocks::result(
            id_of(response),
            vec![response_text(response)],
            is_error,
        ));
    }
    match part.as_str().or(of("/text")) {
        Some(text) => blocks::some_text(text),
        None => Some(blocks::image(
            of("/inlineData/mimeType")?,
            of("/inlineData/data")?,
        )),
    }
}
