//! [`copy()`](copy): writes a repaired history as a new session of the agent that wrote the log.
//!
//! It returns the text and does not write any file.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::error::LogError;
use crate::ids::Ids;
use crate::input::{LogLine, for_each_line};
use crate::match_up::{MatchedBlock, match_up};
use crate::session::{Role, SessionLog};
use crate::{claude_code, codex, gemini, opencode, pi};

/// A new session, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// The id of the new session.
    pub id: String,
    /// The path at which the agent looks for the session, next to the original.
    pub path: PathBuf,
    /// The content of the file.
    pub text: String,
    /// The command that resumes the session, for a shell in the directory of the session.
    pub resume: String,
}

/// Returns a history as a new session of the agent that wrote `log`.
///
/// `history` is [`SessionLog::request`], repaired or compacted. `tokens` is its size as counted by
/// the provider, if it became smaller: otherwise the agent would find the old size and compact
/// again.
///
/// # Errors
///
/// [`LogError::Read`] if the log cannot be read a second time, [`LogError::NoCopy`] for agents
/// whose sessions cannot be resumed, and [`LogError::Write`] if the history cannot be parsed.
pub fn copy(
    log: &SessionLog,
    history: &str,
    tokens: Option<u64>,
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let blocks = match_up(log, history)?;
    match log.agent {
        Agent::ClaudeCode => claude_code::copy::write(log, &blocks, tokens, ids),
        Agent::Codex => codex::copy::write(log, &blocks, ids),
        Agent::Pi => pi::copy::write(log, &blocks, tokens, ids),
        Agent::Gemini => gemini::copy::write(log, &blocks, ids),
        Agent::Opencode => opencode::copy::write(log, &blocks, tokens, ids),
        agent @ (Agent::OpenHands | Agent::SweAgent | Agent::MiniSweAgent | Agent::CodexExec) => {
            Err(LogError::NoCopy {
                agent: agent.title(),
            })
        }
    }
}

/// Blocks from one entry of the log that belong to one entry of the copy.
pub(crate) struct Group<'m> {
    pub(crate) role: Role,
    /// The entry of the log; `None` if the blocks are new.
    pub(crate) source: Option<usize>,
    pub(crate) blocks: Vec<&'m MatchedBlock>,
    /// Whether the entry is unchanged.
    pub(crate) same: bool,
}

/// Groups blocks by their entries, in order.
pub(crate) fn groups<'m>(log: &SessionLog, blocks: &'m [MatchedBlock]) -> Vec<Group<'m>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for block in blocks {
        let origin = block.origin.and_then(|at| log.blocks.get(at));
        let source = origin.map(|origin| origin.source);
        match groups.last_mut() {
            Some(last) if last.role == block.role && last.source == source => {
                last.blocks.push(block);
            }
            _ => groups.push(Group {
                role: block.role,
                source,
                blocks: vec![block],
                same: false,
            }),
        }
    }
    mark_same(log, &mut groups);
    groups
}

/// Groups blocks for agents that keep a call and its result in one entry: the result is added to
/// its call. Each entry has the position of its first block.
pub(crate) fn joined<'m>(
    log: &SessionLog,
    blocks: &'m [MatchedBlock],
) -> Result<Vec<Group<'m>>, LogError> {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut calls: HashMap<String, usize> = HashMap::new();
    let mut joined: Vec<Group<'_>> = Vec::new();
    let mut turn = None;
    for block in blocks {
        let origin = block.origin.and_then(|at| log.blocks.get(at));
        let source = origin.map(|origin| origin.source);
        let json = parsed(&block.json)?;
        let text = |key| json.get(key).and_then(Value::as_str);
        let of_call = text("tool_use_id").and_then(|id| calls.get(id)).copied();
        let of_source = source.and_then(|source| places.get(&source)).copied();
        // New blocks of one message stay together.
        let is_last = turn == Some(block.turn) && source.is_none();
        let of_turn = joined.len().checked_sub(1).filter(|_| is_last);
        let of_turn = of_turn.filter(|at| joined.get(*at).is_some_and(|one| one.source.is_none()));
        let place = of_call.or(of_source).or(of_turn).unwrap_or(joined.len());
        if place == joined.len() {
            joined.push(Group {
                role: block.role,
                source,
                blocks: Vec::new(),
                same: false,
            });
            places.extend(source.map(|source| (source, place)));
        }
        if let Some(id) = text("id") {
            calls.insert(id.to_owned(), place);
        }
        if let Some(group) = joined.get_mut(place) {
            group.blocks.push(block);
        }
        turn = Some(block.turn);
    }
    mark_same(log, &mut joined);
    Ok(joined)
}

/// Marks the groups that consist of all blocks of their entry, unchanged.
fn mark_same(log: &SessionLog, groups: &mut [Group<'_>]) {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for block in &log.blocks {
        *counts.entry(block.source).or_default() += 1;
    }
    for group in groups {
        let whole = group.source.and_then(|source| counts.get(&source));
        group.same =
            whole == Some(&group.blocks.len()) && group.blocks.iter().all(|block| block.same);
    }
}

/// Reads the entries of the groups again.
pub(crate) fn sources(
    path: &Path,
    groups: &[Group<'_>],
) -> Result<HashMap<usize, JsonEntry>, LogError> {
    let wanted: HashSet<usize> = groups.iter().filter_map(|group| group.source).collect();
    let mut entries = HashMap::with_capacity(wanted.len());
    for_each_line(path, |number, line| {
        if let (true, LogLine::Whole(line)) = (wanted.contains(&number), line)
            && let Ok(entry) = serde_json::from_slice(line)
        {
            entries.insert(number, entry);
        }
    })?;
    Ok(entries)
}

/// An entry of a log as JSON.
pub(crate) type JsonEntry = Map<String, Value>;

/// Sets a key of an object. Does nothing for any other value.
pub(crate) fn set(value: &mut Value, key: &str, to: Value) {
    if let Value::Object(object) = value {
        object.insert(key.to_owned(), to);
    }
}

/// Parses a block that was matched.
pub(crate) fn parsed(json: &str) -> Result<Value, LogError> {
    serde_json::from_str(json).map_err(LogError::write)
}

/// Returns the text of a tool result.
pub(crate) fn result_text(result: &Value) -> String {
    match result.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) => {
            let texts = list.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the file name of a log without the extensions of its format and compression.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut name = name.as_ref();
    for end in [".gz", ".zst", ".jsonl", ".json"] {
        name = name.strip_suffix(end).unwrap_or(name);
    }
    name.to_owned()
}

/// Returns a shell word, in quotes if necessary.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
