//! Chats of Gemini CLI: since 2026 JSONL (records of messages, updates and rewinds), before that
//! one JSON document. A call and its result are in the same message.

pub(crate) mod copy;

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use plimsoll_foreign::{Protocol, Role};
use serde_json::Value;

use crate::agent::Agent;
use crate::blocks;
use crate::error::LogError;
use crate::input::{for_each_entry, open, read_rest};
use crate::session::{SessionLog, text};

/// The beginning of the texts that Gemini CLI puts behind a message for the files that it names: `@a.rs`.
const FILES: &str = "--- Content from referenced files ---";
/// Beginnings of user texts that Gemini CLI does not send again: commands, and texts of Gemini CLI
/// itself.
const IGNORED: [&str; 4] = ["/", "?", "<session_context>", "<hook_context>"];

/// The messages of a chat, each with its position by id.
#[derive(Default)]
pub(super) struct Chat {
    pub(super) messages: Vec<Value>,
    places: HashMap<String, usize>,
    pub(super) metadata: serde_json::Map<String, Value>,
}

/// Reads a log and returns the messages that Gemini CLI would send next.
pub(crate) fn read(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::Gemini, path, Protocol::Messages);
    let chat = load(&mut log)?;
    let known = |key: &str| {
        chat.metadata
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    log.id = known("sessionId").unwrap_or_default();
    log.title = known("summary");
    log.project = known("projectHash");
    for (entry, message) in chat.messages.iter().enumerate() {
        take(&mut log, entry, message);
        let tokens = message.pointer("/tokens/total").and_then(Value::as_u64);
        log.report(tokens.unwrap_or_default());
    }
    log.checked("it contains no messages; choose another session with --list")
}

/// Loads the messages in the same way as Gemini CLI.
pub(super) fn load(log: &mut SessionLog) -> Result<Chat, LogError> {
    let mut chat = Chat::default();
    if let Some(document) = document(log)? {
        chat.update(document);
        return Ok(chat);
    }
    for_each_entry(log, |log, entry| match entry.object() {
        Ok(record) => chat.take(record),
        Err(error) => log.damaged(entry.place.line, format!("it cannot be read: {error}")),
    })?;
    Ok(chat)
}

/// Returns the file as one JSON object over several lines, or `None` if it has another format.
fn document(log: &mut SessionLog) -> Result<Option<serde_json::Map<String, Value>>, LogError> {
    let mut input = open(&log.path)?;
    let mut first = Vec::new();
    let read = input.read_until(b'\n', &mut first);
    read.map_err(LogError::read(&log.path))?;
    if serde_json::from_slice::<serde::de::IgnoredAny>(&first).is_ok() {
        return Ok(None);
    }
    read_rest(log, input, &mut first)?;
    Ok(serde_json::from_slice(&first).ok())
}

impl Chat {
    fn take(&mut self, mut record: serde_json::Map<String, Value>) {
        if let Some(id) = record.get("$rewindTo").and_then(Value::as_str) {
            let from = self.places.get(id).copied().unwrap_or_default();
            self.messages.truncate(from);
            self.places.retain(|_, at| *at < from);
        } else if record.get("id").is_some_and(Value::is_string) {
            self.put(record.into());
        } else if let Some(Value::Object(update)) = record.shift_remove("$set") {
            if update.get("messages").is_some_and(Value::is_array) {
                self.messages.clear();
                self.places.clear();
            }
            self.update(update);
        } else {
            self.update(record);
        }
    }

    fn update(&mut self, mut update: serde_json::Map<String, Value>) {
        if let Some(Value::Array(messages)) = update.shift_remove("messages") {
            for message in messages {
                self.put(message);
            }
        }
        self.metadata.extend(update);
    }

    /// Adds or replaces a message: a message is written again whenever it is extended.
    fn put(&mut self, message: Value) {
        let id = id_of(&message).map(str::to_owned);
        let known = id.as_ref().and_then(|id| self.places.get(id));
        if let Some(one) = known.and_then(|at| self.messages.get_mut(*at)) {
            *one = message;
            return;
        }
        self.places.extend(id.map(|id| (id, self.messages.len())));
        self.messages.push(message);
    }
}

fn id_of(message: &Value) -> Option<&str> {
    message.get("id")?.as_str()
}

/// Adds a message: its content, its calls and their results.
fn take(log: &mut SessionLog, entry: usize, message: &Value) {
    let content = message.get("content").unwrap_or(&Value::Null);
    let of = |role: Role| {
        parts(content)
            .into_iter()
            .enumerate()
            .map(move |(at, part)| (at, role, part))
    };
    match text(message, "/type") {
        Some("user") => {
            let text = texts(content);
            let text = text.trim();
            if !text.is_empty() && !IGNORED.iter().any(|start| text.starts_with(start)) {
                let mut is_file = false;
                let typed = of(Role::User).map(|(at, role, mut block)| {
                    let own = block
                        .get("text")
                        .and_then(Value::as_str)
                        .unwrap_or_default();
                    is_file |= own.trim_start().starts_with(FILES);
                    if is_file {
                        blocks::mark_as_host(&mut block);
                    }
                    (at, role, block)
                });
                log.push(entry, typed);
            }
        }
        Some("gemini") => {
            log.last_error = None;
            log.model = text(message, "/model")
                .map(str::to_owned)
                .or(log.model.take());
            let calls = message.get("toolCalls").and_then(Value::as_array);
            let calls = calls.map(Vec::as_slice).unwrap_or_default();
            let asked = calls.iter().enumerate().map(|(at, call)| {
                let name = call.get("name").cloned().unwrap_or_default();
                let block = blocks::call(id_of(call).unwrap_or_default(), name, call.get("args"));
                (at, Role::Assistant, block)
            });
            let answered = calls.iter().enumerate();
            let answered = answered.filter_map(|(at, call)| Some((at, Role::User, result(call)?)));
            log.push(entry, of(Role::Assistant).chain(asked).chain(answered));
        }
        Some("error") => log.last_error = Some(texts(content)),
        _ => {}
    }
}

/// Returns the result of a call, or `None` if it has none.
fn result(call: &Value) -> Option<Value> {
    let id = id_of(call)?;
    let mut content = Vec::new();
    match call.get("result")? {
        Value::Null => return None,
        Value::String(text) => content.push(blocks::text(text)),
        Value::Array(list) => {
            for part in list {
                match part.get("functionResponse") {
                    Some(response) => content.push(response_text(response)),
                    None => content.extend(parts(part)),
                }
            }
        }
        other => content.push(response_text(
            other.get("functionResponse").unwrap_or(other),
        )),
    }
    let is_error = call.get("status").and_then(Value::as_str) == Some("error");
    Some(blocks::result(id, content, is_error))
}

fn response_text(response: &Value) -> Value {
    let response = response.get("response").unwrap_or(response);
    let output = response.get("output").or_else(|| response.get("error"));
    match output.and_then(Value::as_str) {
        Some(text) => blocks::text(text),
        None => blocks::text(&response.to_string()),
    }
}

fn texts(content: &Value) -> String {
    let texts = parts(content).into_iter();
    let texts = texts.filter_map(|part| Some(part.get("text")?.as_str()?.to_owned()));
    texts.collect()
}

/// Returns the texts and images of a content, which is a text, a part or a list of both. Thoughts
/// and calls in it are ignored.
fn parts(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => blocks::some_text(text).into_iter().collect(),
        Value::Array(list) => list.iter().flat_map(parts).collect(),
        Value::Object(part) if part.get("thought") == Some(&Value::Bool(true)) => Vec::new(),
        Value::Object(part) => {
            if let Some(text) = part.get("text") {
                return parts(text);
            }
            let image = part.get("inlineData").and_then(|image| {
                let of = |key| image.get(key).and_then(Value::as_str);
                Some(blocks::image(of("mimeType")?, of("data")?))
            });
            image.into_iter().collect()
        }
        _ => Vec::new(),
    }
}
