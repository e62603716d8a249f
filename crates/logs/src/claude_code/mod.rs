//! Session logs of Claude Code: one JSONL file per session, a tree of entries linked by `parentUuid`. The
//! messages of sub-agents (sidechains) are ignored.
//!
//! The file is read twice: first the links, then the messages of the active branch.

pub(crate) mod copy;

use std::collections::HashMap;

use plimsoll_wire::__internals::RawObject;
use serde::Deserialize;
use serde_json::Value;

use crate::blocks;
use crate::error::LogError;
use crate::input::{Entry, for_each_entry};
use crate::read::NO_MESSAGE;
use crate::session::{SessionLog, sum, text};
use crate::tree::{EntryContent, LinkId, Node, Tree, push_again};

/// The model name in messages that Claude Code writes itself, such as errors of the API.
const SYNTHETIC: &str = "<synthetic>";
/// The origin of text that a person typed.
const PERSON: &str = "human";
/// The types of entries with a name of the session, the strongest first, and the keys of the name.
const TITLES: [(&str, &str); 3] = [
    ("custom-title", "customTitle"),
    ("ai-title", "aiTitle"),
    ("summary", "summary"),
];
/// The parts of an answer's usage.
const USAGE: [&str; 4] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
];

/// The links of an entry besides its parent.
#[derive(Debug, Default)]
struct Links {
    is_message: bool,
    is_boundary: bool,
    /// The id of the answer that the entry belongs to.
    answer: Option<LinkId>,
    calls: Vec<LinkId>,
    results: Vec<LinkId>,
}

/// Messages before a compaction that are kept, and the message that they follow.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Segment {
    head_uuid: String,
    anchor_uuid: String,
    tail_uuid: String,
}

/// Reads a log and returns its active branch.
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    let mut tree = Tree::default();
    let mut segments = Vec::new();
    let mut titles = TITLES.map(|_| None);
    for_each_entry(log, |log, entry| {
        if log.id.is_empty() {
            log.id = entry.text("sessionId").unwrap_or_default();
        }
        log.directory = entry.text("cwd").or(log.directory.take());
        let kind = entry.text("type").unwrap_or_default();
        for ((of, key), title) in TITLES.into_iter().zip(&mut titles) {
            if kind == of {
                *title = entry.text(key);
            }
        }
        segments.extend(take(log, &mut tree, entry, &kind));
    })?;
    relink(&mut tree, segments);
    let is_leaf =
        |node: &Node<Links>| !node.is_side && (node.data.is_message || node.data.is_boundary);
    let leaf = tree.nodes.iter().rposition(is_leaf);
    let chain = with_parallel(&tree, &tree.branch(leaf, log));
    let nodes: Vec<&Node<Links>> = chain.iter().filter_map(|at| tree.nodes.get(*at)).collect();
    push_again(log, &nodes, content)?;
    log.title = titles.into_iter().flatten().next();
    let is_side = |node: &Node<Links>| node.is_side && node.data.is_message;
    Ok(match tree.nodes.iter().any(is_side) {
        true => "it is the log of a sub-agent; name the session that started it",
        false => NO_MESSAGE,
    })
}

/// Adds an entry to the tree. Returns the messages that a compaction kept.
fn take(
    log: &mut SessionLog,
    tree: &mut Tree<Links>,
    entry: &Entry<'_>,
    kind: &str,
) -> Option<Segment> {
    let is_side = entry.raw("isSidechain") == Some("true");
    let is_boundary = entry.raw("subtype") == Some("\"compact_boundary\"");
    let mut segment = None;
    if is_boundary && !is_side {
        let metadata = entry.value("compactMetadata").unwrap_or_default();
        let kept = metadata.get("preservedSegment").cloned();
        segment = kept.and_then(|kept| serde_json::from_value(kept).ok());
    }
    let mut data = Links {
        is_boundary,
        is_message: kind == "attachment" && entry.raw("attachment").is_some_and(is_attached),
        ..Links::default()
    };
    if let ("user" | "assistant", Some(message)) = (kind, entry.raw("message")) {
        match data.message(message, kind == "assistant") {
            Ok(()) => data.is_message = true,
            Err(error) => log.unread(entry, "its message", &error),
        }
    }
    // An entry without an id cannot be a parent, and is not part of the tree.
    let id = LinkId::of(entry.text("uuid")?);
    let parent = entry.text("parentUuid").map(LinkId::of);
    let place = entry.place;
    tree.push(
        id,
        Node {
            place,
            parent,
            is_side,
            data,
        },
    );
    segment
}

impl Links {
    fn message(&mut self, message: &str, is_answer: bool) -> serde_json::Result<()> {
        let message: RawObject<'_> = serde_json::from_str(message)?;
        let id = |of: &RawObject<'_>, key: &str| of.get(key).map(|_| LinkId::of(of.text(key)));
        self.answer = id(&message, "id").filter(|_| is_answer);
        let content = message.get("content").unwrap_or("null");
        if content.starts_with('"') {
            return Ok(());
        }
        let blocks: Vec<RawObject<'_>> = serde_json::from_str(content)?;
        for block in blocks {
            self.results.extend(id(&block, "tool_use_id"));
            self.calls.extend(id(&block, "id").filter(|_| is_answer));
        }
        Ok(())
    }
}

/// Moves messages that were preserved by a compaction after its summary.
fn relink(tree: &mut Tree<Links>, segments: Vec<Segment>) {
    for segment in segments {
        let anchor = LinkId::of(&segment.anchor_uuid);
        let head = tree.find(LinkId::of(&segment.head_uuid));
        if head.is_none() || tree.find(anchor).is_none() {
            continue;
        }
        for node in &mut tree.nodes {
            if node.parent == Some(anchor) {
                node.parent = Some(LinkId::of(&segment.tail_uuid));
            }
        }
        if let Some(head) = head.and_then(|at| tree.nodes.get_mut(at)) {
            head.parent = Some(anchor);
        }
    }
}

/// Adds the entries beside the chain. An answer consists of several entries, and results of parallel calls
/// are attached to different ones of these. The complete answer comes before its results.
fn with_parallel(tree: &Tree<Links>, chain: &[usize]) -> Vec<usize> {
    let places = chain.iter().enumerate();
    let places: HashMap<usize, usize> = places.map(|(place, at)| (*at, place)).collect();
    let nodes = tree.nodes.iter().enumerate();
    let nodes = nodes.filter(|(at, node)| !node.is_side || places.contains_key(at));
    let mut answers: HashMap<LinkId, usize> = HashMap::new();
    for (place, at) in chain.iter().enumerate() {
        let answer = tree.nodes.get(*at).and_then(|node| node.data.answer);
        answer.map(|answer| *answers.entry(answer).or_insert(place));
    }
    let place_of = |links: &Links| answers.get(&links.answer?).copied();
    let calls = nodes.clone().flat_map(|(at, node)| {
        let place = place_of(&node.data);
        let calls = node.data.calls.iter();
        calls.filter_map(move |call| Some((*call, (place?, at))))
    });
    let calls: HashMap<LinkId, (usize, usize)> = calls.collect();
    // By the place of the answer, with its results behind it in the order of the calls. A result for several answers
    // follows the last one.
    let active = nodes.filter_map(|(at, node)| {
        let asked = node.data.results.iter().filter_map(|call| calls.get(call));
        let own = places.get(&at);
        let asked = asked.max().filter(|(_, call)| own.is_some() || *call < at);
        let result = asked.map(|(place, call)| (*place, true, *call, at));
        let other = place_of(&node.data).or(own.copied());
        result.or(other.map(|place| (place, false, at, at)))
    });
    let mut active: Vec<(usize, bool, usize, usize)> = active.collect();
    active.sort_unstable();
    active.into_iter().map(|(.., at)| at).collect()
}

/// Returns the part of an entry that a model sees.
fn content(entry: &Entry<'_>, links: &Links) -> serde_json::Result<EntryContent> {
    let kind = entry.text("type").unwrap_or_default();
    let mut read = EntryContent::default();
    if !links.is_message {
        // Older versions noted the progress of a tool as entries, which they did not read again. A message
        // that cannot be read is damage.
        let is_left = matches!(kind.as_str(), "progress" | "user" | "assistant");
        read.is_kept = !links.is_boundary && !is_left;
        return Ok(read);
    }
    let mut message = entry.value("message")?;
    let is_answer = kind == "assistant";
    let attachment = entry.value("attachment")?;
    let mut content = match message.get_mut("content").map(Value::take) {
        Some(Value::String(text)) => vec![blocks::text(&text)],
        Some(Value::Array(blocks)) => blocks,
        _ => attached(&attachment),
    };
    let attached_as = |key: &str| attachment.get(key).unwrap_or(&Value::Null);
    let is_of_host = is_of_host(&entry.value("isMeta")?, &entry.value("origin")?)
        || is_of_host(attached_as("isMeta"), attached_as("origin"));
    if entry.raw("isCompactSummary") == Some("true") {
        content.iter_mut().for_each(blocks::mark_as_summary);
    } else if !is_answer && is_of_host {
        content.iter_mut().for_each(blocks::mark_as_host);
    }
    if entry.raw("isApiErrorMessage") == Some("true") {
        let texts = content.iter().filter_map(|block| text(block, "/text"));
        let error = texts.collect::<Vec<_>>().join(" ");
        read.answer = Some((0, Some(error)));
        return Ok(read);
    }
    let model = text(&message, "/model");
    if model == Some(SYNTHETIC) {
        // "No response requested.", an entry without a request.
        return Ok(read);
    }
    if is_answer {
        read.model = model.map(str::to_owned);
        read.answer = Some((sum(message.get("usage"), &USAGE), None));
    }
    // Claude Code omits blank texts too: the API does not accept them.
    let blocks = content.into_iter().enumerate();
    read.blocks = blocks.filter(|(_, block)| !is_blank(block)).collect();
    Ok(read)
}

/// Checks whether `isMeta` and `origin` of an entry say that no person typed it.
fn is_of_host(is_meta: &Value, origin: &Value) -> bool {
    let origin = text(origin, "/kind");
    *is_meta == Value::Bool(true) || origin.is_some_and(|kind| kind != PERSON)
}

fn is_attached(attachment: &str) -> bool {
    let attachment: Value = serde_json::from_str(attachment).unwrap_or_default();
    attached(&attachment).iter().any(|block| !is_blank(block))
}

/// Converts an attachment to blocks, as Claude Code does for a request: the message that the user sent during a run,
/// and files that the user named. Other attachments are added anew by Claude Code.
fn attached(attachment: &Value) -> Vec<Value> {
    let of = |pointer: &str| text(attachment, pointer);
    match (of("/type"), of("/content/file/content")) {
        (Some("queued_command"), _) => {
            let mut prompt = match attachment.get("prompt") {
                Some(Value::String(prompt)) => vec![blocks::text(prompt)],
                Some(Value::Array(blocks)) => blocks.clone(),
                _ => Vec::new(),
            };
            prompt.retain(|block| matches!(text(block, "/type"), Some("text" | "image")));
            if !matches!(of("/commandMode"), None | Some("prompt")) {
                prompt.iter_mut().for_each(blocks::mark_as_host);
            }
            prompt
        }
        (Some("file"), Some(content)) => {
            let name = of("/filename").unwrap_or("a file");
            let mut file = blocks::text(&format!("Contents of {name}:\n{content}"));
            blocks::mark_as_host(&mut file);
            vec![file]
        }
        _ => Vec::new(),
    }
}

/// Checks whether a block is a blank text.
fn is_blank(block: &Value) -> bool {
    let own = text(block, "/text").filter(|_| text(block, "/type") == Some("text"));
    own.is_some_and(|text| text.trim().is_empty())
}
