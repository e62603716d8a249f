//! Writes the recorded entries of a session to its log.

use std::sync::Arc;

use plimsoll_agent::Entry;

use crate::error::Error;
use crate::log_write::LogWrite;
use crate::session::Session;

/// Writes the recorded entries to the store.
pub(super) async fn flush(session: &mut Session) -> Result<(), Error> {
    finish_write(session).await?;
    if session.pending.is_empty() {
        return Ok(());
    }
    let entries = std::mem::take(&mut session.pending);
    let (store, lease) = (&session.parts.store, &session.lease);
    let write = LogWrite::new(Arc::clone(store), Arc::clone(lease), entries);
    session.writing = Some(write);
    finish_write(session).await
}

/// Finishes a write to the log, if one was begun.
pub(super) async fn finish_write(session: &mut Session) -> Result<(), Error> {
    let Some(writing) = &mut session.writing else {
        return Ok(());
    };
    let result = writing.finish().await;
    let entries = Arc::clone(&writing.entries);
    session.writing = None;
    // After a failed write, the session is ahead of its log, whatever is written later.
    session.stale |= result.is_err();
    result?;
    session.entries += entries.len() as u64;
    session.reached |= entries.iter().any(is_point);
    if let Some(chain) = &mut session.chain {
        chain.extend(&entries);
    }
    Ok(())
}

/// Checks whether another process that continues from here would have less work to do than before.
pub(super) fn is_point(entry: &Entry) -> bool {
    match entry {
        Entry::Reply { .. } | Entry::ToolResult { .. } | Entry::Summarized { .. } => true,
        // The notice that it was cut off follows a text.
        Entry::PartialReply { message, .. } => message.parts().is_empty(),
        _ => false,
    }
}
