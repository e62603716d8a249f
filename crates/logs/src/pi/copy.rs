//! Writes a new session of pi, in version 3 of its format, without branches.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::blocks::{arguments, own_call};
use crate::copy::{Copy, Group, JsonEntry, groups, parsed, set, shell_word, sources, stem};
use crate::error::LogError;
use crate::ids::Ids;
use crate::input::{LogLine, for_each_line};
use crate::match_up::MatchedBlock;
use crate::session::{Role, SessionLog};

/// The version of the written format.
const VERSION: u64 = 3;
/// Settings of the session; the newest entry of each type is kept.
const SETTINGS: [&str; 3] = ["model_change", "thinking_level_change", "session_info"];

pub(crate) fn write(
    log: &SessionLog,
    blocks: &[MatchedBlock],
    tokens: Option<u64>,
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let id = ids.uuid();
    let groups = groups(log, blocks);
    let sources = sources(&log.path, &groups)?;
    let (header, settings) = head(log)?;
    let time = header.get("timestamp").cloned().unwrap_or_default();
    let mut writer = PiWriter {
        log,
        ids,
        tokens,
        parent: Value::Null,
        time,
        names: HashMap::new(),
        text: String::new(),
    };
    let mut new = json!({
        "type": "session",
        "version": VERSION,
        "id": id,
        "timestamp": writer.time,
        "cwd": log.directory,
    });
    if let Some(path) = log.path.to_str().filter(|_| log.path.is_absolute()) {
        set(&mut new, "parentSession", path.into());
    }
    writer.line(&new);
    for setting in settings {
        writer.link(setting);
    }
    for group in &groups {
        let source = group.source.and_then(|line| sources.get(&line));
        writer.group(group, source)?;
    }
    let text = writer.text;
    let name = stem(&log.path);
    let time = name.split_once('_').map_or("rescued", |(time, _)| time);
    let path = log.path.with_file_name(format!("{time}_{id}.jsonl"));
    Ok(Copy {
        resume: format!("pi --session {}", shell_word(&path.to_string_lossy())),
        path,
        text,
        id,
    })
}

/// Returns the header of a log, and the newest of each of its settings.
fn head(log: &SessionLog) -> Result<(JsonEntry, Vec<JsonEntry>), LogError> {
    let mut header = JsonEntry::new();
    let mut settings: Vec<Option<JsonEntry>> = vec![None; SETTINGS.len()];
    for_each_line(&log.path, |_, line| {
        let LogLine::Whole(line) = line else {
            return;
        };
        // Only possible matches are parsed, since most lines are large messages.
        let start = line.get(..64.min(line.len())).unwrap_or_default();
        let start = String::from_utf8_lossy(start);
        let is_header = start.contains("\"session\"");
        let setting = SETTINGS.iter().position(|kind| start.contains(kind));
        if !is_header && setting.is_none() {
            return;
        }
        let entry: JsonEntry = serde_json::from_slice(line).unwrap_or_default();
        match setting.and_then(|at| settings.get_mut(at)) {
            Some(slot) => *slot = Some(entry),
            None if header.is_empty() => header = entry,
            None => {}
        }
    })?;
    Ok((header, settings.into_iter().flatten().collect()))
}

struct PiWriter<'a> {
    log: &'a SessionLog,
    ids: &'a mut Ids,
    tokens: Option<u64>,
    parent: Value,
    time: Value,
    /// The original ids and tool names of calls, by the ids in the history.
    names: HashMap<String, (String, String)>,
    text: String,
}

impl PiWriter<'_> {
    fn line(&mut self, value: &Value) {
        self.text.push_str(&value.to_string());
        self.text.push('\n');
    }

    fn link(&mut self, mut entry: JsonEntry) {
        let id = self.ids.hex(8);
        if let Some(time) = entry.get("timestamp") {
            self.time = time.clone();
        }
        let parent = std::mem::replace(&mut self.parent, id.clone().into());
        entry.insert("id".to_owned(), id.into());
        entry.insert("parentId".to_owned(), parent);
        entry
            .entry("timestamp")
            .or_insert_with(|| self.time.clone());
        self.line(&Value::Object(entry));
    }

    fn group(&mut self, group: &Group<'_>, source: Option<&JsonEntry>) -> Result<(), LogError> {
        let message = source.and_then(|entry| entry.get("message"));
        self.remember(group, message)?;
        if let (true, Some(source)) = (group.same, source)
            && message.is_some()
        {
            let mut entry = source.clone();
            if let Some(Value::Object(message)) = entry.get_mut("message") {
                self.measured(message, group);
            }
            self.link(entry);
            return Ok(());
        }
        let mut content = Vec::new();
        for block in &group.blocks {
            let block = parsed(&block.json)?;
            if block.get("type").and_then(Value::as_str) == Some("tool_result") {
                self.result(&block, message);
            } else {
                content.extend(own_block(&block, message));
            }
        }
        if content.is_empty() {
            return Ok(());
        }
        let mut message = match (group.role, message) {
            (Role::Assistant, Some(Value::Object(message))) => message.clone(),
            (Role::Assistant, _) => self.answer(),
            (Role::User | Role::Other, _) => {
                let mut message = JsonEntry::new();
                message.insert("role".to_owned(), "user".into());
                message
            }
        };
        message.insert("content".to_owned(), content.into());
        self.measured(&mut message, group);
        self.message(message);
        Ok(())
    }

    /// Records the names of calls, which pi repeats with their results.
    fn remember(&mut self, group: &Group<'_>, message: Option<&Value>) -> Result<(), LogError> {
        for block in &group.blocks {
            let block = parsed(&block.json)?;
            let text = |key| block.get(key).and_then(Value::as_str);
            if let (Some("tool_use"), Some(id), Some(name)) =
                (text("type"), text("id"), text("name"))
            {
                let own = own_id(id, message).unwrap_or_else(|| id.to_owned());
                self.names.insert(id.to_owned(), (own, name.to_owned()));
            }
        }
        Ok(())
    }

    fn result(&mut self, block: &Value, source: Option<&Value>) {
        let id = block.get("tool_use_id").and_then(Value::as_str);
        let id = id.unwrap_or_default();
        let known = self.names.get(id).cloned();
        let (own, name) = known.unwrap_or_else(|| (id.to_owned(), String::new()));
        let mut message = match source {
            Some(Value::Object(message)) => message.clone(),
            _ => JsonEntry::new(),
        };
        let content = match block.get("content") {
            Some(Value::String(text)) => json!([{ "type": "text", "text": text }]),
            Some(Value::Array(list)) => list
                .iter()
                .filter_map(|block| own_block(block, None))
                .collect(),
            _ => json!([]),
        };
        message.insert("role".to_owned(), "toolResult".into());
        message.insert("toolCallId".to_owned(), own.into());
        message.insert("toolName".to_owned(), name.into());
        message.insert("content".to_owned(), content);
        let is_error = block.get("is_error").and_then(Value::as_bool);
        message.insert("isError".to_owned(), is_error.unwrap_or_default().into());
        message.shift_remove("details");
        self.message(message);
    }

    fn message(&mut self, mut message: JsonEntry) {
        message.entry("timestamp").or_insert_with(|| 0.into());
        let mut entry = JsonEntry::new();
        entry.insert("type".to_owned(), "message".into());
        entry.insert("id".to_owned(), Value::Null);
        entry.insert("parentId".to_owned(), Value::Null);
        entry.insert("timestamp".to_owned(), self.time.clone());
        entry.insert("message".to_owned(), message.into());
        self.link(entry);
    }

    fn answer(&self) -> JsonEntry {
        let mut message = JsonEntry::new();
        message.insert("role".to_owned(), "assistant".into());
        message.insert("content".to_owned(), json!([]));
        message.insert("api".to_owned(), "rescued".into());
        message.insert("provider".to_owned(), "rescued".into());
        message.insert("model".to_owned(), self.log.model.clone().into());
        message.insert("usage".to_owned(), usage(0));
        message.insert("stopReason".to_owned(), "stop".into());
        message
    }

    /// Sets the usage and the stop reason of an answer. pi takes the usage of the last answer for
    /// the size of the context, and omits aborted answers. The remaining part of an aborted answer
    /// is complete in the copy.
    fn measured(&self, message: &mut JsonEntry, group: &Group<'_>) {
        if group.role != Role::Assistant {
            return;
        }
        if let Some(tokens) = self.tokens {
            message.insert("usage".to_owned(), usage(tokens));
        }
        let reason = message.get("stopReason").and_then(Value::as_str);
        if matches!(reason, Some("aborted" | "error")) {
            let calls = group
                .blocks
                .iter()
                .any(|block| block.json.contains("\"tool_use\""));
            let reason = if calls { "toolUse" } else { "stop" };
            message.insert("stopReason".to_owned(), reason.into());
            message.shift_remove("errorMessage");
        }
    }
}

fn usage(tokens: u64) -> Value {
    json!({
        "input": tokens, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens,
        "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
    })
}

/// Returns the id of a call in pi's original spelling.
fn own_id(id: &str, message: Option<&Value>) -> Option<String> {
    let own = own_call(message?.get("content"), "id", id)?;
    Some(own.get("id")?.as_str()?.to_owned())
}

/// Converts a block of Messages to pi's format. A call keeps everything except its arguments.
fn own_block(block: &Value, message: Option<&Value>) -> Option<Value> {
    let text = |key| block.get(key).and_then(Value::as_str);
    Some(match text("type")? {
        "text" => json!({ "type": "text", "text": text("text")? }),
        "thinking" => json!({
            "type": "thinking",
            "thinking": text("thinking")?,
            "thinkingSignature": text("signature")?,
        }),
        "image" => {
            let source = block.get("source")?;
            json!({ "type": "image", "data": source.get("data")?, "mimeType": source.get("media_type")? })
        }
        "tool_use" => {
            let id = text("id")?;
            let own = own_call(message.and_then(|message| message.get("content")), "id", id);
            let mut call = own.cloned().unwrap_or_else(
                || json!({ "type": "toolCall", "id": id, "name": text("name").unwrap_or_default() }),
            );
            set(&mut call, "arguments", arguments(block.get("input")));
            call
        }
        _ => return None,
    })
}
