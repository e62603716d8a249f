//! [`SessionLog`]: the active messages of one session as [`Unit`]s, with data about the session.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_context::typed_words;
use plimsoll_foreign::{Chat, Repair, Role, Unit, half_characters_repair, replace_half_characters};
use serde::Serialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::error::LogError;
use crate::input::{Entry, EntryPlace, LogFile, replace_invalid_bytes};

/// The maximum number of descriptions of damaged lines; further ones are only counted.
pub const MAX_DAMAGE: usize = 100;
/// The maximum length of a title, in characters.
const MAX_TITLE: usize = 80;
/// The maximum size of a unit with an image in [`SessionLog::used_tokens`], in bytes.
const MAX_IMAGE: usize = 24_000;
/// The number of bytes that are estimated as a token.
const BYTES_OF_TOKEN: u64 = 4;
/// The end of the title of a copy.
const COPIED: &str = " (rescued)";

/// A session that was read from a log.
#[derive(Debug)]
pub struct SessionLog {
    /// The agent that wrote the log.
    pub agent: Agent,
    /// The log file.
    pub path: PathBuf,
    /// The id of the session. Empty if the log does not contain it.
    pub id: String,
    /// The name of the session, or the beginning of its first message.
    pub title: Option<String>,
    /// The model of the last answer, as named in the log.
    pub model: Option<String>,
    /// The working directory of the agent.
    pub directory: Option<String>,
    /// The model's window in tokens, if the log contains it.
    pub window: Option<u64>,
    /// The size of the last request as counted by its provider.
    pub reported: Option<ReportedSize>,
    /// The error with which the session ends, in the provider's words.
    pub last_error: Option<String>,
    /// Descriptions of damaged lines, at most [`MAX_DAMAGE`].
    pub damage: Vec<Damage>,
    /// Number of damaged lines.
    pub damaged: usize,
    /// Repairs of the text before it could be read, at most [`MAX_DAMAGE`].
    pub repairs: Vec<Repair>,
    /// The system prompt, if the log contains it.
    pub instructions: Option<String>,
    /// The messages of the active branch. The entry of each is its number on the branch, and the block its place in
    /// the content of the entry.
    pub units: Vec<Unit<'static>>,
    /// Its data beside the messages, if they are one object: in opencode and Gemini CLI.
    pub(crate) metadata: Value,
    /// The time of its first entry. In opencode, the id of the first message, which contains the time.
    pub(crate) began: Option<String>,
    /// The number of the entry with which the active branch begins, if entries before it do not belong to it.
    pub(crate) begin: usize,
    /// The entries of the active branch that a copy contains.
    pub(crate) branch: Vec<BranchEntry>,
    /// Whether the beginning of the branch is missing, which the provider counted, too.
    pub(crate) is_part: bool,
    /// Whether the branch begins with a compaction that only the provider can read, or has reasoning that only its own
    /// provider can read.
    pub(crate) has_encrypted: bool,
    /// Whether the messages before such compactions are read in their place, and such reasoning as thinking, to be left
    /// out.
    pub(crate) ignores_encrypted: bool,
    pub(crate) file: Arc<LogFile>,
}

/// An entry of the active branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchEntry {
    pub(crate) place: EntryPlace,
    /// The number of its units. An entry without units is no message; it is copied.
    pub(crate) units: usize,
    /// Whether a part of it is left out, so that it is not copied as it is.
    pub(crate) is_reduced: bool,
}

/// The size of a request as counted by its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedSize {
    /// Input and output tokens together.
    pub tokens: u64,
    /// The number of units up to and including the answer to this request.
    pub units: usize,
}

/// A line of a log that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The number of the line or the message, from 1.
    pub line: usize,
    /// A description of the damage.
    pub what: String,
    /// The size of the entry that could not be read, in bytes; 0 if nothing was lost.
    pub bytes: usize,
}

impl SessionLog {
    pub(crate) fn new(path: &Path, file: Arc<LogFile>) -> Self {
        let agent = file.agent;
        Self {
            agent,
            path: path.to_owned(),
            id: String::new(),
            title: None,
            model: None,
            directory: None,
            window: None,
            reported: None,
            last_error: None,
            damage: Vec::new(),
            damaged: 0,
            repairs: Vec::new(),
            instructions: None,
            units: Vec::new(),
            metadata: json!({}),
            began: None,
            begin: 0,
            branch: Vec::new(),
            is_part: false,
            has_encrypted: false,
            ignores_encrypted: false,
            file,
        }
    }

    /// Takes the units out of the log and returns them as a chat.
    #[must_use]
    pub fn take_chat(&mut self) -> Chat<'static> {
        let instructions = self.instructions.clone().map(Value::from);
        let units = std::mem::take(&mut self.units);
        let places = self.branch.iter().map(|entry| match entry.units {
            0 => String::new(),
            _ => entry.place.to_string(),
        });
        Chat::of_log(self.agent.protocol(), places.collect(), instructions, units)
    }

    /// Returns the tokens of the next request: those of the last one as its provider counted them, minus an estimate of
    /// the entries in it that could not be read since, plus one of the units behind it. `None` if the log has no
    /// count.
    #[must_use]
    pub fn used_tokens(&self) -> Option<u64> {
        let ReportedSize { tokens, units } = self.reported?;
        let (before, since) = self.units.split_at(units.min(self.units.len()));
        let left = tokens.saturating_sub(self.lost_tokens(units));
        let before = left.max(estimated(before).min(tokens));
        Some(before.saturating_add(estimated(since)))
    }

    /// Estimates the tokens of the entries before the end of the first `units` that could not be read.
    #[must_use]
    pub fn lost_tokens(&self, units: usize) -> u64 {
        let units = self.units.get(..units).unwrap_or(&self.units);
        let last = units.last().and_then(|unit| Some(unit.place?.entry));
        let last = last.and_then(|entry| self.branch.get(entry));
        let last = last.map_or(usize::MAX, |entry| entry.place.number);
        let damage = self.damage.iter();
        let lost = damage.filter(|damage| (self.begin..=last).contains(&damage.line));
        lost.map(|damage| damage.bytes as u64).sum::<u64>() / BYTES_OF_TOKEN
    }

    /// Checks whether the session is a copy that Plimsoll wrote.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        let title = self.title.as_deref().unwrap_or_default();
        title.ends_with(COPIED)
    }

    /// Returns the title of a copy of this session.
    pub(crate) fn copy_title(&self) -> String {
        let title = self.title.as_deref().unwrap_or("Session");
        format!("{}{COPIED}", title.trim_end_matches(COPIED))
    }

    /// Adds an entry of the active branch. Each unit has its place in the content of the entry.
    pub(crate) fn push(
        &mut self,
        place: EntryPlace,
        units: impl IntoIterator<Item = (usize, Role, Value)>,
    ) {
        let entry = self.branch.len();
        let before = self.units.len();
        let units = units.into_iter();
        let units = units.map(|(block, role, value)| Unit::of_log(entry, block, role, value));
        self.units.extend(units);
        let units = self.units.len() - before;
        let is_reduced = false;
        self.branch.push(BranchEntry {
            place,
            units,
            is_reduced,
        });
    }

    /// Records the provider's token count for the request whose answer was added last.
    pub(crate) fn report(&mut self, tokens: u64) {
        if tokens > 0 && !self.is_part {
            let units = self.units.len();
            self.reported = Some(ReportedSize { tokens, units });
        }
    }

    /// Records damage, with the size of the entry that was lost.
    pub(crate) fn damaged(&mut self, place: EntryPlace, bytes: usize, what: impl Into<String>) {
        self.damaged += 1;
        if self.damage.len() < MAX_DAMAGE {
            let (line, what) = (place.number, what.into());
            self.damage.push(Damage { line, what, bytes });
        }
    }

    /// Takes an entry. One that is no JSON object is damage.
    pub(crate) fn take(
        &mut self,
        place: EntryPlace,
        entry: serde_json::Result<Entry<'_>>,
        each: &mut dyn FnMut(&mut Self, &Entry<'_>),
    ) {
        match entry {
            Ok(entry) => each(self, &entry),
            Err(error) if error.is_eof() => {
                self.damaged(place, place.bytes, "cut off in the middle");
            }
            Err(error) => {
                let what = format!("not an entry of {}: {error}", self.agent.title());
                self.damaged(place, place.bytes, what);
            }
        }
    }

    /// Records that an entry, or this part of it, cannot be read.
    pub(crate) fn unread(&mut self, entry: &Entry<'_>, part: &str, error: &serde_json::Error) {
        let what = format!("{part} cannot be read: {error}");
        self.damaged(entry.place, entry.text.len(), what);
    }

    /// Replaces halves of characters and bytes that are no UTF-8, and records that.
    pub(crate) fn replaced(&mut self, text: &mut [u8], place: impl fmt::Display) {
        let halves = replace_half_characters(text);
        if halves > 0 && self.repairs.len() < MAX_DAMAGE {
            let repair = half_characters_repair(halves, place.to_string());
            self.repairs.extend(repair);
        }
        let bytes = replace_invalid_bytes(text);
        if bytes > 0 {
            self.repaired(place, format!("replaced bytes that are no UTF-8: {bytes}"));
        }
    }

    /// Records that an entry has to be written in another way, since its agent cannot read it.
    pub(crate) fn repaired(&mut self, place: impl fmt::Display, done: impl Into<String>) {
        self.repaired_by("lines", place, done);
    }

    /// Records a repair by this fix-up.
    pub(crate) fn repaired_by(
        &mut self,
        fix: &'static str,
        place: impl fmt::Display,
        done: impl Into<String>,
    ) {
        if self.repairs.len() < MAX_DAMAGE {
            let (place, done) = (place.to_string(), done.into());
            self.repairs.push(Repair { place, fix, done });
        }
    }

    /// Returns the log if it contains any messages, or an error with the likely cause.
    pub(crate) fn checked(mut self, why: &str) -> Result<Self, LogError> {
        if self.units.is_empty() {
            let why = match self.damaged {
                0 => why.to_owned(),
                1 if self.agent == Agent::Opencode => {
                    "it is damaged; write it again with `opencode export ID`".to_owned()
                }
                1 => "its only line with content is damaged".to_owned(),
                count => format!("{count} lines are damaged"),
            };
            return Err(LogError::Empty {
                path: self.path,
                agent: self.agent.title(),
                why,
            });
        }
        if self.id.is_empty() && matches!(self.agent, Agent::Codex | Agent::Pi) {
            self.repaired(
                "the beginning",
                "wrote the header, without which its agent reads nothing",
            );
        }
        let title = self.title.take().or_else(|| self.first_prompt());
        self.title = title.map(|title| match title.strip_suffix(COPIED) {
            Some(title) => format!("{}{COPIED}", short(title)),
            None => short(&title),
        });
        Ok(self)
    }

    /// Returns the first words that a person typed.
    fn first_prompt(&self) -> Option<String> {
        self.units.iter().find_map(|unit| {
            let value = unit.value();
            let is_user = match unit.role {
                Role::Own => value.get("role").and_then(Value::as_str) == Some("user"),
                role => role == Role::User,
            };
            let is_user = is_user && value.get("tool_use_id").is_none();
            let content = value.get("content").unwrap_or(value);
            let one = [value, content].into_iter();
            let parts = one.chain(content.as_array().into_iter().flatten());
            let texts = parts.filter_map(|part| part.as_str().or(text(part, "/text")));
            let mut typed = texts.filter(|_| is_user).filter_map(typed_words);
            typed.next().map(Cow::into_owned)
        })
    }
}

/// Estimates the tokens of units: four bytes a token, but no more than [`MAX_IMAGE`] for one with an image, whose
/// base64 does not correspond to tokens.
pub(crate) fn estimated<'u>(units: impl IntoIterator<Item = &'u Unit<'u>>) -> u64 {
    let bytes = units.into_iter().map(|unit| match unit.json() {
        json if json.contains("base64") => json.len().min(MAX_IMAGE) as u64,
        json => json.len() as u64,
    });
    bytes.sum::<u64>() / BYTES_OF_TOKEN
}

/// Returns a title on one line.
fn short(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    let title = words.join(" ");
    match title.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", title.get(..end).unwrap_or_default()),
        None => title,
    }
}

/// Returns the text at a JSON pointer.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

/// Returns the sum of the numbers under these keys.
pub(crate) fn sum(usage: Option<&Value>, keys: &[&str]) -> u64 {
    let numbers = keys.iter().filter_map(|key| usage?.get(key)?.as_u64());
    numbers.fold(0, u64::saturating_add)
}
