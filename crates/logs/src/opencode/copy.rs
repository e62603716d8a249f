//! Writes a new session of opencode in the format of `opencode import`. The database is not
//! changed, since only opencode knows its other tables.

use serde_json::{Value, json};

use super::{OpencodeMessage, load};
use crate::blocks::{arguments, is_call};
use crate::copy::{Copy, Group, joined, parsed, result_text, set, shell_word};
use crate::error::LogError;
use crate::ids::Ids;
use crate::match_up::MatchedBlock;
use crate::session::{Role, SessionLog};

/// The field of a part with the id of its call.
const CALL: &str = "callID";
/// The number of hexadecimal digits of an id by which opencode sorts; random ones follow.
const SORTED: usize = 12;
const RANDOM: usize = 14;

pub(crate) fn write(
    log: &SessionLog,
    blocks: &[MatchedBlock],
    tokens: Option<u64>,
    ids: &mut Ids,
) -> Result<Copy, LogError> {
    let export = load(
        &log.path,
        Some(&log.id)
            .filter(|id| !id.is_empty())
            .map(String::as_str),
    )?;
    let mut writer = OpencodeWriter {
        next: first_number(&export.messages),
        session: String::new(),
        ids,
        tokens,
        user: Value::Null,
        answer: Value::Null,
        parent: Value::Null,
        messages: Vec::new(),
    };
    writer.session = writer.id("ses");
    for group in joined(log, blocks)? {
        let source = group.source.and_then(|at| export.messages.get(at));
        writer.message(&group, source)?;
    }
    let mut info = export.info;
    let id = writer.session;
    if let Value::Object(info) = &mut info {
        info.insert("id".to_owned(), id.clone().into());
        for key in ["revert", "share", "parentID", "summary"] {
            info.shift_remove(key);
        }
        let title = info
            .get("title")
            .and_then(Value::as_str)
            .unwrap_or("session");
        info.insert("title".to_owned(), format!("{title} (rescued)").into());
    }
    let text = json!({ "info": info, "messages": writer.messages }).to_string() + "\n";
    let path = log.path.with_file_name(format!("rescued-{id}.json"));
    let file = shell_word(&path.to_string_lossy());
    Ok(Copy {
        resume: format!("opencode import {file} && opencode --session {id}"),
        path,
        text,
        id,
    })
}

/// Returns the number in the first id of a session, at which the numbers of its copy begin.
fn first_number(messages: &[OpencodeMessage]) -> u64 {
    let id = messages
        .first()
        .and_then(|message| message.info.get("id")?.as_str());
    let digits = id.and_then(|id| id.split_once('_')?.1.get(..SORTED));
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .unwrap_or(1)
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
    messages: Vec<Value>,
}

impl OpencodeWriter<'_> {
    /// Returns an id that sorts after all earlier ones.
    fn id(&mut self, kind: &str) -> String {
        self.next += 1;
        format!(
            "{kind}_{:012x}{}",
            self.next & 0xffff_ffff_ffff,
            self.ids.hex(RANDOM)
        )
    }

    fn message(
        &mut self,
        group: &Group<'_>,
        source: Option<&OpencodeMessage>,
    ) -> Result<(), LogError> {
        let is_answer = group.role == Role::Assistant;
        let mut info = match source {
            Some(source) => source.info.clone(),
            None if is_answer => self.answer.clone(),
            None => self.user.clone(),
        };
        if !info.is_object() {
            info = json!({ "role": if is_answer { "assistant" } else { "user" }, "time": { "created": 0 } });
        }
        let id = self.id("msg");
        set(&mut info, "id", id.clone().into());
        set(&mut info, "sessionID", self.session.clone().into());
        if is_answer {
            set(&mut info, "parentID", self.parent.clone());
            if let (Some(tokens), Value::Object(info)) = (self.tokens, &mut info) {
                let tokens = json!({
                    "total": tokens, "input": tokens, "output": 0, "reasoning": 0,
                    "cache": { "read": 0, "write": 0 },
                });
                info.insert("tokens".to_owned(), tokens);
            }
            if let Value::Object(info) = &mut info {
                info.shift_remove("error");
            }
            self.answer = info.clone();
        } else {
            self.parent = id.clone().into();
            self.user = info.clone();
        }
        let parts = match source {
            Some(source) if group.same => source.parts.clone(),
            _ => parts(group, source)?,
        };
        let parts = parts.into_iter().map(|mut part| {
            set(&mut part, "id", self.id("prt").into());
            set(&mut part, "sessionID", self.session.clone().into());
            set(&mut part, "messageID", id.clone().into());
            part
        });
        let parts: Vec<Value> = parts.collect();
        self.messages.push(json!({ "info": info, "parts": parts }));
        Ok(())
    }
}

fn parts(group: &Group<'_>, source: Option<&OpencodeMessage>) -> Result<Vec<Value>, LogError> {
    let mut parts: Vec<Value> = Vec::new();
    for block in &group.blocks {
        let block = parsed(&block.json)?;
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        match text("type") {
            Some("text") => parts.push(json!({ "type": "text", "text": text("text") })),
            Some("image") => {
                let of = |key: &str| {
                    block
                        .pointer(key)
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                };
                let (mime, data) = (of("/source/media_type"), of("/source/data"));
                let url = format!("data:{mime};base64,{data}");
                parts.push(json!({ "type": "file", "mime": mime, "url": url }));
            }
            Some("tool_use") => parts.push(call(&block, source)),
            Some("tool_result") => answer(&mut parts, &block),
            _ => {}
        }
    }
    Ok(parts)
}

/// Returns the part of a call, with its original data if there are any.
fn call(block: &Value, source: Option<&OpencodeMessage>) -> Value {
    let id = block.get("id").and_then(Value::as_str).unwrap_or_default();
    let own = source.and_then(|source| source.parts.iter().find(|part| is_call(part, CALL, id)));
    let mut part = own.cloned().unwrap_or_else(
        || json!({ "type": "tool", "tool": block.get("name"), "callID": id, "state": {} }),
    );
    if let Some(state) = part.get_mut("state") {
        set(state, "input", arguments(block.get("input")));
    }
    part
}

/// Adds a result to its call.
fn answer(parts: &mut [Value], block: &Value) {
    let id = block
        .get("tool_use_id")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(part) = parts.iter_mut().find(|part| is_call(part, CALL, id)) else {
        return;
    };
    let output = result_text(block);
    let old = part.get("state").cloned().unwrap_or_default();
    let time = old
        .get("time")
        .cloned()
        .unwrap_or_else(|| json!({ "start": 0, "end": 0 }));
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
