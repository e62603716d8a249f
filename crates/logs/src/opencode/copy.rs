//! Writes a new session of opencode in the format of `opencode import`. The database is not changed, since only
//! opencode knows its other tables.

use plimsoll_foreign::{Role, Unit};
use plimsoll_wire::__internals::{set, unset};
use serde_json::{Value, json};

use super::{OpencodeMessage, is_seen, load};
use crate::blocks::{arguments, wire_id};
use crate::copy::{Copy, Group, answer_all, groups, merged, result_text};
use crate::error::LogError;
use crate::ids::Ids;
use crate::session::{SessionLog, text};

/// The number of hexadecimal digits of an id by which opencode sorts; random ones follow.
const SORTED: usize = 12;
const RANDOM: usize = 14;

pub(crate) fn write(
    log: &SessionLog,
    units: &[Unit<'_>],
    tokens: Option<u64>,
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let mut again = SessionLog::new(log.agent, &log.path, log.protocol);
    let export = load(
        &mut again,
        Some(log.id.as_str()).filter(|id| !id.is_empty()),
    )?;
    let mut writer = OpencodeWriter {
        next: first_number(&export.messages),
        session: String::new(),
        ids,
        tokens,
        user: json!({ "role": "user", "time": { "created": 0 } }),
        answer: json!({ "role": "assistant", "time": { "created": 0 } }),
        parent: Value::Null,
    };
    let id = writer.id("ses");
    writer.session.clone_from(&id);
    let groups = groups(log, units);
    let messages = groups.iter().map(|group| {
        let source = group
            .place
            .and_then(|place| export.messages.get(place.line));
        writer.message(group, source)
    });
    let messages: Vec<Value> = messages.collect();
    let mut info = export.info;
    set(&mut info, "id", id.clone());
    set(&mut info, "title", log.copy_title());
    unset(&mut info, &["revert", "share", "parentID", "summary"]);
    Ok(Copy {
        path: log.path.with_file_name(format!("rescued-{id}.json")),
        text: json!({ "info": info, "messages": messages }).to_string() + "\n",
        id,
    })
}

/// Returns the number in the first id of a session, at which the numbers of its copy begin.
fn first_number(messages: &[OpencodeMessage]) -> u64 {
    let id = messages
        .first()
        .and_then(|message| text(&message.info, "/id"));
    let digits = id.and_then(|id| id.split_once('_')?.1.get(..SORTED));
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.unwrap_or(1)
}

struct OpencodeWriter<'a> {
    next: u64,
    session: String,
    ids: &'a mut Ids,
    tokens: Option<u64>,
    /// The data of the newest message of each role, as a template for new messages.
    user: Value,
    answer: Value,
    /// The id of the newest user message.
    parent: Value,
}

impl OpencodeWriter<'_> {
    /// Returns an id that sorts after all earlier ones.
    fn id(&mut self, kind: &str) -> String {
        self.next += 1;
        let random = self.ids.hex(RANDOM);
        format!("{kind}_{:012x}{random}", self.next & 0xffff_ffff_ffff)
    }

    fn message(&mut self, group: &Group<'_>, source: Option<&OpencodeMessage>) -> Value {
        let is_answer = group.role == Role::Assistant;
        let template = if is_answer { &self.answer } else { &self.user };
        let mut info = source.map_or(template, |source| &source.info).clone();
        let id = self.id("msg");
        set(&mut info, "id", id.clone());
        set(&mut info, "sessionID", self.session.clone());
        if is_answer {
            set(&mut info, "parentID", self.parent.clone());
            if let Some(tokens) = self.tokens {
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
        let mut parts = match source {
            Some(source) if group.same => source.parts.clone(),
            _ => parts(group, source),
        };
        for part in &mut parts {
            set(part, "id", self.id("prt"));
            set(part, "sessionID", self.session.clone());
            set(part, "messageID", id.clone());
        }
        json!({ "info": info, "parts": parts })
    }
}

/// Returns the parts of a changed message.
fn parts(group: &Group<'_>, source: Option<&OpencodeMessage>) -> Vec<Value> {
    let (results, others) = group.results_and_others();
    let own = source.map(|source| Value::Array(source.parts.clone()));
    let mut parts = merged(own.as_ref(), |own| !is_seen(own), others, part);
    answer_all(&mut parts, results, "/callID", answer);
    parts
}

/// Returns the part of a changed block. A call keeps everything except its arguments, and its id if that was
/// changed.
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
            let new =
                || json!({ "type": "tool", "tool": of("/name"), "callID": of("/id"), "state": {} });
            let mut part = own.cloned().unwrap_or_else(new);
            if text(&part, "/callID").map(wire_id).as_deref() != of("/id") {
                set(&mut part, "callID", of("/id"));
            }
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
