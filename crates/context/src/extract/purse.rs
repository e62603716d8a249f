//! What may still be spent. Not what it is spent on.

use crate::counter::TokenCounter;

/// So many candidates in a row that did not fit mean that there is no room: this bounds how much is
/// counted in vain.
const MISSES: u32 = 400;

/// Tokens left, of the whole and of the share that is being spent.
pub(super) struct Purse<'c> {
    counter: &'c dyn TokenCounter,
    left: u64,
    share: u64,
    misses: u32,
}

impl<'c> Purse<'c> {
    pub(super) fn new(left: u64, counter: &'c dyn TokenCounter) -> Self {
        Self {
            counter,
            left,
            share: left,
            misses: 0,
        }
    }

    /// Begins to spend at most `tokens`, of which never more than is left.
    pub(super) fn share(&mut self, tokens: u64) {
        self.share = tokens.min(self.left);
        self.misses = 0;
    }

    /// What is left of the share.
    pub(super) fn of_share(&self) -> u64 {
        self.share
    }

    /// What is left of the whole.
    pub(super) fn in_all(&self) -> u64 {
        self.left
    }

    /// Pays for `text`, or says no.
    pub(super) fn pay(&mut self, text: &str) -> bool {
        self.pay_tokens(self.weigh(text))
    }

    pub(super) fn pay_tokens(&mut self, cost: u64) -> bool {
        let (Some(left), Some(share)) = (self.left.checked_sub(cost), self.share.checked_sub(cost))
        else {
            self.misses += 1;
            return false;
        };
        self.misses = 0;
        (self.left, self.share) = (left, share);
        true
    }

    /// Whether another candidate is worth counting.
    pub(super) fn is_spent(&self) -> bool {
        self.share == 0 || self.misses >= MISSES
    }

    pub(super) fn weigh(&self, text: &str) -> u64 {
        self.counter.text(text).0
    }
}
