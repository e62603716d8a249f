//! Reads recorded sessions as [`Message`]s, with the places of their agents' compactions. Only the
//! normalised form is read, one session per line.

use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use plimsoll_context::{Bpe, CallId, Message, Part, Thinking, TokenCounter, ToolCall};
use serde_json::Value;

use crate::error::Error;
use crate::recordings::files;

/// The mark that text-action agents put before the output of a command, which they send in the
/// user's role.
const OUTPUT_MARK: &str = "<returncode>";

/// A recorded session.
pub(super) struct Session {
    pub(super) id: String,
    /// The messages by their meaning: summaries as summaries, output as results.
    pub(super) messages: Vec<Message>,
    /// The messages as their agent sends them, in their original roles.
    pub(super) as_sent: Vec<Message>,
    /// Tokens of each message in its sent form.
    pub(super) weights: Vec<u64>,
    pub(super) compactions: Vec<Compaction>,
}

/// A place at which an agent replaced all earlier messages by its own summary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compaction {
    /// The first message after the cut.
    pub(super) at: usize,
    /// The agent's summary.
    pub(super) summary_at: usize,
}

impl Session {
    /// Returns the agent and the origin of the recording.
    pub(super) fn source(&self) -> &str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// Returns the tokens of all messages before `at`.
    pub(super) fn span(&self, at: usize) -> u64 {
        self.weights.iter().take(at).sum()
    }
}

/// Loads every session in the `.jsonl` and `.jsonl.gz` files of `folder`, sorted by file name.
/// Returns `None` if there is no such folder.
pub(super) fn load(folder: &Path) -> Result<Option<Vec<Session>>, Error> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut sessions = Vec::new();
    for path in files(folder)? {
        let file = std::fs::File::open(&path).map_err(Error::file(&path))?;
        let lines: Box<dyn BufRead> = if path.extension().is_some_and(|end| end == "gz") {
            Box::new(BufReader::new(GzDecoder::new(file)))
        } else {
            Box::new(BufReader::new(file))
        };
        for line in lines.lines() {
            let line = line.map_err(Error::file(&path))?;
            if line.trim().is_empty() {
                continue;
            }
            let session = serde_json::from_str(&line).map_err(|error| Error::Unreadable {
                what: path.display().to_string(),
                why: error.to_string(),
            })?;
            sessions.push(read(&session));
        }
    }
    Ok(Some(sessions))
}

fn read(session: &Value) -> Session {
    let empty = Vec::new();
    let list = |key: &str| {
        let list = session.get(key).and_then(Value::as_array);
        list.unwrap_or(&empty)
    };
    let number = |event: &Value, key: &str| {
        let number = event.get(key).and_then(Value::as_u64);
        number.and_then(|number| usize::try_from(number).ok())
    };
    let compactions: Vec<Compaction> = list("events")
        .iter()
        .filter(|event| event.get("kind").is_some_and(|kind| kind == "compaction"))
        .filter_map(|event| {
            Some(Compaction {
                at: number(event, "at")?,
                summary_at: number(event, "summary_at")?,
            })
        })
        .collect();
    let raw = list("messages");
    let actions = if raw
        .iter()
        .any(|raw| text_of(raw, "content").starts_with(OUTPUT_MARK))
    {
        Actions::Fenced
    } else {
        Actions::Calls
    };
    let messages: Vec<Message> = raw
        .iter()
        .enumerate()
        .map(|(index, raw)| {
            let summary = compactions.iter().any(|cut| cut.summary_at == index);
            message(raw, summary, actions)
        })
        .collect();
    let as_sent = raw.iter().enumerate().map(|(index, raw)| {
        if compactions.iter().any(|cut| cut.summary_at == index) {
            return Message::user(sent_summary(text_of(raw, "content")));
        }
        sent(raw)
    });
    let counter = Bpe::o200k();
    Session {
        as_sent: as_sent.collect(),
        id: text_of(session, "id").to_owned(),
        weights: messages.iter().map(|m| counter.message(m).0).collect(),
        messages,
        compactions,
    }
}

/// Parses a message of OpenAI's form, in its original role.
pub(super) fn sent(raw: &Value) -> Message {
    message(raw, false, Actions::AsSent)
}

/// The way in which a session's agent acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Actions {
    /// By tool calls.
    Calls,
    /// By a fenced block of shell commands at the end of its text.
    Fenced,
    /// As sent: output in the user's role stays there.
    AsSent,
}

/// Returns a former summary with the text that its agent adds around it.
fn sent_summary(text: &str) -> String {
    if text.starts_with("This session is being continued") {
        return text.to_owned();
    }
    format!(
        "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{text}\n</summary>"
    )
}

fn message(raw: &Value, summary: bool, actions: Actions) -> Message {
    let content = text_of(raw, "content");
    match text_of(raw, "role") {
        _ if summary => Message::Summary {
            text: content.to_owned(),
        },
        "system" => Message::system(content),
        "assistant" => Message::Assistant {
            parts: said(raw, content, actions),
        },
        "tool" => {
            let call = CallId(text_of(raw, "tool_call_id").to_owned());
            if raw.get("x_is_error").is_some_and(|error| error == true) {
                Message::error_result(call, content)
            } else {
                Message::result(call, content)
            }
        }
        // The output of a command is not a person's text, in any role.
        _ if content.starts_with(OUTPUT_MARK) && actions != Actions::AsSent => {
            Message::result(CallId(String::new()), content)
        }
        _ => Message::user(content),
    }
}

fn said(raw: &Value, content: &str, actions: Actions) -> Vec<Part> {
    let mut parts = Vec::new();
    let (content, command) = match content.split_once("```bash\n") {
        Some((text, command)) if actions == Actions::Fenced => {
            (text, command.trim_end().strip_suffix("```"))
        }
        _ => (content, None),
    };
    let thinking = text_of(raw, "reasoning_content");
    if !thinking.is_empty() {
        parts.push(Part::Thinking(Thinking {
            text: thinking.to_owned(),
            opaque: None,
        }));
    }
    if !content.is_empty() {
        parts.push(Part::text(content));
    }
    let calls = raw.get("tool_calls").and_then(Value::as_array);
    for call in calls.into_iter().flatten() {
        let inner = call.get("function").unwrap_or(call);
        parts.push(Part::ToolCall(ToolCall {
            id: CallId(text_of(call, "id").to_owned()),
            name: text_of(inner, "name").to_owned(),
            arguments: text_of(inner, "arguments").to_owned(),
            opaque: None,
        }));
    }
    if let Some(command) = command {
        parts.push(Part::ToolCall(ToolCall {
            id: CallId(String::new()),
            name: "bash".to_owned(),
            arguments: serde_json::json!({ "command": command.trim_end() }).to_string(),
            opaque: None,
        }));
    }
    parts
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
