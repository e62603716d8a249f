//! [`Evict`]: the oldest exchanges leave the view. It drops whole exchanges only and never one of
//! the protected set. What it drops stays in the log.

use crate::budget::Budget;
use crate::counter::MESSAGE_OVERHEAD;
use crate::draft::Draft;
use crate::message::Message;
use crate::plan::Trigger;
use crate::stage::Stage;
use crate::tokens::Tokens;

/// Drops the oldest exchanges, whole, until the view is at its target.
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
        let mut left: Tokens = match self {
            Self::Hopeless => (0..draft.items().len()).map(|at| least(draft, at)).sum(),
            Self::Oldest => draft.tokens(),
        };
        for index in 0..draft.exchanges().len() {
            if left <= budget.target {
                return;
            }
            let Some(at) = draft.exchanges().get(index).map(|found| found.at.clone()) else {
                return;
            };
            let least: Tokens = at.map(|at| least(draft, at)).sum();
            let freed = draft.drop_exchange(index);
            left = left.minus(match self {
                Self::Hopeless if freed > Tokens::ZERO => least,
                _ => freed,
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
