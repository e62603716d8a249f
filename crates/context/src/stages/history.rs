//! [`HistoryLimit`]: limits the number of messages in the view.

use crate::budget::{Budget, TARGET_OF_EXPLICIT};
use crate::draft::Draft;
use crate::exchange::{Exchange, ExchangeKind};
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::tokens::Tokens;

/// Removes the oldest turns once the view exceeds a number of messages, until it has 0.70 of that
/// number.
///
/// If a view lost one message on every turn, it would also lose the provider's cache on every turn.
/// Markers of gaps are not counted. Protected messages stay, even if they exceed the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimit(
    /// The maximum number of messages.
    pub usize,
);

impl Stage for HistoryLimit {
    fn name(&self) -> &str {
        "history"
    }

    fn is_limit(&self) -> bool {
        true
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        let is_message = |exchange: &&Exchange| exchange.kind != ExchangeKind::Gap;
        let exchanges = draft.exchanges().iter().filter(is_message);
        let mut left: usize = exchanges.map(|exchange| exchange.at.len()).sum();
        if left <= self.0 {
            return;
        }
        let most = Tokens(self.0 as u64).share(TARGET_OF_EXPLICIT).0.max(1);
        for together in draft.removable(budget.target) {
            if left as u64 <= most {
                return;
            }
            left -= draft.positions(&together).len();
            draft.drop_exchanges(&together);
        }
    }
}
