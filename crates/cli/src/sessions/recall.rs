//! `plimsoll sessions recall`: prints the exact bytes of a message that was removed from a
//! session's view. They come from the archive if it has them, otherwise from the log, which always
//! has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll::archive::{
    ArchivedKind, RecallError, RecallId, RecallKey, matches, page, recall_text, resolve,
};
use plimsoll::store::{ExportedEntry, SessionReader};
use plimsoll::tokens::{Bytes, Chars4};
use plimsoll::{Message, SessionId};

use crate::error::{CliError, DONE};
use crate::sessions::entries::each_entry;
use crate::stdout::exactly;
use crate::view_reader::ViewReader;

/// The message and the part of it to print.
#[derive(Debug, clap::Args)]
pub(crate) struct RecallArgs {
    /// The session
    pub(crate) id: String,
    /// The item, as named by `ledger` (such as m12), or the id of its tool call
    item: String,
    /// First byte to print
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    offset: u64,
    /// Maximum number of bytes [default: all]
    #[arg(long, value_name = "BYTES")]
    limit: Option<u64>,
    /// Print only matching lines, as line:offset: text (regular expression or plain text)
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<String>,
    /// Print the message as JSON, with images and call ids
    #[arg(long, conflicts_with_all = ["offset", "limit", "pattern"])]
    json: bool,
}

/// Runs the command. The bytes go to standard output, a note to standard error.
pub(crate) async fn run(
    store: &impl SessionReader,
    id: &SessionId,
    wanted: &RecallArgs,
) -> Result<u8, CliError> {
    let key = RecallKey::from(wanted.item.as_str());
    let (item, message, place) = match store.recall(id, &key).await {
        // The archive has a tool call with this id, but the log may have a message with this
        // number.
        Ok(item) if key.seq().is_some_and(|seq| seq != item.id.0) => {
            let (id, message) = from_log(store, id, &key).await?;
            (id, message, "from the log".to_owned())
        }
        Ok(item) => (item.id, item.message, "from the archive".to_owned()),
        Err(error @ RecallError::Ambiguous { .. }) => return Err(CliError::usage(error)),
        Err(error) => {
            let (item, message) = from_log(store, id, &key).await?;
            let why = match error {
                RecallError::Store(error) => format!("{error}; so "),
                RecallError::Expired(_) => "it has expired in the archive; ".to_owned(),
                _ => "it is not in the archive; ".to_owned(),
            };
            (item, message, format!("{why}from the log"))
        }
    };
    if wanted.json {
        out!("{}", serde_json::to_string(&message)?);
        return Ok(DONE);
    }
    let text = recall_text(&message);
    let limit = wanted.limit.map_or(Bytes(u64::MAX), Bytes);
    let piece = match &wanted.pattern {
        Some(pattern) => matches(&text, pattern, wanted.offset, limit),
        None => page(&text, wanted.offset, limit),
    };
    let piece = piece.map_err(CliError::usage)?;
    exactly(&piece.text)?;
    let kind = ArchivedKind::of(&message);
    say!("{item}, {kind}: {}; {place}", piece.note);
    Ok(DONE)
}

/// Searches the log for a message. All messages with the id of a tool call are considered.
async fn from_log(
    store: &impl SessionReader,
    id: &SessionId,
    key: &RecallKey,
) -> Result<(RecallId, Arc<Message>), CliError> {
    // The tokens do not matter here, so the fastest counter is used.
    let mut reader = ViewReader::new(Chars4);
    let mut found: BTreeMap<RecallId, Arc<Message>> = BTreeMap::new();
    let mut calls: BTreeMap<RecallId, bool> = BTreeMap::new();
    let each = |line: &ExportedEntry| {
        for item in reader.read(&line.entry).map_err(CliError::failed)?.added {
            let (id, is_call) = (RecallId(item.seq), is_call(key, &item.message));
            if is_call {
                calls.insert(id, true);
            }
            if is_call || key.seq() == Some(item.seq) {
                found.insert(id, item.message);
            }
        }
        Ok::<_, CliError>(())
    };
    each_entry(store, id, 0, each).await?;
    let number = key.seq().map(RecallId).filter(|id| found.contains_key(id));
    let name = key.to_string();
    let none = || {
        CliError::usage(format!(
            "session {id} has no item `{name}`; `plimsoll sessions ledger {id}` lists the evicted \
             items"
        ))
    };
    match resolve(&name, number, &calls) {
        Ok(id) => found.remove_entry(&id).ok_or_else(none),
        Err(RecallError::Unknown(_)) => Err(none()),
        Err(error) => Err(CliError::usage(error)),
    }
}

fn is_call(key: &RecallKey, message: &Message) -> bool {
    match (key, message) {
        (RecallKey::Named(name), Message::ToolResult(result)) => result.call.0 == *name,
        _ => false,
    }
}
