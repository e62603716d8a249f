//! Restores sessions from an export, and their archive from the plans in their logs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll::archive::ArchivedItem;
use plimsoll::context::Seq;
use plimsoll::machine::{Entry, State};
use plimsoll::model::CallId;
use plimsoll::store::{Export, SqliteStore};
use plimsoll::tokens::{Chars4, Memo};
use plimsoll::{Message, SessionId, SessionStore};

use crate::exit::Stop;

/// Writes all sessions of an export, or none if a log is incomplete.
pub(crate) async fn run(store: &SqliteStore, export: Export) -> Result<(), Stop> {
    let mut originals = Vec::new();
    for session in export.sessions() {
        let Some(id) = &session.id else { continue };
        let left = left(id, &export.log(session), session.shared())?;
        originals.push((id.clone(), left));
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
fn left(id: &SessionId, log: &[Entry], shared: u64) -> Result<Vec<ArchivedItem>, Stop> {
    // The tokens do not matter here, so the fastest counter is used.
    let mut state = State::new(Arc::new(Memo::new(Chars4)));
    let mut originals: BTreeMap<Seq, Arc<Message>> = BTreeMap::new();
    let mut tools: HashMap<CallId, String> = HashMap::new();
    let mut left: Vec<ArchivedItem> = Vec::new();
    for (n, entry) in (1..).zip(log) {
        let next = state.transcript().next_seq();
        let before = match entry {
            Entry::Planned { .. } => state.transcript().items().to_vec(),
            _ => Vec::new(),
        };
        state.absorb(entry).map_err(|error| {
            let cure = "the export is incomplete; export it again";
            Stop::failed(format!("entry {n} of session {id}: {error}; {cure}"))
        })?;
        let view = state.transcript();
        for item in view
            .items()
            .iter()
            .rev()
            .take_while(|item| item.seq >= next)
        {
            originals.insert(item.seq, Arc::clone(&item.message));
            for call in item.message.calls() {
                tools.insert(call.id.clone(), call.name.clone());
            }
        }
        let Entry::Planned { plan } = entry else {
            continue;
        };
        let is_changed = |seq: Seq, was: &Arc<Message>| {
            view.get(seq)
                .is_none_or(|now| !Arc::ptr_eq(&now.message, was))
        };
        for was in before
            .iter()
            .filter(|was| is_changed(was.seq, &was.message))
        {
            let Some(message) = originals.remove(&was.seq) else {
                continue;
            };
            if n <= shared {
                // The archive of the parent session contains it.
                continue;
            }
            let tool = match message.as_ref() {
                Message::ToolResult(result) => tools.get(&result.call).cloned(),
                _ => None,
            };
            left.push(ArchivedItem {
                seq: was.seq,
                message,
                tool,
                why: format!("{}: {}", plan.why.word(), plan.stages.join(", ")),
            });
        }
    }
    Ok(left)
}
