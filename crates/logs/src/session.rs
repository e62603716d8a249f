//! [`SessionLog`]: the active messages of one session, as a history in a protocol that `wire`
//! reads, with data about the session. It does not access files.

use std::path::{Path, PathBuf};

use plimsoll_wire::Target;
use serde::Serialize;

use crate::agent::Agent;
use crate::error::LogError;
use crate::input::{LogLine, MAX_LINE};

/// The maximum number of descriptions of damaged lines; further ones are only counted.
pub const MAX_DAMAGE: usize = 100;
/// The maximum size of an image in [`ReportedSize::covered`], in bytes, since base64 does not
/// correspond to tokens.
const IMAGE_BYTES: usize = 6_000;

/// A session that was read from a log.
#[derive(Debug)]
pub struct SessionLog {
    /// The agent that wrote the log.
    pub agent: Agent,
    /// The log file.
    pub path: PathBuf,
    /// The id of the session. Empty if the log does not contain it.
    pub id: String,
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
    /// Number of ignored messages of sub-agents.
    pub side_messages: usize,
    /// Number of compactions by the agent itself.
    pub compactions: usize,
    /// The protocol of the history.
    pub wire: Wire,
    /// The system prompt, if the log contains it.
    pub instructions: Option<String>,
    pub(crate) blocks: Vec<HistoryBlock>,
    /// The provider's newest token count, and the number of blocks that it covers.
    pub(crate) reported_at: Option<(u64, usize)>,
}

/// The protocol of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
}

/// The size of a request as counted by its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedSize {
    /// Input and output tokens together.
    pub tokens: u64,
    /// Bytes of the history up to and including the answer to this request.
    pub covered: u64,
    /// Bytes of the whole history.
    pub all: u64,
}

/// A line of a log that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The line number, from 1.
    pub line: usize,
    /// A description of the damage.
    pub what: String,
}

/// The role of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    User,
    Assistant,
    /// Instructions, and items of Responses without a role.
    Other,
}

/// The smallest unit of a history that a policy may change: a block of Messages, an item of
/// Responses or a message of a chat.
#[derive(Debug, Clone)]
pub(crate) struct HistoryBlock {
    pub(crate) role: Role,
    /// The block in the format of the protocol.
    pub(crate) json: String,
    /// The entry of the log: a line number, or an index in a document.
    pub(crate) source: usize,
}

impl SessionLog {
    pub(crate) fn new(agent: Agent, path: &Path, wire: Wire) -> Self {
        Self {
            agent,
            path: path.to_owned(),
            id: String::new(),
            model: None,
            directory: None,
            window: None,
            reported: None,
            last_error: None,
            damage: Vec::new(),
            damaged: 0,
            side_messages: 0,
            compactions: 0,
            wire,
            instructions: None,
            blocks: Vec::new(),
            reported_at: None,
        }
    }

    /// Returns the target with the rules for the history.
    #[must_use]
    pub fn target(&self) -> Target {
        let (protocol, model) = match self.wire {
            Wire::Messages => ("anthropic", self.model.as_deref()),
            Wire::Responses => ("openai-responses", None),
            Wire::Chat => ("openai", None),
        };
        let model = model.filter(|model| model.starts_with("claude"));
        Target::of_protocol(protocol, model).unwrap_or_default()
    }

    /// Returns the history as JSON: `{"messages": […]}` or `{"instructions": …, "input": […]}`. It
    /// has no model, so it is validated as a history.
    #[must_use]
    pub fn request(&self) -> String {
        let bytes: usize = self.blocks.iter().map(|block| block.json.len() + 48).sum();
        let mut text = String::with_capacity(bytes + 64);
        text.push('{');
        if let (Wire::Responses, Some(instructions)) = (self.wire, &self.instructions) {
            text.push_str("\"instructions\":");
            text.push_str(&quoted(instructions));
            text.push(',');
        }
        text.push_str(match self.wire {
            Wire::Responses => "\"input\":[",
            Wire::Messages | Wire::Chat => "\"messages\":[",
        });
        let mut open: Option<Role> = None;
        for (at, block) in self.blocks.iter().enumerate() {
            if self.wire != Wire::Messages {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&block.json);
                continue;
            }
            if open == Some(block.role) {
                text.push(',');
            } else {
                if open.is_some() {
                    text.push_str("]},");
                }
                open = Some(block.role);
                text.push_str(match block.role {
                    Role::Assistant => "{\"role\":\"assistant\",\"content\":[",
                    Role::User | Role::Other => "{\"role\":\"user\",\"content\":[",
                });
            }
            text.push_str(&block.json);
        }
        if open.is_some() {
            text.push_str("]}");
        }
        text.push_str("]}");
        text
    }

    /// Parses a line as JSON, or records the damage.
    pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(
        &mut self,
        number: usize,
        line: &LogLine<'a>,
    ) -> Option<T> {
        let LogLine::Whole(bytes) = line else {
            self.damaged(number, format!("longer than {MAX_LINE} bytes"));
            return None;
        };
        // Serde would also accept a list for a struct.
        if bytes.first() != Some(&b'{') {
            self.damaged(
                number,
                format!("not an entry of {}: no JSON object", self.agent.title()),
            );
            return None;
        }
        match serde_json::from_slice(bytes) {
            Ok(value) => Some(value),
            Err(error) if error.is_eof() => {
                self.damaged(number, "cut off in the middle".to_owned());
                None
            }
            Err(error) => {
                self.damaged(
                    number,
                    format!("not an entry of {}: {error}", self.agent.title()),
                );
                None
            }
        }
    }

    pub(crate) fn damaged(&mut self, line: usize, what: String) {
        self.damaged += 1;
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { line, what });
        }
    }

    pub(crate) fn push(&mut self, role: Role, source: usize, json: String) {
        self.blocks.push(HistoryBlock { role, json, source });
    }

    /// Records the provider's token count for the request whose answer was added last.
    pub(crate) fn report(&mut self, tokens: u64) {
        self.reported_at = Some((tokens, self.blocks.len()));
    }

    /// Returns the log if it contains any blocks, or an error with the likely cause.
    pub(crate) fn checked(mut self, why: &str) -> Result<Self, LogError> {
        if self.blocks.is_empty() {
            let damaged = match self.damaged {
                0 => why.to_owned(),
                1 => "its only line with content is damaged".to_owned(),
                count => format!("{count} lines are damaged"),
            };
            return Err(LogError::Empty {
                path: self.path,
                agent: self.agent.title(),
                why: damaged,
            });
        }
        self.reported = self.reported_at.map(|(tokens, blocks)| ReportedSize {
            tokens,
            covered: size(self.blocks.get(..blocks).unwrap_or_default()),
            all: size(&self.blocks),
        });
        Ok(self)
    }
}

/// Returns the approximate size of blocks as a model counts them, in bytes.
fn size(blocks: &[HistoryBlock]) -> u64 {
    let weights = blocks.iter().map(|block| {
        if block.json.contains(";base64,") || block.json.contains("\"base64\"") {
            block.json.len().min(IMAGE_BYTES)
        } else {
            block.json.len()
        }
    });
    weights.sum::<usize>() as u64
}

/// Returns a text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
