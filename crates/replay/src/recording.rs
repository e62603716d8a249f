//! [`Recording`]: one recorded session, in the order in which it was said. Not what its agent made
//! of it: summaries that it wrote are left out, for another policy would not have had them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::GzDecoder;
use plimsoll_context::{Message, Repair, repair};
use plimsoll_wire::WireError;
use plimsoll_wire::openai_chat;
use serde::Deserialize;

use crate::error::ReplayError;

/// A line that is longer is no session: the largest recorded ones have 3 MB.
pub const MAX_LINE: u64 = 256 * 1024 * 1024;

/// One recorded session.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Its name.
    pub id: String,
    /// What was said: whole, each call with its result.
    pub messages: Vec<Arc<Message>>,
    /// What had to be mended for that; places count without the summaries.
    pub repairs: Vec<Repair>,
}

/// What stands beside the messages.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Beside {
    id: String,
    events: Vec<Event>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    summary_at: Option<usize>,
}

impl Recording {
    /// Of a JSON object with `messages` in the shape of Chat Completions (`reasoning_content` is
    /// read too), an `id`, and `events` whose `summary_at` names messages that the agent itself
    /// wrote to sum up. Damage is repaired.
    ///
    /// # Errors
    /// When it is no such object.
    pub fn parse(line: &str) -> Result<Self, WireError> {
        let chat = openai_chat::read(line)?;
        let beside: Beside = serde_json::from_str(line).unwrap_or_default();
        let is_summary = |at: usize| {
            let mut events = beside.events.iter();
            events.any(|event| event.summary_at == Some(at))
        };
        let said = chat.messages.into_iter().enumerate();
        let said = said.filter(|(at, _)| !is_summary(*at));
        let repaired = repair(said.map(|(_, message)| message).collect());
        Ok(Self {
            id: beside.id,
            repairs: repaired.repairs,
            messages: repaired
                .messages
                .into_iter()
                .map(|(_, message)| Arc::new(message))
                .collect(),
        })
    }
}

/// The sessions of a `.jsonl` file, one a line, or of one that is packed with gzip (`.gz`); empty
/// lines are passed over.
///
/// # Errors
/// At the first line that is no session.
pub fn read(path: &Path) -> Result<Vec<Recording>, ReplayError> {
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
    let mut recordings = Vec::new();
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
        if line.trim().is_empty() {
            continue;
        }
        let recording = Recording::parse(&line).map_err(|source| ReplayError::Line {
            path: path.to_path_buf(),
            line: number,
            source,
        })?;
        recordings.push(recording);
    }
    Ok(recordings)
}
