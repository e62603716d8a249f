//! Chats of Gemini CLI: since 2026 JSONL (records of messages, updates and rewinds), before that
//! one JSON document. A call and its result are in the same message.

pub(crate) mod copy;

use std::io::BufRead;
use std::path::Path;

use plimsoll_foreign::{Protocol, Role};
use serde_json::{Map, Value};

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

/// A chat. Its messages are in their order, by their ids; one without an id has its number.
#[derive(Default)]
pub(super) struct Chat {
    pub(super) messages: Map<String, Value>,
    pub(super) metadata: Map<String, Value>,
}

/// Reads a log and returns the messages that Gemini CLI would send next.
pub(crate) fn read(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::Gemini, path, Protocol::Messages);
    let chat = load(&mut log)?;
    let known = |key: &str| Some(chat.metadata.get(key)?.as_str()?.to_owned());
    log.id = known("sessionId").unwrap_or_default();
    log.title = known("summary");
    log.project = known("projectHash");
    for (entry, message) in chat.messages.values().enumerate() {
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
fn document(log: &mut SessionLog) -> Result<Option<Map<String, Value>>, LogError> {
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
    fn take(&mut self, mut record: Map<String, Value>) {
        if let Some(id) = record.get("$rewindTo").and_then(Value::as_str) {
            let from = self.messages.keys().position(|known| known == id);
            let messages = std::mem::take(&mut self.messages).into_iter();
            self.messages = messages.take(from.unwrap_or_default()).collect();
        } else if record.get("id").is_some_and(Value::is_string) {
            self.put(record.into());
        } else if let Some(Value::Object(update)) = record.shift_remove("$set") {
            if update.get("messages").is_some_and(Value::is_array) {
                self.messages.clear();
            }
            self.update(update);
        } else {
            self.update(record);
        }
    }

    fn update(&mut self, mut update: Map<String, Value>) {
        if let Some(Value::Array(messages)) = update.shift_remove("messages") {
            for message in messages {
                self.put(message);
            }
        }
        self.metadata.extend(update);
    }

    /// Adds or replaces a message: a message is written again whenever it is extended.
    fn put(&mut self, message: Value) {
        let number = || format!("#{}", self.messages.len());
        let id = id_of(&message).map_or_else(number, str::to_owned);
        self.messages.insert(id, message);
    }
}

fn id_of(message: &Value) -> Option<&str> {
    message.get("id")?.as_str()
}

/// Adds a message: its content, its calls and their results.
fn take(log: &mut SessionLog, entry: usize, message: &Value) {
    let parts = parts(message);
    match text(message, "/type") {
        Some("user") => {
            let text = texts(&parts);
            let text = text.trim();
            if text.is_empty() || IGNORED.iter().any(|start| text.starts_with(start)) {
                return;
            }
            let mut is_file = false;
            let typed = parts.into_iter().map(|(at, mut block)| {
                let own = block.get("text").and_then(Value::as_str);
                is_file |= own.is_some_and(|own| own.trim_start().starts_with(FILES));
                if is_file {
                    blocks::mark_as_host(&mut block);
                }
                (at, Role::User, block)
            });
            log.push(entry, typed);
        }
        Some("gemini") => {
            log.last_error = None;
            let model = text(message, "/model").map(str::to_owned);
            log.model = model.or(log.model.take());
            let said = { parts.into_iter() }.map(|(at, block)| (at, Role::Assistant, block));
            let calls = message.get("toolCalls").and_then(Value::as_array);
            let calls = calls.into_iter().flatten().enumerate();
            let asked = calls.clone().map(|(at, call)| {
                let name = call.get("name").cloned().unwrap_or_default();
                let block = blocks::call(id_of(call).unwrap_or_default(), name, call.get("args"));
                (at, Role::Assistant, block)
            });
            let answered = calls.filter_map(|(at, call)| Some((at, Role::User, result(call)?)));
            log.push(entry, said.chain(asked).chain(answered));
        }
        Some("error") => log.last_error = Some(texts(&parts)),
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
                    None => content.extend(block(part)),
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

fn texts(parts: &[(usize, Value)]) -> String {
    let texts = parts.iter().filter_map(|(_, part)| text(part, "/text"));
    texts.collect()
}

/// Returns the blocks of a message, each with its place in the content.
fn parts(message: &Value) -> Vec<(usize, Value)> {
    let content = message.get("content").unwrap_or(&Value::Null);
    let parts = content
        .as_array()
        .map_or(std::slice::from_ref(content), Vec::as_slice);
    let blocks = { parts.iter().enumerate() }.filter_map(|(at, part)| Some((at, block(part)?)));
    blocks.collect()
}

/// Returns the block of a part, which is a text or an image. Thoughts and calls are ignored.
pub(super) fn block(part: &Value) -> Option<Value> {
    let of = |pointer: &str| text(part, pointer);
    match part.as_str().or(of("/text")) {
        _ if part.get("thought") == Some(&Value::Bool(true)) => None,
        Some(text) => blocks::some_text(text),
        None => Some(blocks::image(
            of("/inlineData/mimeType")?,
            of("/inlineData/data")?,
        )),
    }
}
