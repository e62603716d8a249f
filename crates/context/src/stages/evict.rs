//! [`Evict`]: removes the oldest turns from the view.
//!
//! A question is removed together with its answers. Protected messages stay, and the log keeps
//! everything.

use crate::budget::Budget;
use crate::counter::MESSAGE_OVERHEAD;
use crate::draft::Draft;
use crate::message::Message;
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::tokens::Tokens;

/// Removes the oldest turns until the view is at its target.
///
/// A turn that is larger than the target, or whose question is protected, is thinned out: its
/// oldest steps are removed and its question stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evict {
    /// Only turns that must be removed even if all results and the task were empty. It runs before
    /// stages that shorten messages, to save them work on turns that are removed anyway.
    Hopeless,
    /// As many turns as necessary.
    Oldest,
}

impl Stage for Evict {
    fn name(&self) -> &str {
        "evict"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        if !draft.is_due(budget) {
            return;
        }
        let items = 0..draft.items().len();
        let mut hopeless: Tokens = items.map(|at| least(draft, at)).sum();
        for together in draft.removable(budget.target) {
            let is_enough = match self {
                Self::Hopeless => {
                    hopeless <= budget.target && hopeless + draft.markers() <= budget.target
                }
                Self::Oldest => draft.is_within(budget.target),
            };
            if is_enough {
                return;
            }
            let removed = draft.positions(&together).into_iter();
            hopeless = hopeless.minus(removed.map(|at| least(draft, at)).sum());
            draft.drop_exchanges(&together);
        }
    }
}

/// Returns the minimum size of an item, after all possible cuts.
fn least(draft: &Draft<'_>, at: usize) -> Tokens {
    match draft.current(at) {
        None => Tokens::ZERO,
        Some((Message::ToolResult(_) | Message::User { .. }, weight)) => {
            weight.min(MESSAGE_OVERHEAD)
        }
        Some((_, weight)) => weight,
    }
}
