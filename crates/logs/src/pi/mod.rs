//! Sessions of pi: JSONL, a tree of entries linked by `parentId` (since version 2). The active
//! branch ends with the last entry.

pub(crate) mod copy;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::blocks;
use crate::error::LogError;
use crate::input::for_each_line;
use crate::session::{Role, SessionLog, Wire};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PiEntry<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    id: Option<String>,
    parent_id: Option<String>,
    cwd: Option<String>,
    model_id: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    content: Option<Value>,
    summary: Option<String>,
    first_kept_entry_id: Option<String>,
    first_kept_entry_index: Option<usize>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PiMessage {
    role: String,
    content: Value,
    model: Option<String>,
    stop_reason: Option<String>,
    error_message: Option<String>,
    usage: Option<Usage>,
    tool_call_id: String,
    is_error: bool,
    command: String,
    output: String,
    summary: String,
    exclude_from_context: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Usage {
    total_tokens: u64,
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

#[derive(Default)]
struct Node {
    line: usize,
    parent: Option<String>,
    model: Option<String>,
    blocks: Vec<(Role, String)>,
    tokens: u64,
    error: Option<String>,
    is_answer: bool,
    /// For a compaction, the first entry that it kept. Its summary is in `blocks`.
    kept: Option<Option<usize>>,
    kept_id: Option<String>,
}

/// Reads a log and returns the messages that pi would send next.
pub(crate) fn read(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::Pi, path, Wire::Messages);
    let mut nodes: Vec<Node> = Vec::new();
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut index = 0_usize;
    for_each_line(path, |number, line| {
        let Some(entry) = log.parse::<PiEntry<'_>>(number, &line) else {
            return;
        };
        if entry.kind == "session" {
            log.id = entry.id.unwrap_or_default();
            log.directory = entry.cwd;
            log.model = entry.model_id;
            return;
        }
        let mut node = Node {
            line: number,
            parent: entry.parent_id.clone(),
            ..Node::default()
        };
        if let Err(error) = node.take(&entry) {
            log.damaged(number, format!("its message cannot be read: {error}"));
        }
        index += 1;
        // Version 1 has no ids: each entry follows the previous one.
        let id = entry.id.unwrap_or_else(|| format!("#{index}"));
        if node.parent.is_none() && id.starts_with('#') {
            node.parent = Some(format!("#{}", index - 1)).filter(|_| index > 1);
        }
        by_id.insert(id, nodes.len());
        nodes.push(node);
    })?;
    let path = branch(&nodes, &by_id, &mut log);
    emit(&mut log, &mut nodes, &by_id, &path);
    log.checked("it contains no messages; choose another session with --list")
}

/// Returns the active branch, from its beginning to its end.
fn branch(nodes: &[Node], by_id: &HashMap<String, usize>, log: &mut SessionLog) -> Vec<usize> {
    let mut path = Vec::new();
    let mut seen = HashSet::new();
    let mut next = nodes.len().checked_sub(1);
    while let Some(at) = next {
        if !seen.insert(at) {
            break;
        }
        path.push(at);
        let Some(node) = nodes.get(at) else {
            break;
        };
        next = match &node.parent {
            None => None,
            Some(parent) => by_id.get(parent).copied().or_else(|| {
                let what = "the entry before it is missing; joined it to the one before that";
                log.damaged(node.line, what.to_owned());
                at.checked_sub(1)
            }),
        };
    }
    path.reverse();
    path
}

/// Adds the messages of a branch to the log: the newest summary first, then the messages that it
/// kept.
fn emit(log: &mut SessionLog, nodes: &mut [Node], by_id: &HashMap<String, usize>, path: &[usize]) {
    let is_compaction = |at: &usize| nodes.get(*at).is_some_and(|node| node.kept.is_some());
    log.compactions = path.iter().filter(|at| is_compaction(at)).count();
    let mut order: Vec<usize> = path.to_vec();
    if let Some(at) = path.iter().rposition(is_compaction) {
        let compaction = path.get(at).copied().unwrap_or_default();
        let node = nodes.get(compaction);
        let by_name = node.and_then(|node| by_id.get(node.kept_id.as_ref()?));
        let by_index = node.and_then(|node| node.kept.flatten());
        let first = by_name.copied().or(by_index);
        let before = path.get(..at).unwrap_or_default();
        let from = before.iter().position(|at| Some(*at) == first);
        order = vec![compaction];
        order.extend(before.get(from.unwrap_or(at)..).unwrap_or_default());
        order.extend(path.get(at + 1..).unwrap_or_default());
    }
    for (place, at) in order.iter().enumerate() {
        let Some(node) = nodes.get_mut(*at) else {
            continue;
        };
        // The newer compaction includes the older one.
        if node.kept.is_some() && place > 0 {
            continue;
        }
        log.model = node.model.take().or(log.model.take());
        for (role, json) in std::mem::take(&mut node.blocks) {
            log.push(role, node.line, json);
        }
        if node.is_answer {
            log.last_error = node.error.take();
            if node.tokens > 0 {
                log.report(node.tokens);
            }
        }
    }
}

impl Node {
    fn take(&mut self, entry: &PiEntry<'_>) -> serde_json::Result<()> {
        match entry.kind.as_ref() {
            "message" => {
                if let Some(message) = entry.message {
                    self.message(serde_json::from_str(message.get())?);
                }
            }
            "custom_message" => self.user_content(entry.content.as_ref().unwrap_or(&Value::Null)),
            "model_change" => self.model.clone_from(&entry.model_id),
            "branch_summary" => self.summary(entry.summary.as_deref()),
            "compaction" => {
                self.summary(entry.summary.as_deref());
                self.kept_id.clone_from(&entry.first_kept_entry_id);
                // The index includes the header.
                self.kept = Some(
                    entry
                        .first_kept_entry_index
                        .and_then(|at| at.checked_sub(1)),
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn message(&mut self, message: PiMessage) {
        match message.role.as_str() {
            "user" | "custom" | "hookMessage" => self.user_content(&message.content),
            "assistant" => {
                self.is_answer = true;
                for block in message.content.as_array().into_iter().flatten() {
                    self.blocks
                        .extend(answered(block).map(|json| (Role::Assistant, json)));
                }
                let is_failed = message.stop_reason.as_deref() == Some("error");
                self.error = message.error_message.filter(|_| is_failed);
                self.model = message.model;
                let usage = message.usage.unwrap_or_default();
                let parts = [usage.output, usage.cache_read, usage.cache_write];
                let sum = parts.into_iter().fold(usage.input, u64::saturating_add);
                self.tokens = usage.total_tokens.max(sum);
            }
            "toolResult" => {
                let content = message_blocks(&message.content);
                let result = blocks::result(&message.tool_call_id, content, message.is_error);
                self.blocks.push((Role::User, result.to_string()));
            }
            "bashExecution" if !message.exclude_from_context => {
                let text = format!("Ran `{}`\n```\n{}\n```", message.command, message.output);
                self.user_content(&Value::from(text));
            }
            "branchSummary" | "compactionSummary" => self.summary(Some(&message.summary)),
            _ => {}
        }
    }

    fn user_content(&mut self, content: &Value) {
        let blocks = message_blocks(content).into_iter();
        self.blocks
            .extend(blocks.map(|block| (Role::User, block.to_string())));
    }

    fn summary(&mut self, summary: Option<&str>) {
        if let Some(summary) = summary.filter(|text| !text.trim().is_empty()) {
            let text = format!(
                "The session before this point was summarized:\n\n<summary>\n{summary}\n</summary>"
            );
            self.user_content(&Value::from(text));
        }
    }
}

/// Converts texts and images to blocks of Messages.
fn message_blocks(content: &Value) -> Vec<Value> {
    let block = |block: &Value| {
        let text = |key| block.get(key).and_then(Value::as_str);
        match text("type")? {
            "text" => blocks::some_text(text("text")?),
            "image" => Some(blocks::image(text("mimeType")?, text("data")?)),
            _ => None,
        }
    };
    match content {
        Value::String(text) => blocks::some_text(text).into_iter().collect(),
        Value::Array(list) => list.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

/// Converts a block of an answer to Messages. Thinking without a signature is omitted, because it
/// cannot be sent back to a provider.
fn answered(block: &Value) -> Option<String> {
    let text = |key| block.get(key).and_then(Value::as_str);
    let block = match text("type")? {
        "text" => blocks::some_text(text("text")?)?,
        "thinking" => {
            let signature = text("thinkingSignature").filter(|text| !text.is_empty())?;
            json!({ "type": "thinking", "thinking": text("thinking")?, "signature": signature })
        }
        "toolCall" => blocks::call(text("id")?, text("name")?, block.get("arguments")),
        _ => return None,
    };
    Some(block.to_string())
}
