//! Writes the recorded entries of a session to its log.

use std::sync::Arc;

use futures_util::FutureExt;
use plimsoll_agent::Entry;
use tracing::Instrument;

use crate::error::Error;
use crate::session::Session;
use crate::store::StoreError;

/// Writes the recorded entries to the store.
pub(super) async fn flush(session: &mut Session) -> Result<(), Error> {
    finish_write(session).await?;
    if session.pending.is_empty() {
        return Ok(());
    }
    let entries = Arc::new(std::mem::take(&mut session.pending));
    let (store, taken) = (Arc::clone(&session.parts.store), Arc::clone(&entries));
    // The write keeps the lease until its end, so that nobody reads the log before that and misses
    // these entries.
    let lease = Arc::clone(&session.lease);
    let write = async move { store.append(&lease, &taken).await };
    let mut write = write.in_current_span().boxed();
    if let Some(written) = (&mut write).now_or_never() {
        return end_write(session, &entries, written);
    }
    session.writing = Some((entries, tokio::spawn(write)));
    finish_write(session).await
}

/// Finishes a write to the log, if one was begun.
pub(super) async fn finish_write(session: &mut Session) -> Result<(), Error> {
    let Some((entries, write)) = &mut session.writing else {
        return Ok(());
    };
    let written = write.await.unwrap_or_else(|error| {
        Err(StoreError::Io {
            path: "the log".to_owned(),
            why: format!("writing it was cut short ({error})"),
        })
    });
    let entries = Arc::clone(entries);
    session.writing = None;
    end_write(session, &entries, written)
}

fn end_write(
    session: &mut Session,
    entries: &[Entry],
    written: Result<(), StoreError>,
) -> Result<(), Error> {
    // After a failed write, the session is ahead of its log, whatever is written later.
    session.stale |= written.is_err();
    written?;
    session.entries += entries.len() as u64;
    session.reached |= entries.iter().any(is_point);
    if let Some(chain) = &mut session.chain {
        chain.extend(entries);
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
