//! Restores sessions from an export, and their archive from the plans in their logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll::archive::ArchivedItem;
use plimsoll::context::Seq;
use plimsoll::machine::Entry;
use plimsoll::store::{Export, SqliteStore};
use plimsoll::tokens::Chars4;
use plimsoll::{Message, SessionId, SessionStore};

use crate::error::CliError;
use crate::view_reader::ViewReader;

/// Writes all sessions of an export, or none if a log is incomplete.
pub(crate) async fn run(store: &SqliteStore, export: Export) -> Result<(), CliError> {
    let mut originals = Vec::new();
    for session in export.sessions() {
        let left = left(&session.id, &export.log(session), session.shared())?;
        originals.push((session.id.clone(), left));
    }
    store.import(export).await?;
    for (id, left) in originals.iter().filter(|(_, left)| !left.is_empty()) {
        let archived = match store.acquire(id).await {
            Ok(lease) => store.archive(&lease, left).await,
            Err(error) => Err(error),
        };
        if let Err(error) = archived {
            say!("{error}");
        }
    }
    Ok(())
}

/// Returns the original messages that plans after the first `shared` entries removed or shortened,
/// in that order.
///
/// # Errors
///
/// If the log is incomplete.
fn left(id: &SessionId, log: &[Entry], shared: u64) -> Result<Vec<ArchivedItem>, CliError> {
    // The tokens do not matter here, so the fastest counter is used.
    let mut reader = ViewReader::new(Chars4);
    let mut originals: BTreeMap<Seq, Arc<Message>> = BTreeMap::new();
    let mut left: Vec<ArchivedItem> = Vec::new();
    for (n, entry) in (1..).zip(log) {
        let change = reader.read(entry).map_err(|error| {
            let cure = "the export is incomplete; export it again";
            CliError::failed(format!("entry {n} of session {id}: {error}; {cure}"))
        })?;
        let added = change.added.into_iter();
        originals.extend(added.map(|item| (item.seq, item.message)));
        let Entry::PlanApplied { plan } = entry else {
            continue;
        };
        for was in change.replaced {
            let original = originals.remove(&was.seq);
            // The archive of the parent session contains the shared ones.
            let Some(message) = original.filter(|_| n > shared) else {
                continue;
            };
            left.push(ArchivedItem {
                seq: was.seq,
                tool: reader.call(&message).1,
                message,
                why: format!("{}: {}", plan.why.word(), plan.stages.join(", ")),
            });
        }
    }
    Ok(left)
}
