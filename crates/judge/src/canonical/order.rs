//! [`as_they_came`]: keeps the original order of results in a batch.
//!
//! Providers pair results by id, so their order is not a fault if they directly follow their calls.
//! Results that were elsewhere, or that are new, keep their repaired position.

use std::collections::BTreeSet;

use plimsoll_context::{Message, Repair, RepairedTranscript};

/// Puts results back that were only moved within their batch.
pub(super) fn as_they_came(mut repaired: RepairedTranscript) -> RepairedTranscript {
    let mut back: BTreeSet<usize> = BTreeSet::new();
    let mut at = 0;
    while let Some((call_origin, _)) = repaired.messages.get(at) {
        let call_origin = *call_origin;
        at += 1;
        let rest = repaired.messages.get_mut(at..).unwrap_or_default();
        let is_result =
            |(_, message): &&(Option<usize>, Message)| matches!(message, Message::ToolResult(_));
        let count = rest.iter().take_while(is_result).count();
        let results = rest.get_mut(..count).unwrap_or_default();
        let origins: Option<BTreeSet<usize>> = results.iter().map(|(origin, _)| *origin).collect();
        let behind = |origins: &BTreeSet<usize>| {
            let ends = origins.first().zip(origins.last());
            let first = call_origin.map(|origin| origin + 1);
            ends.is_some_and(|(one, last)| Some(*one) == first && last - one + 1 == count)
        };
        if let Some(origins) = origins.filter(|origins| origins.len() == count && behind(origins)) {
            results.sort_by_key(|(origin, _)| *origin);
            back.extend(origins);
        }
        at += count;
    }
    let moved = |one: &Repair| matches!(one, Repair::MovedResult { at, .. } if back.contains(at));
    repaired.repairs.retain(|one| !moved(one));
    repaired
}
