//! Session logs of Claude Code: one JSONL file per session, a tree of entries linked by
//! `parentUuid`. The messages of sub-agents (sidechains) are ignored.

pub(crate) mod copy;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::blocks;
use crate::error::LogError;
use crate::input::for_each_line;
use crate::session::{Role, SessionLog, Wire};

/// The model name in messages that Claude Code writes itself, such as errors of the API.
const SYNTHETIC: &str = "<synthetic>";
const BOUNDARY: &str = "compact_boundary";

/// An entry of the log, with the keys that matter here.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ClaudeEntry<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    subtype: Option<Cow<'a, str>>,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
    is_sidechain: bool,
    is_api_error_message: bool,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
    compact_metadata: Option<CompactMetadata>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CompactMetadata {
    preserved_segment: Option<Segment>,
}

/// Messages before a compaction that are kept, and the message that they follow.
#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
struct Segment {
    head_uuid: String,
    anchor_uuid: String,
    tail_uuid: String,
}

#[derive(Deserialize)]
struct ClaudeMessage<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl Usage {
    fn total(self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
            .saturating_add(self.output_tokens)
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct BlockKeys<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    id: Option<String>,
    tool_use_id: Option<String>,
}

/// An entry in the tree.
#[derive(Default)]
struct Node {
    line: usize,
    parent: Option<String>,
    is_sidechain: bool,
    is_boundary: bool,
    /// The role of its blocks; `None` if the model never sees it.
    role: Option<Role>,
    /// The id of the answer that the entry belongs to.
    answer: Option<String>,
    blocks: Vec<String>,
    calls: Vec<String>,
    results: Vec<String>,
    usage: Option<Usage>,
    model: Option<String>,
    error: Option<String>,
}

/// The entries in the tree, in file order.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    by_id: HashMap<String, usize>,
    segments: Vec<Segment>,
}

/// Reads a log and returns its active branch.
pub(crate) fn read(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::ClaudeCode, path, Wire::Messages);
    let mut tree = Tree::default();
    for_each_line(path, |number, line| {
        let Some(entry) = log.parse::<ClaudeEntry<'_>>(number, &line) else {
            return;
        };
        if let Some(id) = &entry.session_id
            && log.id.is_empty()
        {
            log.id.clone_from(id);
        }
        if entry.cwd.is_some() {
            log.directory.clone_from(&entry.cwd);
        }
        tree.take(&mut log, number, entry);
    })?;
    let chain = tree.active(&mut log);
    for at in chain {
        let Some(node) = tree.nodes.get_mut(at) else {
            continue;
        };
        if let Some(error) = node.error.take() {
            log.last_error = Some(error);
            continue;
        }
        let Some(role) = node.role else {
            continue;
        };
        for block in std::mem::take(&mut node.blocks) {
            log.push(role, node.line, block);
        }
        if role == Role::Assistant {
            log.last_error = None;
            log.model = node.model.take().or(log.model.take());
            if let Some(usage) = node.usage {
                log.report(usage.total());
            }
        }
    }
    let why = match log.side_messages {
        0 => "it contains no messages; choose another session with --list",
        _ => "it is the log of a sub-agent; name the session that started it",
    };
    log.checked(why)
}

impl Tree {
    fn take(&mut self, log: &mut SessionLog, line: usize, entry: ClaudeEntry<'_>) {
        let is_boundary = entry.subtype.as_deref() == Some(BOUNDARY);
        if is_boundary && !entry.is_sidechain {
            log.compactions += 1;
            let metadata = entry.compact_metadata.unwrap_or_default();
            self.segments.extend(metadata.preserved_segment);
        }
        let mut node = Node {
            line,
            parent: entry.parent_uuid,
            is_sidechain: entry.is_sidechain,
            is_boundary,
            ..Node::default()
        };
        let read = match (entry.kind.as_ref(), entry.message, entry.attachment) {
            ("user", Some(message), _) => node.user(message.get()),
            ("assistant", Some(message), _) => {
                node.assistant(message.get(), entry.is_api_error_message)
            }
            ("attachment", _, Some(attachment)) => {
                node.attachment(attachment.get());
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = read {
            log.damaged(line, format!("its message cannot be read: {error}"));
            node.role = None;
        }
        if entry.is_sidechain && node.role.is_some() {
            log.side_messages += 1;
        }
        // An entry without an id cannot be a parent, and is not part of the tree.
        if let Some(id) = entry.uuid {
            self.by_id.insert(id, self.nodes.len());
            self.nodes.push(node);
        }
    }

    /// Returns the active branch, from its beginning to its end.
    fn active(&mut self, log: &mut SessionLog) -> Vec<usize> {
        self.relink();
        let is_leaf = |node: &Node| !node.is_sidechain && (node.role.is_some() || node.is_boundary);
        let mut chain = Vec::new();
        let mut seen = HashSet::new();
        let mut next = self.nodes.iter().rposition(is_leaf);
        while let Some(at) = next {
            if !seen.insert(at) {
                break;
            }
            chain.push(at);
            next = self.parent(at, log);
        }
        chain.reverse();
        self.with_parallel(chain)
    }

    /// Returns the parent of an entry. If the parent is missing, for example in a damaged log,
    /// returns the previous entry in the file.
    fn parent(&self, at: usize, log: &mut SessionLog) -> Option<usize> {
        let node = self.nodes.get(at)?;
        let parent = node.parent.as_ref()?;
        if let Some(at) = self.by_id.get(parent) {
            return Some(*at);
        }
        let before = self.nodes.get(..at)?;
        let before = before.iter().rposition(|node| !node.is_sidechain);
        let what = match before {
            Some(_) => "the entry before it is missing; joined it to the one before that",
            None => "the beginning of the session is missing",
        };
        log.damaged(node.line, what.to_owned());
        before
    }

    /// Moves messages that were preserved by a compaction after its summary.
    fn relink(&mut self) {
        for segment in std::mem::take(&mut self.segments) {
            let known = |id: &String| self.by_id.contains_key(id);
            if !known(&segment.head_uuid) || !known(&segment.anchor_uuid) {
                continue;
            }
            for node in &mut self.nodes {
                if node.parent.as_ref() == Some(&segment.anchor_uuid) {
                    node.parent = Some(segment.tail_uuid.clone());
                }
            }
            let head = self.by_id.get(&segment.head_uuid);
            if let Some(head) = head.and_then(|at| self.nodes.get_mut(*at)) {
                head.parent = Some(segment.anchor_uuid);
            }
        }
    }

    /// Adds the entries beside the chain. An answer consists of several entries, and results of
    /// parallel calls are attached to different ones of these. The result contains the complete
    /// answer before its results.
    fn with_parallel(&self, chain: Vec<usize>) -> Vec<usize> {
        let mut answers: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut results: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if node.is_sidechain {
                continue;
            }
            if let Some(answer) = &node.answer {
                answers.entry(answer).or_default().push(at);
            }
            for call in &node.results {
                results.entry(call).or_default().push(at);
            }
        }
        let on_chain: HashSet<usize> = chain.iter().copied().collect();
        let mut done = HashSet::new();
        let mut active = Vec::with_capacity(chain.len());
        for at in chain {
            if !done.insert(at) {
                continue;
            }
            active.push(at);
            let Some(answer) = self.nodes.get(at).and_then(|node| node.answer.as_deref()) else {
                continue;
            };
            let parts = answers.get(answer).map(Vec::as_slice).unwrap_or_default();
            let mut calls: Vec<&String> = Vec::new();
            for part in parts {
                let is_other = *part != at;
                if is_other && !done.insert(*part) {
                    continue;
                }
                if is_other {
                    active.push(*part);
                }
                calls.extend(self.nodes.get(*part).iter().flat_map(|node| &node.calls));
            }
            for call in calls {
                for result in results.get(call.as_str()).into_iter().flatten() {
                    // A result on the chain moves here as well, with the other blocks of its entry.
                    let is_near = on_chain.contains(result) || *result > at;
                    if is_near && done.insert(*result) {
                        active.push(*result);
                    }
                }
            }
        }
        active
    }
}

impl Node {
    fn user(&mut self, message: &str) -> serde_json::Result<()> {
        let message: ClaudeMessage<'_> = serde_json::from_str(message)?;
        self.content(message.content)?;
        self.role = Some(Role::User);
        Ok(())
    }

    fn assistant(&mut self, message: &str, is_error: bool) -> serde_json::Result<()> {
        let message: ClaudeMessage<'_> = serde_json::from_str(message)?;
        self.role = Some(Role::Assistant);
        if is_error || message.model.as_deref() == Some(SYNTHETIC) {
            let blocks: Vec<BlockKeys<'_>> =
                serde_json::from_str(message.content.get()).unwrap_or_default();
            let texts = blocks.into_iter().filter_map(|block| block.text);
            let error = texts.map(Cow::into_owned).collect::<Vec<_>>().join(" ");
            match is_error {
                true => self.error = Some(error),
                // "No response requested.", an entry without a request.
                false => self.role = None,
            }
            return Ok(());
        }
        self.content(message.content)?;
        self.answer = message.id;
        self.model = message.model;
        self.usage = message.usage;
        Ok(())
    }

    fn content(&mut self, content: &RawValue) -> serde_json::Result<()> {
        let raw = content.get();
        if raw.starts_with('"') {
            let text: String = serde_json::from_str(raw)?;
            if !text.trim().is_empty() {
                self.blocks.push(blocks::text(&text).to_string());
            }
            return Ok(());
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(raw)?;
        for raw in blocks {
            let keys: BlockKeys<'_> = serde_json::from_str(raw.get())?;
            let text = keys.text.as_deref();
            // Claude Code omits them too: the API does not accept them.
            if keys.kind == "text" && text.is_some_and(|text| text.trim().is_empty()) {
                continue;
            }
            match keys.kind.as_str() {
                "tool_use" => self.calls.extend(keys.id),
                "tool_result" => self.results.extend(keys.tool_use_id),
                _ => {}
            }
            self.blocks.push(raw.get().to_owned());
        }
        Ok(())
    }

    /// Converts an attachment to text, as Claude Code does for a request: text that the user typed
    /// during a run, and files that the user named. Claude Code adds other attachments anew.
    fn attachment(&mut self, attachment: &str) {
        let attachment: serde_json::Value = serde_json::from_str(attachment).unwrap_or_default();
        let text = |pointer: &str| attachment.pointer(pointer).and_then(|value| value.as_str());
        let content = match text("/type") {
            Some("queued_command") => text("/prompt").map(str::to_owned),
            Some("file") => text("/content/file/content").map(|content| {
                let name = text("/filename").unwrap_or("a file");
                format!("<system-reminder>\nContents of {name}:\n{content}\n</system-reminder>")
            }),
            _ => None,
        };
        if let Some(content) = content.filter(|content| !content.trim().is_empty()) {
            self.role = Some(Role::User);
            self.blocks.push(blocks::text(&content).to_string());
        }
    }
}
