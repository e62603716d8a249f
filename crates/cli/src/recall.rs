//! `plimsoll sessions recall`: the exact bytes of something that left a session's view, for a
//! person. From the archive where it holds them, else from the log, which always has them.

use std::sync::Arc;

use plimsoll::archive::{Forgotten, Kind, matches, page, recall_text, resolve};
use plimsoll::store::SqliteStore;
use plimsoll::{
    Bytes, Chars4, Message, RecallError, RecallId, RecallKey, SessionId, SessionStore, State,
    TokenCounter,
};

use crate::exit::{DONE, Stop};
use crate::out::{exactly, out};

/// What is asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) item: &'a str,
    pub(crate) offset: u64,
    pub(crate) limit: Option<u64>,
    pub(crate) pattern: Option<&'a str>,
    pub(crate) json: bool,
}

/// Runs the command. The bytes go to standard output, what is said of them to stderr.
pub(crate) async fn run(
    store: &SqliteStore,
    id: &SessionId,
    wanted: &Wanted<'_>,
) -> Result<u8, Stop> {
    let key = RecallKey::from(wanted.item);
    let (item, message, place) = match store.recall(id, &key).await {
        Ok(item) => (item.id, item.message, "from the archive".to_owned()),
        Err(error @ RecallError::Ambiguous { .. }) => return Err(Stop::usage(error)),
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
        out!("{}", serde_json::to_string(&message).map_err(Stop::failed)?);
        return Ok(DONE);
    }
    let text = recall_text(&message);
    let limit = wanted.limit.map_or(Bytes(u64::MAX), Bytes);
    let piece = match wanted.pattern {
        Some(pattern) => matches(&text, pattern, wanted.offset, limit),
        None => page(&text, wanted.offset, limit),
    };
    let piece = piece.map_err(Stop::usage)?;
    exactly(&piece.text)?;
    let kind = Kind::of(&message);
    crate::say(&format!("{item}, {kind}: {}; {place}", piece.note));
    Ok(DONE)
}

/// Reads the log until it says the item; of a call's id, all that have it.
async fn from_log(
    store: &SqliteStore,
    id: &SessionId,
    key: &RecallKey,
) -> Result<(RecallId, Arc<Message>), Stop> {
    // What it weighs is of no interest, so it is weighed the quickest way.
    let counter: Arc<dyn TokenCounter> = Arc::new(Chars4);
    let mut state = State::new(counter);
    let mut fit: Vec<(RecallId, Arc<Message>)> = Vec::new();
    let mut after = 0;
    loop {
        let lines = store.page(id, after).await.map_err(Stop::failed)?;
        let Some(last) = lines.last() else {
            break;
        };
        after = last.n;
        for line in &lines {
            let next = state.transcript().next_seq();
            state.absorb(&line.entry).map_err(Stop::failed)?;
            let items = state.transcript().items();
            let new = items.partition_point(|item| item.seq < next);
            let new = items.get(new..).unwrap_or_default().iter();
            let new = new.filter(|item| key.seq() == Some(item.seq) || is_call(key, &item.message));
            fit.extend(new.map(|item| (RecallId(item.seq), Arc::clone(&item.message))));
        }
    }
    let ids: Vec<RecallId> = fit.iter().map(|(id, _)| *id).collect();
    let name = key.to_string();
    let none = || {
        Stop::usage(format!(
            "session {id} has no item `{name}`; `plimsoll sessions ledger {id}` lists what left"
        ))
    };
    match resolve(&name, &ids, Forgotten::None) {
        Ok(_) => fit.into_iter().next().ok_or_else(none),
        Err(RecallError::Unknown(_)) => Err(none()),
        Err(error) => Err(Stop::usage(error)),
    }
}

fn is_call(key: &RecallKey, message: &Message) -> bool {
    match (key, message) {
        (RecallKey::Named(name), Message::ToolResult(result)) => result.call.0 == *name,
        _ => false,
    }
}
