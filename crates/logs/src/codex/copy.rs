//! Writes a new rollout of Codex. Unchanged items keep their lines. Events that Codex displays
//! (`event_msg`) are kept; measurements of the old history are removed.

use std::collections::HashMap;

use serde_json::Value;

use crate::copy::{Copy, JsonEntry, parsed, stem};
use crate::error::LogError;
use crate::ids::Ids;
use crate::input::{LogLine, for_each_line};
use crate::match_up::MatchedBlock;
use crate::session::SessionLog;

/// Events that are displayed or that describe the state of the session. Measurements of the old
/// history are removed.
const KEPT: [&str; 6] = [
    "user_message",
    "agent_message",
    "task_started",
    "task_complete",
    "turn_aborted",
    "thread_settings_applied",
];
/// Items of the event `item_completed` that display messages.
const SHOWN: [&str; 2] = ["UserMessage", "AgentMessage"];

/// The length of a UUID, which is the end of a rollout's name.
const UUID: usize = 36;

pub(crate) fn write(
    log: &SessionLog,
    blocks: &[MatchedBlock],
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let id = ids.uuid();
    let mut of_line: HashMap<usize, Vec<&MatchedBlock>> = HashMap::new();
    let mut line = 0;
    for block in blocks {
        // A new item follows the previous item.
        let origin = block.origin.and_then(|at| log.blocks.get(at));
        line = origin.map_or(line, |origin| origin.source.max(line));
        of_line.entry(line).or_default().push(block);
    }
    let mut writer = CodexWriter {
        log,
        id: &id,
        text: String::new(),
        time: Value::Null,
        begun: false,
        is_numbered: false,
        count: 0,
        failed: None,
        head: of_line.remove(&0).unwrap_or_default(),
    };
    for_each_line(&log.path, |number, line| {
        if let LogLine::Whole(line) = line
            && let Ok(entry) = serde_json::from_slice::<JsonEntry>(line)
        {
            let items = of_line.remove(&number).unwrap_or_default();
            writer.entry(entry, &items);
        }
    })?;
    if let Some(error) = writer.failed {
        return Err(error);
    }
    let name = stem(&log.path);
    let name = match name.len().checked_sub(UUID).and_then(|at| name.get(..at)) {
        Some(start) if !log.id.is_empty() && name.ends_with(&log.id) => format!("{start}{id}"),
        _ => format!("rollout-rescued-{id}"),
    };
    Ok(Copy {
        path: log.path.with_file_name(format!("{name}.jsonl")),
        resume: format!("codex resume {id}"),
        text: writer.text,
        id,
    })
}

struct CodexWriter<'a> {
    log: &'a SessionLog,
    id: &'a str,
    text: String,
    time: Value,
    begun: bool,
    is_numbered: bool,
    /// The number of written lines.
    count: u64,
    failed: Option<LogError>,
    /// New items before all others.
    head: Vec<&'a MatchedBlock>,
}

impl CodexWriter<'_> {
    fn entry(&mut self, mut entry: JsonEntry, items: &[&MatchedBlock]) {
        if let Some(time) = entry.get("timestamp") {
            self.time = time.clone();
        }
        let kind = entry
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let kind = kind.to_owned();
        match kind.as_str() {
            "session_meta" if !self.begun => {
                self.begun = true;
                self.is_numbered = entry.contains_key("ordinal");
                for key in ["id", "session_id"] {
                    self.renamed(&mut entry, key);
                }
                self.push(entry.clone());
                for item in std::mem::take(&mut self.head) {
                    self.item(item);
                }
            }
            "turn_context" | "world_state" => self.push(entry.clone()),
            "event_msg" if is_kept(&entry) => {
                self.renamed(&mut entry, "thread_id");
                self.push(entry.clone());
            }
            _ => {}
        }
        for item in items {
            let origin = item.origin.and_then(|at| self.log.blocks.get(at));
            if item.same && kind == "response_item" && origin.is_some() {
                self.push(entry.clone());
            } else {
                self.item(item);
            }
        }
    }

    /// Replaces the id of the old session by the new one.
    fn renamed(&self, entry: &mut JsonEntry, key: &str) {
        let payload = entry.get_mut("payload").and_then(Value::as_object_mut);
        if let Some(id) = payload.and_then(|payload| payload.get_mut(key)) {
            *id = self.id.into();
        }
    }

    fn item(&mut self, item: &MatchedBlock) {
        match parsed(&item.json) {
            Ok(payload) => {
                let mut entry = JsonEntry::new();
                entry.insert("timestamp".to_owned(), self.time.clone());
                entry.insert("type".to_owned(), "response_item".into());
                entry.insert("payload".to_owned(), payload);
                self.push(entry);
            }
            Err(error) => self.failed = Some(error),
        }
    }

    /// Writes a line. Newer logs number their lines without gaps.
    fn push(&mut self, mut entry: JsonEntry) {
        if self.is_numbered {
            entry.insert("ordinal".to_owned(), self.count.into());
        }
        self.count += 1;
        self.text.push_str(&Value::Object(entry).to_string());
        self.text.push('\n');
    }
}

fn is_kept(event: &JsonEntry) -> bool {
    let Some(payload) = event.get("payload") else {
        return false;
    };
    let text = |pointer: &str| payload.pointer(pointer).and_then(Value::as_str);
    match text("/type") {
        Some("item_completed") => text("/item/type").is_some_and(|kind| SHOWN.contains(&kind)),
        kind => kind.is_some_and(|kind| KEPT.contains(&kind)),
    }
}
