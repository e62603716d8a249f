//! Chats of Gemini CLI: since 2026 JSONL (records of messages, updates and rewinds), before that
//! one JSON document. A call and its result are in the same message.

pub(crate) mod copy;

use plimsoll_foreign::Role;
use serde_json::{Map, Value};

use crate::blocks;
use crate::error::LogError;
use crate::input::for_each_entry;
use crate::session::{SessionLog, text};

/// The beginning of the texts that Gemini CLI puts behind a message for the files that it names: `@a.rs`.
const FILES: &str = "--- Content from referenced files ---";
/// Beginnings of user texts that Gemini CLI does not send again: commands, and texts of Gemini CLI
/// itself.
const IGNORED: [&str; 4] = ["/", "?", "<session_context>", "<hook_context>"];

/// The messages of a chat by their ids, and its other data.
#[derive(Default)]
struct Chat {
    messages: Map<String, Value>,
    metadata: Map<String, Value>,
}

/// Reads a log and returns the messages that Gemini CLI would send next.
pub(crate) fn read(mut log: SessionLog, json: &[u8]) -> Result<SessionLog, LogError> {
    let chat = load(&mut log, json);
    log.header = Value::Object(chat.metadata);
    let known = |key: &str| text(&log.header, key).map(str::to_owned);
    (log.id, log.title) = (known("/sessionId").unwrap_or_default(), known("/summary"));
    for (entry, message) in chat.messages.values().enumerate() {
        take(&mut log, entry, message);
        let tokens = message.pointer("/tokens/total").and_then(Value::as_u64);
        log.report(tokens.unwrap_or_default());
    }
    log.checked("it contains no messages; choose another session with --list")
}

/// Loads the messages in the same way as Gemini CLI.
fn load(log: &mut SessionLog, json: &[u8]) -> Chat {
    let mut chat = Chat::default();
    if let Ok(document) = serde_json::from_slice(json) {
        chat.update(document);
        return chat;
    }
    for_each_entry(log, json, |log, entry| match entry.object() {
        Ok(record) => chat.take(record),
        Err(error) => log.damaged(entry.line, format!("it cannot be read: {error}")),
    });
    chat
}

impl Chat {
    fn take(&mut self, mut record: Map<String, Value>) {
        if let Some(id) = record.get("$rewindTo").and_then(Value::as_str) {
            let mut is_kept = self.messages.contains_key(id);
            self.messages.retain(|own, _| {
                is_kept &= own != id;
                is_kept
            });
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
            messages.into_iter().for_each(|message| self.put(message));
        }
        self.metadata.extend(update);
    }

    /// Adds or replaces a message: a message is written again whenever it is extended.
    fn put(&mut self, message: Value) {
        let own = id_of(&message).map(str::to_owned);
        let id = own.unwrap_or_else(|| format!("#{}", self.messages.len()));
        self.messages.insert(id, message);
    }
}

fn id_of(message: &Value) -> Option<&str> {
    message.get("id")?.as_str()
}

/// Adds a message: its content, its calls and their results.
fn take(log: &mut SessionLog, entry: usize, message: &Value) {
    let source = message.to_string();
    let source = source.as_bytes();
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
                log.push(entry, source, typed);
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
            log.push(
                entry,
                source,
                of(Role::Assistant).chain(asked).chain(answered),
            );
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
