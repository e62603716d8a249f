//! A new rollout of Codex. Items that are unchanged keep their lines; what Codex shows of the session
//! (`event_msg`) stays, what it measured of the old history goes.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::copy::{Copy, Entry, parsed, stem};
use crate::error::LogError;
use crate::ids::Ids;
use crate::input::{Line, for_each_line};
use crate::match_up::Matched;
use crate::session::SessionLog;

/// Events that show the session to a person.
const SHOWN: [&str; 2] = ["user_message", "agent_message"];

/// Characters of a UUID, which ends the name of a rollout.
const UUID: usize = 36;

pub(crate) fn write(log: &SessionLog, blocks: &[Matched], ids: &mut Ids) -> Result<Copy, LogError> {
    let id = ids.uuid();
    let mut of_line: HashMap<usize, Vec<&Matched>> = HashMap::new();
    let mut line = 0;
    for block in blocks {
        // A new item comes behind the one before it.
        let origin = block.origin.and_then(|at| log.blocks.get(at));
        line = origin.map_or(line, |origin| origin.source.max(line));
        of_line.entry(line).or_default().push(block);
    }
    let mut writer = Writer {
        log,
        id: &id,
        text: String::new(),
        time: Value::Null,
        begun: false,
        failed: None,
        head: of_line.remove(&0).unwrap_or_default(),
    };
    for_each_line(&log.path, |number, line| {
        if let Line::Whole(line) = line
            && let Ok(entry) = serde_json::from_slice::<Entry>(line)
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

struct Writer<'a> {
    log: &'a SessionLog,
    id: &'a str,
    text: String,
    time: Value,
    begun: bool,
    failed: Option<LogError>,
    /// New items before all others.
    head: Vec<&'a Matched>,
}

impl Writer<'_> {
    fn entry(&mut self, mut entry: Entry, items: &[&Matched]) {
        if let Some(time) = entry.get("timestamp") {
            self.time = time.clone();
        }
        let kind = entry
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let kind = kind.to_owned();
        let event = entry.get("payload").and_then(|payload| payload.get("type"));
        let event = event.and_then(Value::as_str).unwrap_or_default();
        let is_shown = kind == "event_msg" && SHOWN.contains(&event);
        match kind.as_str() {
            "session_meta" if !self.begun => {
                self.begun = true;
                if let Some(Value::Object(meta)) = entry.get_mut("payload") {
                    for key in ["id", "session_id"] {
                        if meta.contains_key(key) {
                            meta.insert(key.to_owned(), self.id.into());
                        }
                    }
                }
                self.push(&entry);
                for item in std::mem::take(&mut self.head) {
                    self.item(item);
                }
            }
            "turn_context" => self.push(&entry),
            "event_msg" if is_shown => self.push(&entry),
            _ => {}
        }
        for item in items {
            let origin = item.origin.and_then(|at| self.log.blocks.get(at));
            if item.same && kind == "response_item" && origin.is_some() {
                self.push(&entry);
            } else {
                self.item(item);
            }
        }
    }

    fn item(&mut self, item: &Matched) {
        match parsed(&item.json) {
            Ok(payload) => {
                let entry =
                    json!({ "timestamp": self.time, "type": "response_item", "payload": payload });
                self.text.push_str(&entry.to_string());
                self.text.push('\n');
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn push(&mut self, entry: &Entry) {
        let line = serde_json::to_string(entry).unwrap_or_default();
        self.text.push_str(&line);
        self.text.push('\n');
    }
}
