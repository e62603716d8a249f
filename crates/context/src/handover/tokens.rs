//! The remaining tokens of a selection.

/// The number of consecutive candidates that do not fit after which no further ones are counted.
const MISSES: u32 = 400;

/// The remaining tokens of the whole text and of the current share.
pub(crate) struct TokenBudget<'c> {
    count: &'c dyn Fn(&str) -> u64,
    left: u64,
    share: u64,
    misses: u32,
}

impl<'c> TokenBudget<'c> {
    pub(crate) fn new(left: u64, count: &'c dyn Fn(&str) -> u64) -> Self {
        Self {
            count,
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

    /// Returns spent tokens.
    pub(crate) fn give_back(&mut self, tokens: u64) {
        self.left += tokens;
    }

    /// Returns the function that counts tokens.
    pub(crate) fn counter(&self) -> &'c dyn Fn(&str) -> u64 {
        self.count
    }

    /// Returns the remaining tokens of the share.
    pub(crate) fn left_of_share(&self) -> u64 {
        self.share
    }

    /// Returns the remaining tokens of the whole text.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Spends the tokens of `text`. Returns `false` if there are not enough.
    pub(crate) fn spend(&mut self, text: &str) -> bool {
        self.spend_tokens(self.count(text))
    }

    pub(crate) fn spend_tokens(&mut self, cost: u64) -> bool {
        let (Some(left), Some(share)) = (self.left.checked_sub(cost), self.share.checked_sub(cost))
        else {
            self.misses += 1;
            return false;
        };
        self.misses = 0;
        (self.left, self.share) = (left, share);
        true
    }

    /// Returns `true` if further candidates are not worth counting.
    pub(crate) fn is_spent(&self) -> bool {
        self.share == 0 || self.misses >= MISSES
    }

    pub(crate) fn count(&self, text: &str) -> u64 {
        (self.count)(text)
    }
}
