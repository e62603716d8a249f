//! [`Evict`]: the oldest exchanges leave the view. It drops whole exchanges only and never one of
//! the protected set.

use crate::budget::Budget;
use crate::draft::Draft;
use crate::plan::Trigger;
use crate::stage::Stage;

/// Drops the oldest exchanges, whole, until the view is at its target. What it drops stays in
/// the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evict;

impl Stage for Evict {
    fn name(&self) -> &str {
        "evict"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        if draft.tokens() <= budget.trigger {
            return;
        }
        for index in 0..draft.exchanges().len() {
            if draft.tokens() <= budget.target {
                return;
            }
            draft.drop_exchange(index);
        }
    }
}
