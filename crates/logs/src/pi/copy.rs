//! Writes a new session of pi, in version 3 of its format, without branches.

use std::collections::HashMap;

use plimsoll_foreign::{Role, Unit};
use plimsoll_wire::__internals::{RawObject, set, unset};
use serde_json::{Value, json};

use crate::blocks::{arguments, wire_id};
use crate::copy::{CopiedEntry, Copy, EntryWriter, Group, block_of, called, keys, merged, stem};
use crate::session::{SessionLog, text};

/// The version of the written format.
const VERSION: u64 = 3;

/// Returns the file name of a copy.
pub(crate) fn name(log: &SessionLog, id: &str) -> String {
    let name = stem(&log.path);
    let time = name.split_once('_').map_or("rescued", |(time, _)| time);
    format!("{time}_{id}.jsonl")
}

#[derive(Default)]
pub(crate) struct PiWriter {
    /// The original ids and the tools of calls, by their ids in the chat.
    calls: HashMap<String, (String, String)>,
}

impl EntryWriter for PiWriter {
    fn begin(&mut self, new: &mut Copy<'_>, first: &RawObject<'_>) {
        let header = json!({
            "type": "session", "version": VERSION, "id": new.id, "timestamp": first.text("timestamp"),
            "cwd": new.directory, "parentSession": new.log.path,
        });
        new.line(&header.to_string());
    }

    fn entry(&mut self, new: &mut Copy<'_>, entry: &CopiedEntry<'_>) {
        let CopiedEntry { group, own, near } = entry;
        let is_message = own.get("type") == Some("\"message\"");
        let message = own.get("message").filter(|_| is_message);
        let mut message: Value = message
            .and_then(|raw| serde_json::from_str(raw).ok())
            .unwrap_or_default();
        self.remember(group, &message);
        // The first kept entry of a compaction may be missing in the copy.
        if group.is_same() && own.get("type").is_some_and(|kind| kind != "\"compaction\"") {
            let changed = measure(new, &mut message, group);
            line(new, own, near, changed.then_some(&message));
            return;
        }
        let own = keys(Some(r#"{"type":"message"}"#));
        let (results, others) = group.results_and_others();
        for unit in results {
            let result = self.result(unit.value(), &message);
            line(new, &own, near, Some(&result));
        }
        if others.is_empty() {
            return;
        }
        let is_unseen = |own: &Value| super::block(own).is_none();
        let blocks = message.get("content").and_then(Value::as_array);
        let blocks = blocks.map(Vec::as_slice).unwrap_or_default();
        let content = merged(blocks, is_unseen, others, own_block);
        match (group.role, text(&message, "/role")) {
            (Role::Assistant, Some("assistant")) | (_, Some("user")) => {}
            (Role::Assistant, _) => message = answer(new.log),
            _ => message = json!({ "role": "user" }),
        }
        set(&mut message, "content", content);
        measure(new, &mut message, group);
        if message.get("timestamp").is_none() {
            set(&mut message, "timestamp", 0);
        }
        line(new, &own, near, Some(&message));
    }

    fn end(&mut self, new: &mut Copy<'_>, last: &RawObject<'_>) {
        let title = json!({ "type": "session_info", "name": new.log.copy_title() }).to_string();
        line(new, &keys(Some(&title)), last, None);
    }
}

fn line(new: &mut Copy<'_>, own: &RawObject<'_>, near: &RawObject<'_>, message: Option<&Value>) {
    let (id, parent) = new.link(own.get("id"), |ids| ids.hex(8));
    let time = near.get("timestamp").unwrap_or("\"\"");
    let mut changes = vec![
        ("id", Some(id)),
        ("parentId", Some(parent)),
        ("timestamp", Some(time.to_owned())),
    ];
    changes.extend(message.map(|message| ("message", Some(message.to_string()))));
    new.line(&own.with(&changes));
}

impl PiWriter {
    /// Records the calls of a group, since pi repeats their tools with their results.
    fn remember(&mut self, group: &Group<'_>, message: &Value) {
        for unit in &group.units {
            let of = |key: &str| text(unit.value(), key);
            if let (Some("tool_use"), Some(id), Some(name)) = (of("/type"), of("/id"), of("/name"))
            {
                let own = block_of(unit).and_then(|at| message.get("content")?.get(at));
                let own = own.and_then(|own| text(own, "/id"));
                let own = own.filter(|own| wire_id(own) == id).unwrap_or(id);
                let call = (own.to_owned(), name.to_owned());
                self.calls.insert(id.to_owned(), call);
            }
        }
    }

    fn result(&self, block: &Value, source: &Value) -> Value {
        let id = text(block, "/tool_use_id").unwrap_or_default();
        let known = self.calls.get(id);
        let (own, name) = known.map_or((id, ""), |(own, name)| (own.as_str(), name.as_str()));
        let mut message = source.clone();
        if !message.is_object() {
            message = json!({ "timestamp": 0 });
        }
        let content = match block.get("content") {
            Some(Value::String(text)) => json!([{ "type": "text", "text": text }]),
            Some(Value::Array(list)) => list
                .iter()
                .filter_map(|block| own_block(block, None))
                .collect(),
            _ => json!([]),
        };
        set(&mut message, "role", "toolResult");
        set(&mut message, "toolCallId", own);
        set(&mut message, "toolName", name);
        set(&mut message, "content", content);
        let is_error = block.get("is_error") == Some(&Value::Bool(true));
        set(&mut message, "isError", is_error);
        unset(&mut message, &["details"]);
        message
    }
}

/// Sets the usage and the stop reason of an answer. Returns whether something changed.
///
/// pi takes the usage of the last answer for the size of the context, and omits aborted answers. The
/// remaining part of an aborted answer is complete in the copy.
fn measure(new: &Copy<'_>, message: &mut Value, group: &Group<'_>) -> bool {
    if group.role != Role::Assistant {
        return false;
    }
    if let Some(tokens) = new.tokens {
        set(message, "usage", usage(tokens));
    }
    let reason = text(message, "/stopReason");
    let is_aborted = matches!(reason, Some("aborted" | "error"));
    if is_aborted {
        let is_call = |unit: &&Unit<'_>| text(unit.value(), "/type") == Some("tool_use");
        let calls = group.units.iter().any(is_call);
        let reason = if calls { "toolUse" } else { "stop" };
        set(message, "stopReason", reason);
        unset(message, &["errorMessage"]);
    }
    is_aborted || new.tokens.is_some()
}

fn answer(log: &SessionLog) -> Value {
    json!({
        "role": "assistant", "content": [], "api": "rescued", "provider": "rescued", "model": log.model,
        "usage": usage(0), "stopReason": "stop",
    })
}

fn usage(tokens: u64) -> Value {
    json!({
        "input": tokens, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens,
        "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
    })
}

/// Converts a block of Messages to pi's format. A call keeps everything except its arguments.
fn own_block(block: &Value, own: Option<&Value>) -> Option<Value> {
    let of = |pointer: &str| text(block, pointer);
    Some(match of("/type")? {
        "text" => json!({ "type": "text", "text": of("/text")? }),
        "thinking" => json!({
            "type": "thinking",
            "thinking": of("/thinking")?,
            "thinkingSignature": of("/signature")?,
        }),
        "image" => json!({
            "type": "image",
            "data": of("/source/data")?,
            "mimeType": of("/source/media_type")?,
        }),
        "tool_use" => {
            let mut call = called(block, own, ["id", "name"], json!({ "type": "toolCall" }));
            set(&mut call, "arguments", arguments(block.get("input")));
            call
        }
        _ => return None,
    })
}
