//! [`Recording`]: a recorded session in its original order. [`Times`]: the times of its messages,
//! read from the agent's own files.
//!
//! Summaries written by the recorded agent are left out, since another policy would not have
//! created them.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use plimsoll_context::Message;
use plimsoll_foreign::{Chat, Reasoning, Repair, Target, import};
use plimsoll_wire::WireError;
use plimsoll_wire::openai_chat::Dialect;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ReplayError;
use crate::retention::Probes;

/// Maximum length of a line in bytes. The largest recorded sessions have 3 MB.
pub const MAX_LINE: u64 = 256 * 1024 * 1024;

/// One recorded session.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Name of the session.
    pub id: String,
    /// The complete messages; each call has its result.
    pub messages: Vec<Arc<Message>>,
    /// The repairs that were necessary. Positions do not count summaries.
    pub repairs: Vec<Repair>,
    /// The time of each message since 1970. Empty or `None` if unknown.
    times: Vec<Option<Duration>>,
    /// The probes to search for in its views.
    pub(crate) probes: Arc<Probes>,
}

/// Times of messages, by call id or text.
#[derive(Debug, Clone, Default)]
pub struct Times {
    calls: HashMap<String, Duration>,
    texts: HashMap<String, Duration>,
}

/// The other fields of a recorded session.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SessionFields {
    id: String,
    events: Vec<RecordedEvent>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RecordedEvent {
    summary_at: Option<usize>,
}

impl Recording {
    /// Parses a JSON object with `messages` in the format of Chat Completions (including
    /// `reasoning_content`), an `id`, and `events` whose `summary_at` marks summaries written by
    /// the agent itself. Repairs damaged sessions.
    ///
    /// # Errors
    /// If the text is not JSON, or has no list of messages.
    pub fn parse(line: &str) -> Result<Self, WireError> {
        let mut session: Value = plimsoll_wire::__internals::parse(line)?;
        let beside: SessionFields = serde_json::from_str(line).unwrap_or_default();
        let summaries = beside.events.iter().filter_map(|event| event.summary_at);
        let summaries: HashSet<usize> = summaries.collect();
        if let Some(messages) = session.get_mut("messages").and_then(Value::as_array_mut) {
            let mut places = 0..;
            messages.retain(|_| places.next().is_none_or(|at| !summaries.contains(&at)));
        }
        let target = Target::Chat(Dialect::compatible());
        let text = session.to_string();
        let chat = Chat::read(&text, target.protocol())?;
        let (messages, repairs) = import(chat, &target, Reasoning::Keep)?;
        let messages = messages.into_iter().map(Arc::new).collect();
        Ok(Self {
            repairs,
            ..Self::new(beside.id, messages)
        })
    }

    /// Creates a session from these messages, which must be complete.
    pub(crate) fn new(id: String, messages: Vec<Arc<Message>>) -> Self {
        Self {
            probes: Arc::new(Probes::of(messages.iter().map(Arc::as_ref))),
            id,
            messages,
            repairs: Vec::new(),
            times: Vec::new(),
        }
    }

    /// Returns the recording with the known times of its assistant messages.
    #[must_use]
    pub fn with_times(mut self, times: &Times) -> Self {
        let time = |message: &Arc<Message>| times.of(message);
        self.times = self.messages.iter().map(time).collect();
        self
    }

    /// Returns `true` if the times of at least half of its assistant messages are known.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        let is_answer = |message: &&Arc<Message>| matches!(***message, Message::Assistant { .. });
        let answers = self.messages.iter().filter(is_answer).count();
        let known = self.times.iter().flatten().count();
        answers > 0 && known * 2 >= answers
    }

    /// Returns the time between the answer at `at` and the previous one, if both are known.
    pub(crate) fn idle_before(&self, at: usize) -> Option<Duration> {
        let now = self.times.get(at).copied().flatten()?;
        let earlier = self.times.get(..at)?.iter().rev().flatten().next()?;
        now.checked_sub(*earlier)
    }
}

impl Times {
    /// Adds the times in a file of Claude Code or pi, optionally compressed with gzip. Lines in
    /// other formats are ignored.
    ///
    /// # Errors
    /// If the file cannot be read or has a line over [`MAX_LINE`].
    pub fn read(&mut self, path: &Path) -> Result<(), ReplayError> {
        for_each_line(path, |_, line| {
            let line: WrittenLine = serde_json::from_str(line).unwrap_or_default();
            let Some(time) = since_1970(&line.timestamp) else {
                return Ok(());
            };
            for block in line.message.content.into_iter().flatten() {
                let block: RecordedBlock = serde_json::from_value(block).unwrap_or_default();
                if matches!(block.kind.as_str(), "tool_use" | "toolCall") {
                    self.calls.entry(block.id).or_insert(time);
                } else if !block.text.trim().is_empty() {
                    let text = block.text.trim().to_owned();
                    self.texts.entry(text).or_insert(time);
                }
            }
            Ok(())
        })
    }

    /// Returns the time of an assistant message.
    fn of(&self, message: &Message) -> Option<Duration> {
        let Message::Assistant { .. } = message else {
            return None;
        };
        let by_call = message.calls().find_map(|call| self.calls.get(&call.id.0));
        let by_text = || self.texts.get(message.text().trim());
        by_call.or_else(by_text).copied()
    }
}

/// A line of an agent's own file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenLine {
    timestamp: String,
    message: WrittenMessage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WrittenMessage {
    #[serde(deserialize_with = "list_or_none")]
    content: Option<Vec<serde_json::Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RecordedBlock {
    #[serde(rename = "type")]
    kind: String,
    id: String,
    text: String,
}

/// Deserializes a list. Returns `None` for any other value.
fn list_or_none<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<serde_json::Value>>, D::Error> {
    Ok(match serde_json::Value::deserialize(from)? {
        serde_json::Value::Array(list) => Some(list),
        _ => None,
    })
}

/// Parses a time such as `2026-02-17T13:34:08.867Z`.
fn since_1970(text: &str) -> Option<Duration> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let hours: u64 = time.next()?.parse().ok()?;
    let minutes: u64 = time.next()?.parse().ok()?;
    let seconds: f64 = time.next()?.parse().ok()?;
    // Days since 1970 in the Gregorian calendar; the year begins in March.
    let year = if month <= 2 {
        year.checked_sub(1)?
    } else {
        year
    };
    let since_march = (month + 9) % 12;
    let days = (365 * year + year / 4 + year / 400 + (153 * since_march + 2) / 5 + day)
        .checked_sub(year / 100 + 719_469)?;
    Duration::try_from_secs_f64(seconds)
        .ok()?
        .checked_add(Duration::from_secs(
            days * 86_400 + hours * 3_600 + minutes * 60,
        ))
}

/// Reads the sessions of a `.jsonl` file, one per line, optionally compressed with gzip (`.gz`).
/// Empty lines are ignored.
///
/// # Errors
/// If the file cannot be read, or at the first line that is not a session.
pub fn read(path: &Path) -> Result<Vec<Recording>, ReplayError> {
    let mut recordings = Vec::new();
    for_each_line(path, |number, line| {
        let recording = Recording::parse(line).map_err(|source| ReplayError::Line {
            path: path.to_path_buf(),
            line: number,
            source,
        })?;
        recordings.push(recording);
        Ok(())
    })?;
    Ok(recordings)
}

/// Calls `each` with the number and the text of each non-empty line.
fn for_each_line(
    path: &Path,
    mut each: impl FnMut(usize, &str) -> Result<(), ReplayError>,
) -> Result<(), ReplayError> {
    let broken = |source| ReplayError::File {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(broken)?;
    let is_packed = path.extension().is_some_and(|end| end == "gz");
    let mut lines: Box<dyn BufRead> = if is_packed {
        Box::new(BufReader::new(GzDecoder::new(file)))
    } else {
        Box::new(BufReader::new(file))
    };
    for number in 1.. {
        let mut line = String::new();
        let read = lines.by_ref().take(MAX_LINE + 1).read_line(&mut line);
        if read.map_err(broken)? == 0 {
            break;
        }
        if line.len() as u64 > MAX_LINE {
            return Err(ReplayError::TooLong {
                path: path.to_path_buf(),
                line: number,
                max: MAX_LINE,
            });
        }
        if !line.trim().is_empty() {
            each(number, &line)?;
        }
    }
    Ok(())
}
