//! Writes a new session of opencode in the format of `opencode import`. The database is not changed, since only
//! opencode knows its other tables.

use plimsoll_foreign::Role;
use plimsoll_wire::__internals::{RawObject, set, unset};
use serde_json::{Value, json};

use super::{OpencodeMessage, is_seen};
use crate::blocks::arguments;
use crate::copy::{CopiedEntry, Copy, EntryWriter, Group, answer_all, called, merged, result_text};
use crate::ids::Ids;
use crate::session::{SessionLog, text};

/// The number of hexadecimal digits of an id by which opencode sorts; random ones follow.
const SORTED: usize = 12;
const RANDOM: usize = 14;

/// Returns the id of a copy.
pub(crate) fn id(log: &SessionLog, ids: &mut Ids) -> String {
    sorted_id("ses", first_number(log) + 1, ids)
}

/// Returns the number in the first id of a session, at which the numbers of its copy begin.
fn first_number(log: &SessionLog) -> u64 {
    let id = log.began.as_deref();
    let digits = id.and_then(|id| id.split_once('_')?.1.get(..SORTED));
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.unwrap_or(1)
}

fn sorted_id(kind: &str, number: u64, ids: &mut Ids) -> String {
    let random = ids.hex(RANDOM);
    format!("{kind}_{:012x}{random}", number & 0xffff_ffff_ffff)
}

pub(crate) struct OpencodeWriter {
    next: u64,
    /// The data of the newest message of each role, as a template for new messages.
    user: Value,
    answer: Value,
    /// The id of the newest user message.
    parent: Value,
    has_messages: bool,
}

impl OpencodeWriter {
    pub(crate) fn new(log: &SessionLog) -> Self {
        Self {
            next: first_number(log) + 1,
            user: json!({ "role": "user", "time": { "created": 0 } }),
            answer: json!({ "role": "assistant", "time": { "created": 0 } }),
            parent: Value::Null,
            has_messages: false,
        }
    }

    /// Returns an id that sorts after all earlier ones.
    fn id(&mut self, kind: &str, new: &mut Copy<'_>) -> String {
        self.next += 1;
        sorted_id(kind, self.next, &mut new.ids)
    }
}

impl EntryWriter for OpencodeWriter {
    fn begin(&mut self, new: &mut Copy<'_>, _: &RawObject<'_>) {
        let mut info = new.log.metadata.clone();
        set(&mut info, "id", new.id.clone());
        set(&mut info, "title", new.log.copy_title());
        unset(&mut info, &["revert", "share", "parentID", "summary"]);
        new.text = format!(r#"{{"info":{info},"messages":["#);
    }

    fn entry(&mut self, new: &mut Copy<'_>, entry: &CopiedEntry<'_>) {
        let group = entry.group;
        let is_answer = group.role == Role::Assistant;
        let source = OpencodeMessage::parse(&entry.own);
        let source = source.ok().filter(|source| !source.info.is_null());
        let template = if is_answer { &self.answer } else { &self.user };
        let info = source.as_ref().map(|source| &source.info);
        let mut info = info.unwrap_or(template).clone();
        let id = self.id("msg", new);
        set(&mut info, "id", id.clone());
        set(&mut info, "sessionID", new.id.clone());
        if is_answer {
            set(&mut info, "parentID", self.parent.clone());
            if let Some(tokens) = new.tokens {
                let tokens = json!({
                    "total": tokens, "input": tokens, "output": 0, "reasoning": 0,
                    "cache": { "read": 0, "write": 0 },
                });
                set(&mut info, "tokens", tokens);
            }
            unset(&mut info, &["error"]);
            self.answer.clone_from(&info);
        } else {
            self.parent = id.clone().into();
            self.user.clone_from(&info);
        }
        let own = source.map(|source| source.parts).unwrap_or_default();
        let mut parts = if group.is_same() {
            own
        } else {
            parts(group, &own, new.log.ignores_encrypted)
        };
        for part in &mut parts {
            set(part, "id", self.id("prt", new));
            set(part, "sessionID", new.id.clone());
            set(part, "messageID", id.clone());
        }
        if std::mem::replace(&mut self.has_messages, true) {
            new.text.push(',');
        }
        let message = json!({ "info": info, "parts": parts });
        new.text.push_str(&message.to_string());
    }

    fn end(&mut self, new: &mut Copy<'_>, _: &RawObject<'_>) {
        new.line("]}");
    }
}

/// Returns the parts of a changed message.
fn parts(group: &Group<'_>, own: &[Value], drops: bool) -> Vec<Value> {
    let (results, others) = group.results_and_others();
    let mut parts = merged(own, |own| !is_seen(own, drops), others, part);
    answer_all(&mut parts, results, "/callID", answer);
    parts
}

/// Returns the part of a changed block. A call keeps everything except its arguments.
fn part(block: &Value, own: Option<&Value>) -> Option<Value> {
    let of = |pointer: &str| text(block, pointer);
    match of("/type")? {
        "text" => Some(json!({ "type": "text", "text": of("/text") })),
        "image" => {
            let (mime, data) = (of("/source/media_type")?, of("/source/data")?);
            let url = format!("data:{mime};base64,{data}");
            Some(json!({ "type": "file", "mime": mime, "url": url }))
        }
        "tool_use" => {
            let new = json!({ "type": "tool", "state": {} });
            let mut part = called(block, own, ["callID", "tool"], new);
            let input = arguments(block.get("input"));
            if let Some(state) = part.get_mut("state") {
                set(state, "input", input);
            }
            Some(part)
        }
        _ => None,
    }
}

/// Adds a result to its call.
fn answer(part: &mut Value, block: &Value) {
    let output = result_text(block);
    let old = part.get("state").cloned().unwrap_or_default();
    // A call that was cut off has no end, without which opencode refuses the import.
    let time = |key: &str| old.get("time").and_then(|time| time.get(key)).cloned();
    let start = time("start").unwrap_or_else(|| json!(0));
    let end = time("end").unwrap_or_else(|| start.clone());
    let time = json!({ "start": start, "end": end });
    let input = arguments(old.get("input"));
    let state = if block.get("is_error") == Some(&Value::Bool(true)) {
        json!({ "status": "error", "input": input, "error": output, "time": time })
    } else {
        json!({
            "status": "completed", "input": input, "output": output, "title": old.get("title"),
            "metadata": {}, "time": time,
        })
    };
    set(part, "state", state);
}
