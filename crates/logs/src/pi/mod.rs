//! Sessions of pi: JSONL, a tree of entries linked by `parentId` (since version 2). The active branch ends
//! with the last entry.
//!
//! The file is read twice: first the links, then the messages of the active branch.

pub(crate) mod copy;

use serde_json::{Value, json};

use crate::blocks;
use crate::error::LogError;
use crate::input::{Entry, for_each_entry};
use crate::read::NO_MESSAGE;
use crate::session::{SessionLog, sum, text};
use crate::tree::{EntryContent, LinkId, Node, Tree, push_again};

/// The parts of an answer's usage, besides their sum.
const USAGE: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

/// The type of an entry, and the first entry that a compaction kept.
#[derive(Debug, Default)]
struct Links {
    kind: String,
    kept_id: Option<LinkId>,
    kept_index: Option<usize>,
}

/// Reads a log and returns the messages that pi would send next.
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    let mut tree: Tree<Links> = Tree::default();
    for_each_entry(log, |log, entry| {
        log.began = log.began.take().or_else(|| entry.text("timestamp"));
        let kind = entry.text("type").unwrap_or_default();
        match kind.as_str() {
            "session" => {
                log.id = entry.text("id").unwrap_or_default();
                log.directory = entry.text("cwd");
                log.model = entry.text("modelId");
                return;
            }
            "session_info" => log.title = entry.text("name").filter(|name| !name.is_empty()),
            _ => {}
        }
        // Version 1 has no ids: each entry follows the previous one.
        let index = tree.nodes.len();
        let own = entry.text("id");
        let before = index.checked_sub(1).filter(|_| own.is_none());
        let before = before.map(|before| format!("#{before}"));
        let kept_index = entry
            .value("firstKeptEntryIndex")
            .unwrap_or_default()
            .as_u64();
        let data = Links {
            kind,
            kept_id: entry.text("firstKeptEntryId").map(LinkId::of),
            // The index includes the header.
            kept_index: kept_index.and_then(|at| usize::try_from(at).ok()?.checked_sub(1)),
        };
        let node = Node {
            place: entry.place,
            parent: entry.text("parentId").or(before).map(LinkId::of),
            is_side: false,
            data,
        };
        tree.push(LinkId::of(own.unwrap_or_else(|| format!("#{index}"))), node);
    })?;
    let path = tree.branch(tree.nodes.len().checked_sub(1), log);
    let nodes = active(&tree, &path);
    push_again(log, &nodes, |entry, _| content(entry))?;
    Ok(NO_MESSAGE)
}

/// Returns the active entries of a branch: the newest summary first, then the entries that it kept
/// and that are no messages, then those behind it.
fn active<'t>(tree: &'t Tree<Links>, path: &[usize]) -> Vec<&'t Node<Links>> {
    let path = path
        .iter()
        .filter_map(|at| Some((*at, tree.nodes.get(*at)?)));
    let path: Vec<(usize, &Node<Links>)> = path.collect();
    let is_compaction = |(_, node): &(usize, &Node<Links>)| node.data.kind == "compaction";
    let newest = path.iter().rposition(is_compaction);
    let Some((at, compaction)) = newest.and_then(|at| Some((at, path.get(at)?))) else {
        return path.iter().map(|(_, node)| *node).collect();
    };
    let kept = &compaction.1.data;
    let first = kept
        .kept_id
        .and_then(|id| tree.find(id))
        .or(kept.kept_index);
    let (before, after) = path.split_at(at);
    let from = before.iter().position(|(index, _)| Some(*index) == first);
    let stays = |place: usize, entry: &(usize, &Node<Links>)| {
        let is_message =
            ["message", "custom_message", "branch_summary"].contains(&entry.1.data.kind.as_str());
        !is_message || from.is_some_and(|from| place >= from)
    };
    let before = before.iter().enumerate();
    // The newer compaction includes the older one.
    let before = before.filter(|(place, entry)| stays(*place, entry) && !is_compaction(entry));
    let kept = before.map(|(_, entry)| entry).chain(after.iter().skip(1));
    let active = std::iter::once(compaction).chain(kept);
    active.map(|(_, node)| *node).collect()
}

/// Returns the part of an entry that a model sees.
fn content(entry: &Entry<'_>) -> serde_json::Result<EntryContent> {
    let kind = entry.text("type").unwrap_or_default();
    Ok(message(&match kind.as_str() {
        "message" => entry.value("message")?,
        kind => json!({
            "role": format!("{kind} entry"), "content": entry.value("content")?, "summary": entry.text("summary"),
            "model": entry.text("modelId"),
        }),
    }))
}

/// Returns the part of a message that a model sees. The role of another entry is its type, such as `compaction entry`.
fn message(message: &Value) -> EntryContent {
    let of = |key: &str| message.get(key).unwrap_or(&Value::Null);
    let string = |key: &str| of(key).as_str().unwrap_or_default();
    let mut read = EntryContent {
        // pi does not send an answer without content.
        is_kept: string("role") != "assistant",
        ..EntryContent::default()
    };
    match string("role") {
        "user" => read.blocks = message_blocks(of("content")),
        "model_change entry" => read.model = of("model").as_str().map(str::to_owned),
        // An extension of pi wrote it.
        "custom" | "custom_message entry" | "hookMessage" => {
            read.blocks = message_blocks(of("content"));
            let blocks = read.blocks.iter_mut();
            blocks.for_each(|(_, block)| blocks::mark_as_host(block));
        }
        "assistant" => {
            read.blocks = message_blocks(of("content"));
            read.model = of("model").as_str().map(str::to_owned);
            let usage = message.get("usage");
            let total = sum(usage, &["totalTokens"]);
            let is_failed = string("stopReason") == "error";
            let error = of("errorMessage").as_str().filter(|_| is_failed);
            let tokens = sum(usage, &USAGE).max(total);
            read.answer = Some((tokens, error.map(str::to_owned)));
        }
        "toolResult" => {
            let blocks = message_blocks(of("content")).into_iter();
            let blocks = blocks.map(|(_, block)| block).collect();
            let is_error = *of("isError") == Value::Bool(true);
            let result = blocks::result(string("toolCallId"), blocks, is_error);
            read.blocks.push((0, result));
        }
        "bashExecution" if *of("excludeFromContext") != Value::Bool(true) => {
            let text = format!(
                "Ran `{}`\n```\n{}\n```",
                string("command"),
                string("output")
            );
            read.blocks = message_blocks(&text.into());
        }
        "branchSummary" | "branch_summary entry" | "compactionSummary" | "compaction entry" => {
            read.blocks = message_blocks(&summarized(string("summary")));
        }
        _ => {}
    }
    read
}

/// Returns the text that pi sends for a summary.
fn summarized(summary: &str) -> Value {
    if summary.trim().is_empty() {
        return Value::Null;
    }
    format!("The session before this point was summarized:\n\n<summary>\n{summary}\n</summary>")
        .into()
}

/// Converts a content to blocks of Messages, each with its place.
fn message_blocks(content: &Value) -> Vec<(usize, Value)> {
    if let Some(text) = content.as_str().and_then(blocks::some_text) {
        return vec![(0, text)];
    }
    let list = content.as_array().into_iter().flatten().enumerate();
    list.filter_map(|(at, own)| Some((at, block(own)?)))
        .collect()
}

/// Converts a block to Messages. Thinking without a signature is omitted, because it cannot be sent back to a
/// provider.
fn block(own: &Value) -> Option<Value> {
    let text = |pointer: &str| text(own, pointer);
    Some(match text("/type")? {
        "text" => blocks::some_text(text("/text")?)?,
        "image" => blocks::image(text("/mimeType")?, text("/data")?),
        "thinking" => {
            let signature = text("/thinkingSignature").filter(|text| !text.is_empty())?;
            json!({ "type": "thinking", "thinking": text("/thinking")?, "signature": signature })
        }
        "toolCall" => blocks::call(text("/id")?, text("/name")?, own.get("arguments")),
        _ => return None,
    })
}
