//! `plimsoll sessions pins` and `unpin`: lists the pinned messages of a session, and removes pins.

use plimsoll::machine::Entry;
use plimsoll::recall::RecallKey;
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
    let log = store.load(id).await?;
    let state = fold(&log)?;
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
    let seq = RecallKey::from(item).seq().ok_or_else(|| {
        CliError::usage(format!(
            "`{item}` names no item; give an id such as m3, as `plimsoll sessions pins {id}` lists them"
        ))
    })?;
    let lease = store.acquire(id).await?;
    let log = store.load(id).await?;
    let state = fold(&log)?;
    if state
        .transcript()
        .get(seq)
        .is_none_or(|item| item.pin.is_none())
    {
        return Err(CliError::usage(format!(
            "{item} is not pinned in session {id}; `plimsoll sessions pins {id}` lists the pins"
        )));
    }
    let entry = Entry::Unpinned { seq };
    store.append(&lease, &[entry]).await?;
    note!("{item} is no longer pinned");
    Ok(DONE)
}
