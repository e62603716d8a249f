//! Sessions of opencode: rows of its SQLite database, or the JSON of `opencode export`. A call and
//! its result are in one part of a message.

pub(crate) mod copy;

use std::path::Path;
use std::time::{Duration, SystemTime};

use plimsoll_foreign::Role;
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::blocks;
use crate::error::LogError;
use crate::find::MAX_CANDIDATES;
use crate::session::{SessionLog, sum, text};

/// The text that opencode sends instead of a cleared result.
const CLEARED: &str = "[Old tool result content cleared]";

/// A session in the format of `opencode export`, whose messages are not parsed yet.
#[derive(Deserialize)]
struct Export<'a> {
    info: Value,
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct OpencodeMessage {
    info: Value,
    #[serde(default)]
    parts: Vec<Value>,
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

/// Returns a session of a database as the text of an export.
pub(crate) fn export(path: &Path, session: Option<&str>) -> Result<Vec<u8>, LogError> {
    let text = from_database(path, session).map_err(|error| LogError::Database {
        path: path.to_owned(),
        why: match error {
            rusqlite::Error::QueryReturnedNoRows => "there is no such session in it".to_owned(),
            error => error.to_string(),
        },
    });
    text.map(String::into_bytes)
}

/// Reads a session and returns the messages that opencode would send next.
pub(crate) fn read(mut log: SessionLog, json: &[u8]) -> Result<SessionLog, LogError> {
    let export: serde_json::Result<Export<'_>> = serde_json::from_slice(json);
    let export = export.map_err(|error| LogError::Empty {
        path: log.path.clone(),
        agent: log.agent.title(),
        why: format!("it is damaged ({error}); write it again with `opencode export ID`"),
    })?;
    let of_session = |key: &str| text(&export.info, key).map(str::to_owned);
    log.id = of_session("/id").unwrap_or_default();
    log.directory = of_session("/directory");
    log.title = of_session("/title");
    let reverted = of_session("/revert/messageID");
    let messages = (1..).zip(&export.messages).map(|(row, message)| {
        // A message that cannot be read is empty.
        serde_json::from_str(message.get()).unwrap_or_else(|error| {
            log.damaged(row, format!("its message cannot be read: {error}"));
            OpencodeMessage::default()
        })
    });
    let messages: Vec<OpencodeMessage> = messages.collect();
    let summarized = messages.iter().rfind(|message| is_summary(message));
    let summarized = summarized.and_then(|summary| summary.of("/parentID"));
    let is_request =
        |message: &OpencodeMessage| summarized.is_some() && message.of("/id") == summarized;
    let from = messages.iter().position(is_request).unwrap_or_default();
    let mut pending = None;
    let active = messages.iter().zip(&export.messages).enumerate();
    for (entry, (message, source)) in active.skip(from) {
        let id = message.of("/id");
        if id.is_some() && id == reverted.as_deref() {
            break;
        }
        // opencode would answer a request for a summary again, which it sent when it died.
        if message.asks_for_summary() && id != summarized {
            pending = id;
        }
        let is_pending = pending.is_some() && [id, message.of("/parentID")].contains(&pending);
        let units = if is_pending {
            Vec::new()
        } else {
            message.units()
        };
        log.push(entry, source.get().as_bytes(), units);
        if message.of("/role") != Some("user") {
            let error = message
                .of("/error/data/message")
                .or(message.of("/error/name"));
            log.last_error = error.map(str::to_owned);
            log.model = message
                .of("/modelID")
                .map(str::to_owned)
                .or(log.model.take());
            let of = |pointer: &str| message.info.pointer(pointer);
            let parts = sum(of("/tokens"), &["input", "output"]);
            let parts = parts.saturating_add(sum(of("/tokens/cache"), &["read", "write"]));
            log.report(of("/tokens/total").and_then(Value::as_u64).unwrap_or(parts));
        }
    }
    log.header = export.info;
    log.checked("it contains no messages; choose another session with --list")
}

/// The data of a session, with the keys that `opencode export` writes.
const SESSION: &str = "
    SELECT id, json_object('id', id, 'projectID', project_id, 'directory', directory, 'title', title,
        'version', version, 'slug', slug,
        'time', json_object('created', time_created, 'updated', time_updated),
        'revert', iif(json_valid(revert), json(revert), NULL))
    FROM session WHERE id = ?1 OR ?1 IS NULL
    ORDER BY parent_id IS NOT NULL, time_updated DESC LIMIT 1";
const MESSAGES: &str = "
    SELECT id, json_set(iif(json_valid(data), data, '{}'), '$.id', id, '$.sessionID', session_id)
    FROM message WHERE session_id = ?1 ORDER BY time_created, id";
const PARTS: &str = "
    SELECT json_set(iif(json_valid(data), data, '{}'), '$.id', id, '$.sessionID', ?2,
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

impl OpencodeMessage {
    /// Returns a text in its data.
    fn of(&self, pointer: &str) -> Option<&str> {
        text(&self.info, pointer)
    }

    /// Checks whether it asks for a summary of the session.
    fn asks_for_summary(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| text(part, "/type") == Some("compaction"))
    }

    /// Returns its blocks, each with the number of its part.
    fn units(&self) -> Vec<(usize, Role, Value)> {
        let parts = self.parts.iter().enumerate();
        if self.of("/role") == Some("user") {
            let blocks =
                parts.filter_map(|(at, part)| Some((at, Role::User, message_block(part)?)));
            return blocks.collect();
        }
        let answers = parts
            .clone()
            .filter_map(|(at, part)| Some((at, Role::Assistant, answer_block(part)?)));
        let results = parts.filter_map(|(at, part)| Some((at, Role::User, result(part)?)));
        answers.chain(results).collect()
    }
}

/// Returns the text or the call in a part of an answer.
fn answer_block(part: &Value) -> Option<Value> {
    match text(part, "/type")? {
        "text" => message_block(part),
        "tool" => {
            let id = text(part, "/callID").unwrap_or_default();
            let name = text(part, "/tool").unwrap_or_default();
            let input = part.pointer("/state/input");
            Some(blocks::call(
                id,
                name,
                input.filter(|input| input.is_object()),
            ))
        }
        _ => None,
    }
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
