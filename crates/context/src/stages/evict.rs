//! [`Evict`]: removes the oldest turns from the view.
//!
//! A question leaves together with its answers. The protected set stays, and so does everything in
//! the log.

use crate::budget::Budget;
use crate::counter::MESSAGE_OVERHEAD;
use crate::draft::Draft;
use crate::message::Message;
use crate::plan::Trigger;
use crate::stage::Stage;
use crate::tokens::Tokens;

/// Removes the oldest turns until the view is at its target.
///
/// Only a turn that is larger than the target, or whose question is protected, is thinned from
/// inside: its oldest steps are removed and its question stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evict {
    /// Only those that have to leave even if all results and the task weighed nothing. It stands
    /// before stages that shrink: they are spared the work on what leaves anyway.
    Hopeless,
    /// As many as it takes.
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
        // Without markers, which are counted only once it seems to be enough.
        let mut left: Tokens = match self {
            Self::Hopeless => (0..draft.items().len()).map(|at| least(draft, at)).sum(),
            Self::Oldest => draft.tokens().minus(draft.markers()),
        };
        for together in draft.removable(budget.target) {
            if left <= budget.target && left + draft.markers() <= budget.target {
                return;
            }
            let exchanges = together
                .iter()
                .filter_map(|index| draft.exchanges().get(*index));
            let positions = exchanges.flat_map(|exchange| exchange.at.clone());
            let least: Tokens = positions.map(|at| least(draft, at)).sum();
            let freed = draft.drop_exchanges(&together);
            left = left.minus(match self {
                Self::Hopeless => least,
                Self::Oldest => freed,
            });
        }
    }
}

/// What an item weighs at least, whatever is cut from it.
fn least(draft: &Draft<'_>, at: usize) -> Tokens {
    match draft.current(at) {
        None => Tokens::ZERO,
        Some((Message::ToolResult(_) | Message::User { .. }, weight)) => {
            weight.min(MESSAGE_OVERHEAD)
        }
        Some((_, weight)) => weight,
    }
}
