//! [`CacheTrail`]: the positions in the view that a provider's cache probably contains.
//!
//! They are derived from the log alone, without data from the provider.

use serde::{Deserialize, Serialize};

use super::place_of;
use crate::item::{Item, Seq};
use crate::plan::{Edit, Plan};

/// The positions that earlier requests have left in the cache.
///
/// Two positions matter. The *end* is the last item of the unchanged part of the last request: the
/// next request finds this prefix in the cache. The *anchor* is the position up to which the next
/// plan is expected to leave the view unchanged. If the last plan dropped or summarised messages,
/// the next plan will begin at the same position. If it only shrank messages, the next plan will
/// begin after the shrunk ones. Before the first plan, the anchor is the task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheTrail {
    end: Option<Seq>,
    anchor: Option<Seq>,
}

impl CacheTrail {
    /// Records an answered request with the view that it sent.
    pub fn sent(&mut self, items: &[Item]) {
        self.end = items.last().map(|item| item.seq);
    }

    /// Records an applied plan.
    pub fn planned(&mut self, plan: &Plan) {
        // Messages that were never sent are in no cache.
        let Some(first) = plan.rewrites_from else {
            return;
        };
        self.end = before(first).filter(|_| self.end.is_some()).min(self.end);
        let mut leaves = plan.edits.iter().filter_map(leaves_from);
        self.anchor = match leaves.next() {
            Some(first) => before(first),
            None => plan.edits.iter().rev().find_map(shrunk).or(self.anchor),
        };
    }

    /// Returns the last item of the unchanged part of the last request.
    #[must_use]
    pub fn end(&self) -> Option<Seq> {
        self.end
    }

    pub(super) fn end_in(&self, items: &[Item]) -> Option<usize> {
        place_of(items, self.end?)
    }

    pub(super) fn anchor_in(&self, items: &[Item]) -> Option<usize> {
        match self.anchor {
            Some(seq) => place_of(items, seq),
            None => items.iter().position(|item| item.message.is_user()),
        }
    }
}

/// Returns the first item that an edit removes from the view, or `None` if it removes none.
fn leaves_from(edit: &Edit) -> Option<Seq> {
    match edit {
        Edit::Drop { first, .. } => Some(*first),
        Edit::Summarize { covers, .. } => covers.first().map(|range| range.first),
        Edit::Shrink { .. } => None,
    }
}

fn shrunk(edit: &Edit) -> Option<Seq> {
    match edit {
        Edit::Shrink { seq, .. } => Some(*seq),
        _ => None,
    }
}

fn before(seq: Seq) -> Option<Seq> {
    seq.0.checked_sub(1).map(Seq)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::{Message, Part};
    use crate::plan::{Rendition, Trigger};
    use crate::removal_marker::Gap;
    use crate::tokens::Tokens;

    fn plan(edits: Vec<Edit>, rewrites_from: Option<u64>) -> Plan {
        Plan {
            why: Trigger::Request,
            stages: Vec::new(),
            edits,
            before: Tokens(100),
            frees: Tokens(50),
            rewrites_from: rewrites_from.map(Seq),
            recall: crate::plan::Recall::None,
            price: None,
        }
    }

    fn shrink(seq: u64) -> Edit {
        let message = Message::User {
            parts: vec![Part::text("x")],
        };
        Edit::Shrink {
            seq: Seq(seq),
            to: Rendition {
                message: message.into(),
                tokens: Tokens(1),
            },
        }
    }

    fn drop(first: u64, last: u64) -> Edit {
        Edit::Drop {
            first: Seq(first),
            last: Seq(last),
            marker: Rendition {
                message: Arc::new(
                    Gap {
                        messages: 1,
                        recall: None,
                    }
                    .message(),
                ),
                tokens: Tokens::ZERO,
            },
        }
    }

    #[test]
    fn the_anchor_is_where_the_next_plan_will_begin() {
        let sent = CacheTrail {
            end: Some(Seq(30)),
            anchor: None,
        };
        for (edits, from, end, anchor) in [
            (vec![drop(1, 9)], Some(1), Some(0), Some(0)),
            (vec![shrink(3), shrink(9)], Some(3), Some(2), Some(9)),
            (vec![shrink(3), drop(5, 6)], Some(3), Some(2), Some(4)),
            // The plan changes nothing that was sent.
            (vec![shrink(31)], None, Some(30), None),
            (vec![drop(0, 1)], Some(0), None, None),
        ] {
            let mut trail = sent;
            trail.planned(&plan(edits.clone(), from));
            assert_eq!(
                (trail.end, trail.anchor),
                (end.map(Seq), anchor.map(Seq)),
                "{edits:?}"
            );
        }
    }
}
