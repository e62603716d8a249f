//! [`CacheTrail`]: what earlier requests have left in a provider's cache, as far as we can know.
//! Folded from a log like everything else; it sees no provider.

use super::place_of;
use crate::item::{Item, Seq};
use crate::plan::{Edit, Plan};

/// What earlier requests have left in the cache.
///
/// Two places matter. The *end* of the last request that is still as it was sent: the next one finds
/// it in the cache. And the *anchor*, up to which the next plan is expected to leave the view alone:
/// where the last plan dropped or summarised, the next will begin at the same place; where it only
/// shrank, the next will begin behind what is shrunk already. Before any plan it is the task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheTrail {
    end: Option<Seq>,
    anchor: Option<Seq>,
}

impl CacheTrail {
    /// Notes a request that was answered: the view as it was sent.
    pub fn sent(&mut self, items: &[Item]) {
        self.end = items.last().map(|item| item.seq);
    }

    /// Notes a plan that was applied.
    pub fn planned(&mut self, plan: &Plan) {
        // What no request has carried is in no cache.
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

    /// The last item of the last request, where it and all before it are as they were sent.
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

/// Where an edit takes items out of the view.
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
    use super::*;
    use crate::message::{Message, Part};
    use crate::plan::{Rendition, Trigger};
    use crate::tokens::Tokens;

    fn plan(edits: Vec<Edit>, rewrites_from: Option<u64>) -> Plan {
        Plan {
            why: Trigger::Request,
            stages: Vec::new(),
            edits,
            before: Tokens(100),
            frees: Tokens(50),
            rewrites_from: rewrites_from.map(Seq),
            recall: crate::means::Recall::None,
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
            marker: None,
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
            // Nothing that was sent is touched.
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
