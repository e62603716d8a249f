//! [`copy()`](copy): a repaired chat as a new session of the agent that wrote the log.
//!
//! The chat consists of units that know their entry of the log. Entries without a changed unit are copied, with
//! new ids and links. Changed entries keep everything except their content, and new units become entries of
//! the agent's form. The log is read again while the copy is written, so that neither has to fit into memory.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use plimsoll_foreign::{Change, Role, Unit};
use plimsoll_wire::__internals::{RawObject, quoted, set};
use serde_json::Value;

use crate::agent::Agent;
use crate::blocks::wire_id;
use crate::claude_code::copy::ClaudeCodeWriter;
use crate::codex::copy::CodexWriter;
use crate::error::LogError;
use crate::gemini::copy::GeminiWriter;
use crate::ids::Ids;
use crate::opencode::copy::OpencodeWriter;
use crate::pi::copy::PiWriter;
use crate::session::{BranchEntry, SessionLog, estimated, text};
use crate::{codex, gemini, opencode, pi};

/// The maximum number of tokens by which a unit is longer in an agent's form.
const REWRITTEN: u64 = 16;

/// A new session, which is not written yet.
#[derive(Debug)]
pub struct Copy<'a> {
    /// The id of the new session.
    pub id: String,
    /// The path at which the agent looks for the session, next to the original.
    pub path: PathBuf,
    /// The directory in which the new session is resumed: by default that of the original.
    pub directory: Option<String>,
    pub(crate) log: &'a SessionLog,
    units: &'a [Unit<'a>],
    /// The size of the session that its answers note.
    pub(crate) tokens: Option<u64>,
    pub(crate) ids: Ids,
    /// The text that was not written yet.
    pub(crate) text: String,
    /// The id of the last entry, as JSON.
    last: String,
    used: HashSet<String>,
}

/// Returns a chat as a new session of the agent that wrote `log`. Its title says that it is a copy.
///
/// `units` are those of [`SessionLog::take_chat`], repaired or compacted. `tokens` is their size as counted by
/// the provider, if it became smaller: otherwise the agent would find the old size and compact again. The copy,
/// read again, has at most this size.
///
/// # Errors
///
/// [`LogError::NoCopy`] for agents whose sessions cannot be resumed.
pub fn copy<'a>(
    log: &'a SessionLog,
    units: &'a [Unit<'a>],
    tokens: Option<u64>,
    mut ids: Ids,
) -> Result<Copy<'a>, LogError> {
    let id = match log.agent {
        Agent::Opencode => opencode::copy::id(log, &mut ids),
        _ => ids.uuid(),
    };
    let name = match log.agent {
        Agent::ClaudeCode => format!("{id}.jsonl"),
        Agent::Codex => codex::copy::name(log, &id),
        Agent::Pi => pi::copy::name(log, &id),
        Agent::Gemini => gemini::copy::name(log, &id),
        Agent::Opencode => format!("rescued-{id}.json"),
        agent @ (Agent::OpenHands | Agent::SweAgent | Agent::MiniSweAgent | Agent::CodexExec) => {
            let agent = agent.title();
            return Err(LogError::NoCopy { agent });
        }
    };
    Ok(Copy {
        path: log.path.with_file_name(name),
        directory: log.directory.clone(),
        tokens: tokens.map(|tokens| tokens.saturating_sub(after_answer(units))),
        id,
        log,
        units,
        ids,
        text: String::new(),
        last: "null".to_owned(),
        used: HashSet::new(),
    })
}

impl Copy<'_> {
    /// Writes the content of the file.
    ///
    /// # Errors
    ///
    /// Those of `out`, and of reading the log a second time.
    pub fn write(mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer: Box<dyn EntryWriter> = match self.log.agent {
            Agent::Codex => Box::new(CodexWriter::default()),
            Agent::Pi => Box::new(PiWriter::default()),
            Agent::Gemini => Box::new(GeminiWriter),
            Agent::Opencode => Box::new(OpencodeWriter::new(self.log)),
            _ => Box::new(ClaudeCodeWriter),
        };
        let (log, groups) = (self.log, groups(self.log, self.units));
        let read = |group: &Group<'_>| -> io::Result<Option<String>> {
            let text = group.own.map(|own| log.file.text(own.place)).transpose()?;
            Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
        };
        // A new entry resembles the one before it, or the first one.
        let first = groups.iter().find(|group| group.own.is_some());
        let mut near = first.map(read).transpose()?.flatten();
        writer.begin(&mut self, &keys(near.as_deref()));
        for group in &groups {
            near = read(group)?.or(near);
            let near = keys(near.as_deref());
            let own = match group.own {
                Some(_) => near.clone(),
                None => RawObject::default(),
            };
            writer.entry(&mut self, &CopiedEntry { group, own, near });
            out.write_all(self.text.as_bytes())?;
            self.text.clear();
        }
        writer.end(&mut self, &keys(near.as_deref()));
        out.write_all(self.text.as_bytes())
    }

    /// Writes an entry on one line. The values of a document may stand on several.
    pub(crate) fn line(&mut self, line: &str) {
        let mut lines = line.lines();
        self.text.push_str(lines.next().unwrap_or_default());
        lines.for_each(|line| self.text.push_str(line.trim_start()));
        self.text.push('\n');
    }

    /// Returns the id and the parent of the next entry as JSON, in a tree of entries that becomes one chain. It keeps
    /// its own id, unless it was used before.
    pub(crate) fn link(
        &mut self,
        own: Option<&str>,
        new: impl FnOnce(&mut Ids) -> String,
    ) -> (String, String) {
        let own = own.filter(|own| own.starts_with('"') && !self.used.contains(*own));
        let id = own.map_or_else(|| quoted(&new(&mut self.ids)), str::to_owned);
        self.used.insert(id.clone());
        let parent = std::mem::replace(&mut self.last, id.clone());
        (id, parent)
    }
}

/// Writes the entries of a copy in the form of one agent.
pub(crate) trait EntryWriter {
    /// Writes the beginning. `first` is the first entry of the log that is copied.
    fn begin(&mut self, _new: &mut Copy<'_>, _first: &RawObject<'_>) {}

    /// Writes the entries of a group.
    fn entry(&mut self, new: &mut Copy<'_>, entry: &CopiedEntry<'_>);

    /// Writes the end. `last` is the last entry of the log.
    fn end(&mut self, _new: &mut Copy<'_>, _last: &RawObject<'_>) {}
}

/// A group, with the keys of its entry in the log, and those of the log's entry before it if it has none.
pub(crate) struct CopiedEntry<'c> {
    pub(crate) group: &'c Group<'c>,
    pub(crate) own: RawObject<'c>,
    pub(crate) near: RawObject<'c>,
}

/// Estimates the tokens behind the last answer. Agents, and [`SessionLog::used_tokens`], add them to the size that the
/// answer notes.
fn after_answer(units: &[Unit<'_>]) -> u64 {
    let units: Vec<&Unit<'_>> = written(units).collect();
    let answer = units.iter().rposition(|unit| unit.role == Role::Assistant);
    let behind = units.into_iter().skip(answer.map_or(0, |at| at + 1));
    let rewritten = behind.len() as u64 * REWRITTEN;
    estimated(behind).saturating_add(rewritten)
}

/// An entry of the copy.
#[derive(Debug)]
pub(crate) struct Group<'u> {
    pub(crate) role: Role,
    /// The number of the entry on the branch of the log; `None` if the units are new.
    entry: Option<usize>,
    own: Option<BranchEntry>,
    /// The units, in order. Empty for an entry that is no message.
    pub(crate) units: Vec<&'u Unit<'u>>,
}

impl<'u> Group<'u> {
    fn new(log: &SessionLog, role: Role, entry: Option<usize>, units: Vec<&'u Unit<'u>>) -> Self {
        Self {
            role,
            entry,
            own: entry.and_then(|entry| log.branch.get(entry).copied()),
            units,
        }
    }

    /// Returns the results of tools, and the other units.
    pub(crate) fn results_and_others(&self) -> (Vec<&'u Unit<'u>>, Vec<&'u Unit<'u>>) {
        let is_result = |unit: &&Unit<'_>| unit.value().get("tool_use_id").is_some();
        self.units.iter().copied().partition(is_result)
    }

    /// Checks whether the entry is copied unchanged: the group has all of its units, unchanged and in order.
    pub(crate) fn is_same(&self) -> bool {
        let is_own =
            |unit: &&Unit<'_>| unit.change() == Change::Unchanged && entry_of(unit) == self.entry;
        let own = self.own.filter(|own| !own.is_reduced);
        let count = own.map(|own| own.units);
        count == Some(self.units.len()) && self.units.iter().all(is_own)
    }

    /// Checks whether a unit continues the entry.
    fn takes(&self, unit: &Unit<'_>) -> bool {
        let is_of_turn = self.units.last().is_some_and(|last| last.turn == unit.turn);
        self.role == unit.role
            && self.entry == entry_of(unit)
            && (self.entry.is_some() || is_of_turn)
    }
}

fn entry_of(unit: &Unit<'_>) -> Option<usize> {
    unit.place.map(|place| place.entry)
}

/// Returns the number of a unit in the content of its entry, or `None` if it is new.
pub(crate) fn block_of(unit: &Unit<'_>) -> Option<usize> {
    unit.place.map(|place| place.block)
}

/// Returns the units that are written. A system prompt beside the list is not part of a log's messages.
fn written<'u>(units: &'u [Unit<'u>]) -> impl Iterator<Item = &'u Unit<'u>> {
    units
        .iter()
        .filter(|unit| unit.is_left() && !unit.is_beside())
}

/// Returns the entries of the copy: neighbors of one entry together. If a result is part of its call's entry, it
/// is added there; otherwise each entry that is no message stands before the next message of the log.
pub(crate) fn groups<'u>(log: &SessionLog, units: &'u [Unit<'u>]) -> Vec<Group<'u>> {
    let is_joined = log.agent.joins_results();
    let first = log.branch.iter().position(|entry| entry.units > 0);
    let others = log.branch.iter().enumerate();
    let others = others.filter(|(_, entry)| entry.units == 0 && !is_joined);
    let other = |(at, _)| Group::new(log, Role::Own, Some(at), Vec::new());
    let mut others = others.map(other).peekable();
    let mut groups: Vec<Group<'u>> = Vec::new();
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut last = first;
    for unit in written(units) {
        let value = is_joined.then(|| unit.value());
        let of_call = value.and_then(|value| calls.get(text(value, "/tool_use_id")?).copied());
        // The log of an agent that joins them may have a result in an entry of its own.
        let of_call = of_call.filter(|at| {
            let own = groups.get(*at).and_then(|group| group.entry);
            unit.place.is_none() || entry_of(unit) == own
        });
        let is_next = groups.last().is_some_and(|last| last.takes(unit));
        if of_call.is_none() && !is_next {
            last = last.max(entry_of(unit));
            while let Some(other) = others.next_if(|other| other.entry < last) {
                groups.push(other);
            }
        }
        let at = of_call.unwrap_or(groups.len() - usize::from(is_next));
        match groups.get_mut(at) {
            Some(group) => group.units.push(unit),
            None => groups.push(Group::new(log, unit.role, entry_of(unit), vec![unit])),
        }
        calls.extend(value.and_then(|value| Some((text(value, "/id")?, at))));
    }
    groups.extend(others);
    groups
}

/// Returns the keys of a line.
pub(crate) fn keys(line: Option<&str>) -> RawObject<'_> {
    line.and_then(|line| serde_json::from_str(line).ok())
        .unwrap_or_default()
}

/// Returns the new content of a changed entry. `own` are its blocks in the log. Blocks that no model sees are kept
/// at their places, as are those of unchanged units, and `convert` returns the block of another unit, given its content
/// and the block that it was read from.
pub(crate) fn merged<'u>(
    own: &[Value],
    is_unseen: impl Fn(&Value) -> bool,
    units: impl IntoIterator<Item = &'u Unit<'u>>,
    convert: impl Fn(&Value, Option<&Value>) -> Option<Value>,
) -> Vec<Value> {
    let unseen = own.iter().enumerate().filter(|(_, own)| is_unseen(own));
    let mut content: Vec<(usize, Value)> = unseen.map(|(at, own)| (at, own.clone())).collect();
    for unit in units {
        let at = block_of(unit).unwrap_or(usize::MAX);
        let block = match own.get(at) {
            Some(own) if unit.change() == Change::Unchanged => Some(own.clone()),
            own => convert(unit.value(), own),
        };
        content.extend(block.map(|block| (at, block)));
    }
    content.sort_by_key(|(at, _)| *at);
    content.into_iter().map(|(_, block)| block).collect()
}

/// Returns the call of a changed block, which has its id and its name under these keys: the agent's own one, with the
/// id of the block if that was changed and with a name if it had none, or `new`.
pub(crate) fn called(
    block: &Value,
    own: Option<&Value>,
    [id, name]: [&str; 2],
    new: Value,
) -> Value {
    let mut call = own.cloned().unwrap_or(new);
    let of = |call: &Value, key: &str| call.get(key).and_then(Value::as_str).map(str::to_owned);
    let new_id = text(block, "/id");
    if of(&call, id).as_deref().map(wire_id).as_deref() != new_id {
        set(&mut call, id, new_id);
    }
    if of(&call, name).is_none_or(|name| name.is_empty()) {
        set(&mut call, name, text(block, "/name"));
    }
    call
}

/// Gives the changed results to their calls, which have their ids at a JSON pointer.
pub(crate) fn answer_all(
    calls: &mut [Value],
    results: Vec<&Unit<'_>>,
    pointer: &str,
    answer: impl Fn(&mut Value, &Value),
) {
    for result in results {
        let id = text(result.value(), "/tool_use_id");
        let is_asked = |call: &&mut Value| text(call, pointer).map(wire_id).as_deref() == id;
        if result.change() != Change::Unchanged
            && let Some(call) = calls.iter_mut().find(is_asked)
        {
            answer(call, result.value());
        }
    }
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
