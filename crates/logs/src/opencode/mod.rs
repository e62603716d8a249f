//! Sessions of opencode: rows of its SQLite database, or the JSON of `opencode export`. A call and
//! its result are in one part of a message.

pub(crate) mod copy;

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use plimsoll_wire::__internals::RawObject;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::blocks;
use crate::error::LogError;
use crate::find::{Candidate, MAX_CANDIDATES};
use crate::input::for_each_entry;
use crate::read::NO_MESSAGE;
use crate::session::{SessionLog, sum, text};
use crate::tree::{EntryContent, Node, push_again};

/// The keys of reasoning that its provider signed or encrypted.
const SIGNED: [&str; 4] = [
    "signature",
    "redactedData",
    "reasoningEncryptedContent",
    "thoughtSignature",
];
/// The text that opencode sends instead of a cleared result.
const CLEARED: &str = "[Old tool result content cleared]";

#[derive(Default)]
pub(super) struct OpencodeMessage {
    pub(super) info: Value,
    pub(super) parts: Vec<Value>,
    /// Whether a row of it is no JSON.
    is_damaged: bool,
}

impl OpencodeMessage {
    /// Parses a message of an export.
    pub(super) fn parse(keys: &RawObject<'_>) -> serde_json::Result<Self> {
        let info: Value = serde_json::from_str(keys.get("info").unwrap_or("null"))?;
        let mut parts: Vec<Value> = serde_json::from_str(keys.get("parts").unwrap_or("[]"))?;
        let is_damaged = info.is_null() || parts.iter().any(Value::is_null);
        parts.retain(|part| !part.is_null());
        Ok(Self {
            info,
            parts,
            is_damaged,
        })
    }
}

/// The links of a message.
#[derive(Debug, Default)]
struct Links {
    id: Option<String>,
    parent: Option<String>,
    /// Whether it asks for a summary.
    is_request: bool,
}

/// Returns the sessions in a database, the newest first. Returns an empty list if the database cannot be read.
pub(crate) fn sessions(path: &Path) -> Vec<Candidate> {
    let read = || -> rusqlite::Result<Vec<Candidate>> {
        let database = connect(path)?;
        let mut query = database.prepare(
            "SELECT id, time_updated, directory FROM session WHERE parent_id IS NULL
             ORDER BY time_updated DESC LIMIT ?1",
        )?;
        let rows = query.query_map([MAX_CANDIDATES as i64], |row| {
            let millis: i64 = row.get(1)?;
            let since = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
            Ok(Candidate {
                agent: Agent::Opencode,
                path: path.to_owned(),
                session: row.get(0)?,
                modified: SystemTime::UNIX_EPOCH + since,
                directory: row.get(2)?,
            })
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
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    let mut nodes: Vec<Node<Links>> = Vec::new();
    let mut summarized = None;
    for_each_entry(log, |log, entry| {
        if !entry.place.is_listed {
            log.metadata = entry.value("info").unwrap_or_default();
            return;
        }
        let message = match OpencodeMessage::parse(&entry.keys) {
            Ok(message) => message,
            Err(error) => return log.unread(entry, "its message", &error),
        };
        if message.is_damaged {
            log.damaged(entry.place, 0, "a row of it is no JSON");
        }
        let is_foreign = |part: &Value| is_signed(part) && thinking(part).is_none();
        log.has_encrypted |= message.parts.iter().any(is_foreign);
        let of = |pointer: &str| text(&message.info, pointer).map(str::to_owned);
        let is_request = |part: &Value| text(part, "/type") == Some("compaction");
        let data = Links {
            id: of("/id"),
            parent: of("/parentID"),
            is_request: message.parts.iter().any(is_request),
        };
        if is_summary(&message.info) {
            summarized.clone_from(&data.parent);
        }
        log.began = log.began.take().or(of("/id"));
        let place = entry.place;
        nodes.push(Node {
            place,
            data,
            ..Node::default()
        });
    })?;
    let of_session = |key: &str| text(&log.metadata, key).map(str::to_owned);
    let (directory, title) = (of_session("/directory"), of_session("/title"));
    let reverted = of_session("/revert/messageID");
    log.id = of_session("/id").unwrap_or_default();
    (log.directory, log.title) = (directory, title);
    let has_id = |node: &Node<Links>, id: &Option<String>| id.is_some() && node.data.id == *id;
    let from = nodes.iter().position(|node| has_id(node, &summarized));
    let active = nodes.iter().skip(from.unwrap_or_default());
    let active: Vec<&Node<Links>> = active.take_while(|node| !has_id(node, &reverted)).collect();
    // opencode would answer a request for a summary again, which it sent when it died.
    let is_open = |node: &&Node<Links>| node.data.is_request && !has_id(node, &summarized);
    let open: Vec<&Node<Links>> = nodes.iter().filter(is_open).collect();
    let drops = log.ignores_encrypted;
    push_again(log, &active, |entry, links| {
        let mut message = OpencodeMessage::parse(&entry.keys)?;
        let is_of = |node: &&Node<Links>| has_id(node, &links.id) || has_id(node, &links.parent);
        if open.iter().any(is_of) {
            message.parts.clear();
        }
        Ok(content(&message, drops))
    })?;
    if let (Some(open), Some(_)) = (open.last(), &log.last_error) {
        log.repaired(
            open.place,
            "left out its request for a summary, in which it failed",
        );
    }
    Ok(NO_MESSAGE)
}

/// The data of a session, with the keys that `opencode export` writes. Rows below it that are no JSON become `null`.
const SESSION: &str = "
    SELECT id, json_object('id', id, 'projectID', project_id, 'directory', directory, 'title', title,
        'version', version, 'slug', slug,
        'time', json_object('created', time_created, 'updated', time_updated),
        'revert', iif(json_valid(revert), json(revert), NULL))
    FROM session WHERE id = ?1 OR ?1 = ''
    ORDER BY parent_id IS NOT NULL, time_updated DESC LIMIT 1";
const MESSAGES: &str = "
    SELECT id, json_set(iif(json_valid(data), data, 'null'), '$.id', id, '$.sessionID', session_id)
    FROM message WHERE session_id = ?1 ORDER BY time_created, id";
const PARTS: &str = "
    SELECT json_set(iif(json_valid(data), data, 'null'), '$.id', id, '$.sessionID', ?2, '$.messageID', message_id)
    FROM part WHERE message_id = ?1 ORDER BY id";

/// Writes a session in a database as lines: its data, and then its messages in the form of an export. An empty id is
/// that of the newest session.
pub(crate) fn write_rows(path: &Path, session: &str, out: &mut dyn Write) -> Result<(), LogError> {
    let mut write = || -> Result<(), Box<dyn Error>> {
        let database = connect(path)?;
        let two = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (id, info): (String, String) = database.query_row(SESSION, [session], two)?;
        writeln!(out, r#"{{"info":{info}}}"#)?;
        let (mut query, mut parts) = (database.prepare(MESSAGES)?, database.prepare(PARTS)?);
        for row in query.query_map([&id], two)? {
            let (message, info): (String, String) = row?;
            let parts = parts.query_map([&message, &id], |row| row.get(0))?;
            let parts = parts.collect::<rusqlite::Result<Vec<String>>>()?.join(",");
            writeln!(out, r#"{{"info":{info},"parts":[{parts}]}}"#)?;
        }
        Ok(())
    };
    write().map_err(|error| LogError::Database {
        path: path.to_owned(),
        why: match error.downcast_ref() {
            Some(rusqlite::Error::QueryReturnedNoRows) => "there is no such session in it".into(),
            _ => error.to_string(),
        },
    })
}

fn is_summary(info: &Value) -> bool {
    let is_done = info.get("finish").is_some() && info.get("error").is_none();
    info.get("summary") == Some(&Value::Bool(true)) && is_done
}

/// Returns the part of a message that a model sees, and reasoning of any provider if that `drops` then. The number of a
/// block is that of its part.
fn content(message: &OpencodeMessage, drops: bool) -> EntryContent {
    let parts = message.parts.iter().enumerate();
    let info = |pointer: &str| text(&message.info, pointer).map(str::to_owned);
    let mut read = EntryContent::default();
    if info("/role").as_deref() == Some("user") {
        let blocks = parts.filter_map(|(at, part)| Some((at, message_block(part)?)));
        read.blocks = blocks.collect();
        return read;
    }
    read.model = info("/modelID");
    let of = |pointer: &str| message.info.pointer(pointer);
    let sums = sum(of("/tokens"), &["input", "output"]);
    let sums = sums.saturating_add(sum(of("/tokens/cache"), &["read", "write"]));
    let tokens = of("/tokens/total").and_then(Value::as_u64).unwrap_or(sums);
    read.answer = Some((tokens, info("/error/data/message").or(info("/error/name"))));
    let answer = |part: &Value| match text(part, "/type")? {
        "text" => message_block(part),
        "reasoning" => reasoning(part, drops),
        "tool" => {
            let of = |pointer: &str| text(part, pointer).unwrap_or_default();
            let input = part.pointer("/state/input");
            let input = input.filter(|input| input.is_object());
            Some(blocks::call(of("/callID"), of("/tool"), input))
        }
        _ => None,
    };
    let answered = { parts.clone() }.filter_map(|(at, part)| Some((at, answer(part)?)));
    let results = parts.filter_map(|(at, part)| Some((at, result(part)?)));
    read.blocks = answered.chain(results).collect();
    read
}

/// Checks whether a part is a block of the chat.
pub(super) fn is_seen(part: &Value, drops: bool) -> bool {
    let block = message_block(part).or(reasoning(part, drops));
    text(part, "/type") == Some("tool") || block.is_some()
}

/// Returns the reasoning in a part as thinking: that of Anthropic, or if all of it `drops` then, any that its provider
/// signed or encrypted and may refuse for that. Other reasoning is only copied.
fn reasoning(part: &Value, drops: bool) -> Option<Value> {
    let any = || json!({ "type": "thinking", "thinking": "" });
    thinking(part).or_else(|| (drops && is_signed(part)).then(any))
}

/// Returns the reasoning in a part, if Anthropic signed it. No other provider's is a signature of thinking.
fn thinking(part: &Value) -> Option<Value> {
    let words = text(part, "/text").filter(|_| text(part, "/type") == Some("reasoning"))?;
    let of = |pointer: &str| text(part, pointer).filter(|data| !data.is_empty());
    if let Some(signature) = of("/metadata/anthropic/signature") {
        return Some(json!({ "type": "thinking", "thinking": words, "signature": signature }));
    }
    let data = of("/metadata/anthropic/redactedData")?;
    Some(json!({ "type": "redacted_thinking", "data": data }))
}

/// Checks whether a part is reasoning that its provider signed or encrypted.
fn is_signed(part: &Value) -> bool {
    let providers = part.get("metadata").and_then(Value::as_object);
    let mut providers = providers.into_iter().flat_map(|all| all.values());
    let has = |of: &Value| {
        let mut data = SIGNED.iter().filter_map(|key| of.get(key)?.as_str());
        data.any(|data| !data.is_empty())
    };
    text(part, "/type") == Some("reasoning") && providers.any(has)
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
