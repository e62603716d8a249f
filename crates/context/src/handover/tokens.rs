//! The remaining tokens of a selection.

/// The number of consecutive candidates that do not fit after which no further ones are counted.
const MISSES: u32 = 400;

/// The remaining tokens of the whole text and of the current share.
pub(crate) struct TokenBudget<'c> {
    pub(crate) counter: &'c dyn Fn(&str) -> u64,
    pub(crate) left: u64,
    /// The remaining tokens of the share.
    pub(crate) share: u64,
    misses: u32,
}

impl<'c> TokenBudget<'c> {
    pub(crate) fn new(left: u64, counter: &'c dyn Fn(&str) -> u64) -> Self {
        Self {
            counter,
            left,
            share: left,
            misses: 0,
        }
    }

    /// Starts a share of at most `tokens`.
    pub(crate) fn share(&mut self, tokens: u64) {
        self.share = tokens.min(self.left);
        self.misses = 0;
    }

    /// Spends tokens. Returns `false` if there are not enough.
    pub(crate) fn spend(&mut self, cost: u64) -> bool {
        let is_enough = cost <= self.share;
        let cost = if is_enough { cost } else { 0 };
        self.left -= cost;
        self.share -= cost;
        self.misses = if is_enough { 0 } else { self.misses + 1 };
        is_enough
    }

    /// Returns `true` if further candidates are not worth counting.
    pub(crate) fn is_spent(&self) -> bool {
        self.share == 0 || self.misses >= MISSES
    }

    pub(crate) fn count(&self, text: &str) -> u64 {
        (self.counter)(text)
    }
}
