//! Finds the complete originals of the messages that a plan removes or shortens, for the host's
//! hooks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plimsoll_agent::{AffectedItem, Entry, PendingPlan, State};
use plimsoll_context::{Chars4, Form, Gap, Message, Seq};

use super::Parts;
use super::hooked::warn;
use crate::archive::RecallKey;
use crate::hooks::{EvictedMessage, Eviction};
use crate::store::SessionId;

/// Returns the originals of the messages that a plan removes or shortens. Messages shortened by an
/// earlier plan are read from the archive, or from the log if the archive does not have them.
pub(super) async fn evicted(parts: &Parts, session: &SessionId, pending: &PendingPlan) -> Eviction {
    let affected = || pending.items.iter().filter(|affected| is_message(affected));
    let mut originals = BTreeMap::new();
    let mut missing = BTreeSet::new();
    for affected in affected().filter(|affected| affected.item.form != Form::Original) {
        let seq = affected.item.seq;
        let key = RecallKey::from(seq.recall_id().as_str());
        match parts.store.recall(session, &key).await {
            Ok(recalled) => {
                originals.insert(seq, recalled.message);
            }
            Err(_) => {
                missing.insert(seq);
            }
        }
    }
    if !missing.is_empty() {
        match parts.store.load(session).await {
            Ok(log) => originals.extend(from_log(&log, &missing)),
            Err(error) => {
                let text = format!("on_evict gets shortened messages: {error}");
                warn(parts, vec![text]);
            }
        }
    }
    let items = affected().map(|affected| {
        let seq = affected.item.seq;
        let original = originals.remove(&seq);
        EvictedMessage {
            seq,
            removed: affected.removed,
            tool: affected.tool.clone(),
            message: original.unwrap_or_else(|| Arc::clone(&affected.item.message)),
        }
    });
    Eviction {
        items: items.collect(),
    }
}

/// Returns `true` for a real message, and `false` for a marker or a summary made by a plan.
fn is_message(affected: &AffectedItem) -> bool {
    let made = matches!(*affected.item.message, Message::Summary { .. });
    Gap::of(&affected.item.message).is_none() && !(made && affected.item.form != Form::Original)
}

/// Returns the original messages with these numbers.
fn from_log(log: &[Entry], wanted: &BTreeSet<Seq>) -> BTreeMap<Seq, Arc<Message>> {
    let mut found = BTreeMap::new();
    // The counts are not used, so the fastest counter is enough.
    let mut state = State::new(Arc::new(Chars4));
    for entry in log {
        let next = state.transcript().next_seq();
        if state.absorb(entry).is_err() {
            break;
        }
        let items = state.transcript().items();
        let new = items.partition_point(|item| item.seq < next);
        let new = items.get(new..).unwrap_or_default().iter();
        let new = new.filter(|item| wanted.contains(&item.seq));
        found.extend(new.map(|item| (item.seq, Arc::clone(&item.message))));
    }
    found
}
