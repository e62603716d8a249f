//! Restores a session from its export, and its archive from the plans in it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll::archive::Archived;
use plimsoll::store::{ExportedLog, SqliteStore};
use plimsoll::{Bpe, CallId, Entry, Lease, Memo, Message, Seq, SessionStore, State};

use crate::exit::Stop;

/// Writes the log of an export into a new session. Returns the number of its entries.
pub(crate) async fn run(store: &SqliteStore, lease: &Lease, text: &str) -> Result<usize, Stop> {
    let log = ExportedLog::parse(text).map_err(Stop::failed)?;
    let entries = log.entries().len();
    let left = left(log.entries())?;
    store.import(lease, log).await.map_err(Stop::failed)?;
    if let Err(error) = store.archive(lease, &left).await {
        crate::say(&error.to_string());
    }
    Ok(entries)
}

/// Returns the originals of what plans have removed or shortened, in that order. Refuses a log that
/// is not whole.
fn left(log: &[Entry]) -> Result<Vec<Archived>, Stop> {
    let mut state = State::new(Arc::new(Memo::new(Bpe::o200k())));
    let mut originals: BTreeMap<Seq, Arc<Message>> = BTreeMap::new();
    let mut tools: HashMap<CallId, String> = HashMap::new();
    let mut left: Vec<Archived> = Vec::new();
    for entry in log {
        let next = state.transcript().next_seq();
        let before = match entry {
            Entry::Planned { .. } => state.transcript().items().to_vec(),
            _ => Vec::new(),
        };
        state.absorb(entry).map_err(Stop::failed)?;
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
            let tool = match message.as_ref() {
                Message::ToolResult(result) => tools.get(&result.call).cloned(),
                _ => None,
            };
            left.push(Archived {
                seq: was.seq,
                message,
                tool,
                why: format!("{}: {}", plan.why.word(), plan.stages.join(", ")),
            });
        }
    }
    Ok(left)
}
