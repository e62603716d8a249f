//! `plimsoll sessions pins` and `unpin`: lists the pinned messages of a session, and removes pins.

use plimsoll::machine::Entry;
use plimsoll::recall::RecallId;
use plimsoll::{SessionId, SessionStore};
use serde_json::json;

use crate::count::preview;
use crate::error::{CliError, DONE};
use crate::sessions::fold;

/// Lists the pinned messages.
pub(crate) async fn list(
    store: &impl SessionStore,
    id: &SessionId,
    json: bool,
) -> Result<u8, CliError> {
    let state = fold(&store.load(id).await?)?;
    let items = state.transcript().items().iter();
    let pinned: Vec<_> = items.filter(|item| item.pin.is_some()).collect();
    if pinned.is_empty() && !json {
        say!("nothing is pinned in session {id}");
    }
    for item in pinned {
        let (name, tokens) = (item.seq.recall_id(), item.tokens);
        if json {
            let text = item.message.text();
            out!("{}", json!({ "id": name, "tokens": tokens, "text": text }));
        } else {
            out!("{name:>7}  {tokens:>7}  {}", preview(&item.message));
        }
    }
    Ok(DONE)
}

/// Removes a pin. The message stays in the view until a plan evicts it.
pub(crate) async fn unpin(
    store: &impl SessionStore,
    id: &SessionId,
    item: &str,
) -> Result<u8, CliError> {
    let lease = store.acquire(id).await?;
    let state = fold(&store.load(id).await?)?;
    let seq = item.parse().ok().map(|RecallId(seq)| seq);
    let seq = seq.filter(|seq| {
        let item = state.transcript().get(*seq);
        item.is_some_and(|item| item.pin.is_some())
    });
    let seq = seq.ok_or_else(|| {
        CliError::usage(format!(
            "{item} is not pinned in session {id}; `plimsoll sessions pins {id}` lists the pins"
        ))
    })?;
    store.append(&lease, &[Entry::Unpinned { seq }]).await?;
    note!("{item} is no longer pinned");
    Ok(DONE)
}
