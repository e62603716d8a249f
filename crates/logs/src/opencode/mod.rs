//! Sessions of opencode: rows of its SQLite database, or the JSON of `opencode export`. A call and
//! its result are in one part of a message.

pub(crate) mod copy;

use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

use plimsoll_foreign::{Protocol, Role};
use plimsoll_wire::__internals::unset;
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::blocks;
use crate::detect::SQLITE;
use crate::error::LogError;
use crate::find::MAX_CANDIDATES;
use crate::input::{open, read_rest};
use crate::session::{SessionLog, sum, text};

/// The text that opencode sends instead of a cleared result.
const CLEARED: &str = "[Old tool result content cleared]";

/// A session in the format of `opencode export`.
pub(super) struct Export {
    pub(super) info: Value,
    pub(super) messages: Vec<OpencodeMessage>,
}

/// A session whose messages are not parsed yet.
#[derive(Deserialize)]
struct RawExport<'a> {
    info: Value,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize, Default)]
pub(super) struct OpencodeMessage {
    pub(super) info: Value,
    #[serde(default)]
    pub(super) parts: Vec<Value>,
}

/// Returns the ids of the sessions in a database with the times of their last changes, the newest
/// first. Returns an empty list if the database cannot be read.
pub(crate) fn sessions(path: &Path) -> Vec<(Option<String>, SystemTime)> {
    let read = || -> rusqlite::Result<Vec<(Option<String>, SystemTime)>> {
        let database = connect(path)?;
        let mut query = database.prepare(
            "SELECT id, time_updated FROM session WHERE parent_id IS NULL
             ORDER BY time_updated DESC LIMIT ?1",
        )?;
        let rows = query.query_map([MAX_CANDIDATES as i64], |row| {
            let millis: i64 = row.get(1)?;
            let since = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
            Ok((row.get(0)?, SystemTime::UNIX_EPOCH + since))
        })?;
        rows.collect()
    };
    read().unwrap_or_default()
}

/// Opens a database read-only, since opencode may be writing to it.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    database.busy_timeout(Duration::from_secs(2))?;
    Ok(database)
}

/// Reads a session and returns the messages that opencode would send next.
pub(crate) fn read(path: &Path, session: Option<&str>) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::Opencode, path, Protocol::Messages);
    let mut export = load(&mut log, session)?;
    let summarized = export.messages.iter().rfind(|message| is_summary(message));
    let summarized = summarized.and_then(|summary| summary.info.get("parentID").cloned());
    leave_open_summaries(&mut export.messages, summarized.as_ref());
    let of_session = |key: &str| text(&export.info, key).map(str::to_owned);
    log.id = of_session("/id").unwrap_or_default();
    log.directory = of_session("/directory");
    log.title = of_session("/title");
    let reverted = text(&export.info, "/revert/messageID");
    let is_request = |message: &OpencodeMessage| {
        summarized.is_some() && message.info.get("id") == summarized.as_ref()
    };
    let from = export
        .messages
        .iter()
        .position(is_request)
        .unwrap_or_default();
    for (entry, message) in export.messages.iter().enumerate().skip(from) {
        if reverted.is_some() && text(&message.info, "/id") == reverted {
            break;
        }
        take(&mut log, entry, message);
        let of = |pointer: &str| message.info.pointer(pointer);
        let parts = sum(of("/tokens"), &["input", "output"]);
        let parts = parts.saturating_add(sum(of("/tokens/cache"), &["read", "write"]));
        log.report(of("/tokens/total").and_then(Value::as_u64).unwrap_or(parts));
    }
    log.checked("it contains no messages; choose another session with --list")
}

/// Loads a session from a database or an export. A message that cannot be read is empty.
pub(super) fn load(log: &mut SessionLog, session: Option<&str>) -> Result<Export, LogError> {
    let mut text = Vec::new();
    let mut input = open(&log.path)?;
    let head = input.by_ref().take(SQLITE.len() as u64);
    let read = { head }.read_to_end(&mut text);
    read.map_err(LogError::read(&log.path))?;
    if text == SQLITE {
        let read = from_database(&log.path, session).map_err(|error| LogError::Database {
            path: log.path.clone(),
            why: match error {
                rusqlite::Error::QueryReturnedNoRows => "there is no such session in it".to_owned(),
                error => error.to_string(),
            },
        });
        text = read?.into_bytes();
        input = Box::new(std::io::empty());
    }
    read_rest(log, input, &mut text)?;
    let export: serde_json::Result<RawExport<'_>> = serde_json::from_slice(&text);
    let export = export.map_err(|error| LogError::Empty {
        path: log.path.clone(),
        agent: Agent::Opencode.title(),
        why: format!("it is damaged ({error}); write it again with `opencode export ID`"),
    })?;
    let messages = (1..).zip(export.messages).map(|(row, message)| {
        let message = serde_json::from_str(message.get());
        let mut message: OpencodeMessage = message.unwrap_or_else(|error| {
            log.damaged(row, format!("its message cannot be read: {error}"));
            OpencodeMessage::default()
        });
        let is_damaged = |row: &Value| row.get(DAMAGED).is_some();
        if is_damaged(&message.info) || message.parts.iter().any(is_damaged) {
            log.damaged(row, "a row of it is no JSON".to_owned());
            unset(&mut message.info, &[DAMAGED]);
            message.parts.retain(|part| !is_damaged(part));
        }
        message
    });
    Ok(Export {
        info: export.info,
        messages: messages.collect(),
    })
}

/// The key that a row of the database has instead of data that is no JSON.
const DAMAGED: &str = "$damaged";

/// The data of a session, with the keys that `opencode export` writes.
const SESSION: &str = "
    SELECT id, json_object('id', id, 'projectID', project_id, 'directory', directory, 'title', title,
        'version', version, 'slug', slug,
        'time', json_object('created', time_created, 'updated', time_updated),
        'revert', iif(json_valid(revert), json(revert), NULL))
    FROM session WHERE id = ?1 OR ?1 IS NULL
    ORDER BY parent_id IS NOT NULL, time_updated DESC LIMIT 1";
const MESSAGES: &str = "
    SELECT id, json_set(iif(json_valid(data), data, json_object('$damaged', 1)), '$.id', id, '$.sessionID', session_id)
    FROM message WHERE session_id = ?1 ORDER BY time_created, id";
const PARTS: &str = "
    SELECT json_set(iif(json_valid(data), data, json_object('$damaged', 1)), '$.id', id, '$.sessionID', ?2,
        '$.messageID', message_id)
    FROM part WHERE message_id = ?1 ORDER BY id";

/// Returns a session as the text of an export.
fn from_database(path: &Path, session: Option<&str>) -> rusqlite::Result<String> {
    let database = connect(path)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (id, info): (String, String) = database.query_row(SESSION, [session], read)?;
    let (mut query, mut parts) = (database.prepare(MESSAGES)?, database.prepare(PARTS)?);
    let mut messages = Vec::new();
    for row in query.query_map([&id], read)? {
        let (message, info): (String, String) = row?;
        let parts = parts.query_map([&message, &id], |row| row.get(0))?;
        let parts = parts.collect::<rusqlite::Result<Vec<String>>>()?.join(",");
        messages.push(format!(r#"{{"info":{info},"parts":[{parts}]}}"#));
    }
    let messages = messages.join(",");
    Ok(format!(r#"{{"info":{info},"messages":[{messages}]}}"#))
}

fn is_summary(message: &OpencodeMessage) -> bool {
    let is_done = message.info.get("finish").is_some() && message.info.get("error").is_none();
    message.info.get("summary") == Some(&Value::Bool(true)) && is_done
}

/// Empties the requests for summaries except the one that was answered, with what was written of their answers:
/// opencode would answer the request again, which it sent when it died.
fn leave_open_summaries(messages: &mut [OpencodeMessage], summarized: Option<&Value>) {
    let is_request = |part: &Value| text(part, "/type") == Some("compaction");
    let open = messages
        .iter()
        .filter(|message| message.parts.iter().any(is_request));
    let open = open.filter_map(|message| message.info.get("id"));
    let open: Vec<Value> = open.filter(|id| Some(*id) != summarized).cloned().collect();
    for message in messages {
        let ids = ["id", "parentID"].map(|key| message.info.get(key));
        if ids.into_iter().flatten().any(|id| open.contains(id)) {
            message.parts.clear();
        }
    }
}

/// Adds a message. The number of a block is that of its part.
fn take(log: &mut SessionLog, entry: usize, message: &OpencodeMessage) {
    let parts = message.parts.iter().enumerate();
    let info = |pointer: &str| text(&message.info, pointer);
    if info("/role") == Some("user") {
        let blocks = parts.filter_map(|(at, part)| Some((at, Role::User, message_block(part)?)));
        log.push(entry, blocks);
        return;
    }
    let error = info("/error/data/message").or(info("/error/name"));
    log.last_error = error.map(str::to_owned);
    log.model = info("/modelID").map(str::to_owned).or(log.model.take());
    let answer = |part: &Value| match text(part, "/type")? {
        "text" => message_block(part),
        "tool" => {
            let id = text(part, "/callID").unwrap_or_default();
            let input = part
                .pointer("/state/input")
                .filter(|input| input.is_object());
            Some(blocks::call(
                id,
                text(part, "/tool").unwrap_or_default(),
                input,
            ))
        }
        _ => None,
    };
    let answered = parts
        .clone()
        .filter_map(|(at, part)| Some((at, Role::Assistant, answer(part)?)));
    let results = parts.filter_map(|(at, part)| Some((at, Role::User, result(part)?)));
    log.push(entry, answered.chain(results));
}

/// Checks whether a model sees a part.
pub(super) fn is_seen(part: &Value) -> bool {
    text(part, "/type") == Some("tool") || message_block(part).is_some()
}

/// Returns the content of a part as a block of Messages.
fn message_block(part: &Value) -> Option<Value> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    if part.get("ignored") == Some(&Value::Bool(true)) {
        return None;
    }
    match text("type")? {
        "text" => {
            let mut block = blocks::some_text(text("text")?)?;
            // What opencode adds to a message: files, notes of plugins, the form of an agent.
            if part.get("synthetic") == Some(&Value::Bool(true)) {
                blocks::mark_as_host(&mut block);
            }
            Some(block)
        }
        "file" => {
            let mime = text("mime").filter(|mime| mime.starts_with("image/"))?;
            let data = text("url")?.split_once(";base64,")?.1;
            Some(blocks::image(mime, data))
        }
        // The text that opencode sends for this part.
        "compaction" => Some(blocks::text("What did we do so far?")),
        _ => None,
    }
}

/// Returns the result of a call, or `None` if it has none.
fn result(part: &Value) -> Option<Value> {
    let text = |pointer: &str| text(part, pointer);
    let id = text("/callID").filter(|_| text("/type") == Some("tool"))?;
    let is_error = text("/state/status") == Some("error");
    let output = match text("/state/status")? {
        "completed" if part.pointer("/state/time/compacted").is_some() => CLEARED,
        "completed" => text("/state/output").unwrap_or_default(),
        "error" => text("/state/error").unwrap_or("error"),
        _ => return None,
    };
    Some(blocks::result(id, vec![blocks::text(output)], is_error))
}
