//! [`HistoryLimit`]: a view of at most so many messages. It counts, it does not weigh; and it never
//! drops a part of an exchange or one of the protected set.

use crate::budget::{Budget, TARGET_OF_EXPLICIT};
use crate::draft::Draft;
use crate::plan::Trigger;
use crate::stage::Stage;
use crate::tokens::Tokens;

/// Drops the oldest exchanges, whole, once the view has more than so many messages, until it has
/// 0.70 of them: a view that lost one message a turn would lose the provider's cache each turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimit(
    /// Messages, at most, as far as the protected set allows.
    pub usize,
);

impl Stage for HistoryLimit {
    fn name(&self) -> &str {
        "history"
    }

    fn propose(&self, draft: &mut Draft<'_>, _budget: &Budget, _why: Trigger) {
        let mut left = draft.items().len();
        if left <= self.0 {
            return;
        }
        let most = Tokens(self.0 as u64).share(TARGET_OF_EXPLICIT).0.max(1);
        for index in 0..draft.exchanges().len() {
            if left as u64 <= most {
                return;
            }
            let messages = draft
                .exchanges()
                .get(index)
                .map_or(0, |exchange| exchange.at.len());
            if draft.drop_exchange(index) > Tokens::ZERO {
                left -= messages;
            }
        }
    }
}
