//! Chats of Gemini CLI: since 2026 JSONL (records of messages, updates and rewinds), before that
//! one JSON document. A call and its result are in one entry of `toolCalls`, or, behind a resumption, in parts of the
//! contents of two messages.

pub(crate) mod copy;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::blocks;
use crate::error::LogError;
use crate::input::{Entry, for_each_entry};
use crate::read::NO_MESSAGE;
use crate::session::{SessionLog, text};
use crate::tree::{EntryContent, LinkId, Node, Tree, push_again};

/// The maximum length of a path, in bytes.
const MAX_PATH: u64 = 4096;
/// The beginning of the texts that Gemini CLI puts behind a message for the files that it names: `@a.rs`.
const FILES: &str = "--- Content from referenced files ---";
/// Beginnings of messages of the user that Gemini CLI does not send again: commands.
const COMMANDS: [&str; 2] = ["/", "?"];
/// Beginnings of texts of Gemini CLI itself. It does not send a message again that begins with one, not even the words
/// of the user behind it, which a compression puts there.
const CONTEXTS: [&str; 2] = ["<session_context>", "<hook_context>"];
/// The part that a copy has once: Gemini CLI sends both, which is refused.
const TWICE: &str = "calls or results that the log contains twice";

/// Reads a log and returns the messages that Gemini CLI would send next.
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    let mut tree: Tree<()> = Tree::default();
    for_each_entry(log, |log, entry| take(log, &mut tree, entry))?;
    let known = |key: &str| text(&log.metadata, key).map(str::to_owned);
    let (id, title) = (known("/sessionId"), known("/summary"));
    (log.id, log.title) = (id.unwrap_or_default(), title);
    // The folder of the project contains the folder of the chats.
    log.directory = log.path.ancestors().nth(2).and_then(directory_of);
    let mut known = HashSet::new();
    let nodes: Vec<&Node<()>> = tree.nodes.iter().collect();
    push_again(log, &nodes, |entry, ()| {
        let mut read = content(&entry.object()?.into());
        // A chat may have a call and its result in both forms.
        let count = read.blocks.len();
        read.blocks.retain(|(.., block)| {
            let id = text(block, "/id").or(text(block, "/tool_use_id"));
            let id = id.filter(|id| *id != blocks::wire_id(""));
            let is_call = text(block, "/type") == Some("tool_use");
            id.is_none_or(|id| known.insert((is_call, id.to_owned())))
        });
        if read.blocks.len() < count {
            read.reduced = Some(TWICE);
        }
        Ok(read)
    })?;
    Ok(NO_MESSAGE)
}

/// Returns the working directory of a project of Gemini CLI. Older projects do not contain it.
pub(crate) fn directory_of(project: &Path) -> Option<String> {
    let file = File::open(project.join(".project_root")).ok()?;
    let mut directory = String::new();
    file.take(MAX_PATH).read_to_string(&mut directory).ok()?;
    Some(directory.trim().to_owned()).filter(|directory| !directory.is_empty())
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
    let mut read = EntryContent::default();
    let kind = text(message, "/type");
    let count = blocks.len();
    if kind == Some("user") {
        let is_context = |text: &str| {
            CONTEXTS
                .iter()
                .any(|start| text.trim_start().starts_with(start))
        };
        blocks.retain(|(_, block)| !text(block, "/text").is_some_and(is_context));
        let is_reduced = (1..count).contains(&blocks.len());
        read.reduced = is_reduced.then_some("the context before the user's words");
    }
    let texts = blocks.iter().filter_map(|(_, block)| text(block, "/text"));
    let words: String = texts.collect();
    match kind {
        Some("user") => {
            let is_ignored = COMMANDS.iter().any(|start| words.trim().starts_with(start));
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
            read.blocks = blocks;
        }
        Some("gemini") => {
            read.model = text(message, "/model").map(str::to_owned);
            let tokens = message.pointer("/tokens/total").and_then(Value::as_u64);
            read.answer = Some((tokens.unwrap_or_default(), None));
            let calls = message.get("toolCalls").and_then(Value::as_array);
            let calls = (parts.len()..).zip(calls.into_iter().flatten());
            // A call may be a part of the content, too. In `toolCalls`, it has its result beside it.
            let asked: Vec<_> = { calls.clone() }.map(|(_, call)| id_of(call)).collect();
            blocks.retain(|(at, _)| {
                let call = parts.get(*at).and_then(|part| part.get("functionCall"));
                !call.is_some_and(|call| asked.contains(&id_of(call)))
            });
            if blocks.len() < count {
                read.reduced = Some(TWICE);
            }
            let asked = { calls.clone() }.map(|(at, call)| (at, self::call(call)));
            let answered = calls.filter_map(|(at, call)| Some((at, result(call)?)));
            read.blocks = blocks;
            read.blocks.extend(asked.chain(answered));
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
