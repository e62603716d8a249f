//! `plimsoll sessions unpin`: removes a pin. The message stays in the view until a plan evicts it.

use plimsoll::machine::Entry;
use plimsoll::recall::RecallId;
use plimsoll::{SessionId, SessionStore};

use crate::error::{CliError, DONE};
use crate::sessions::fold;

/// Runs the command.
pub(crate) async fn run(
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
            "{item} is not pinned in session {id}; `plimsoll sessions show {id}` lists the pinned \
             messages"
        ))
    })?;
    store.append(&lease, &[Entry::Unpinned { seq }]).await?;
    note!("{item} is no longer pinned");
    Ok(DONE)
}
