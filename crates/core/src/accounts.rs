//! [`Accounts`]: those of agents that share limits.
//!
//! For each account and each kind that is limited there: used + promised + set aside below + left =
//! limit. They have no clock and no lock.

use std::collections::BTreeMap;

use plimsoll_agent::{Amounts, LimitKind, Spend};

/// The maximum number of open accounts. Beyond it, nothing can be reserved.
pub(crate) const MAX_ACCOUNTS: usize = 1_024;

/// Used amounts.
pub(crate) type Used = Amounts;
/// Allowed amounts; `None` means no limit.
pub(crate) type Limit = Amounts<Option<u64>>;

/// The key of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccountId(u64);

/// The reason why nothing can be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NothingLeft {
    /// The amount is used up or reserved by others.
    #[error("no {0} are left")]
    Of(LimitKind),
    /// The time is over.
    #[error("no time is left")]
    Time,
    /// Too many reservations are open.
    #[error("too many agents are at work at once")]
    TooMany,
}

/// A tree of accounts.
#[derive(Debug)]
pub(crate) struct Accounts {
    accounts: BTreeMap<AccountId, Account>,
    next: u64,
}

/// One account.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    above: Option<AccountId>,
    /// A tool call, which shares all limits of the account above.
    is_call: bool,
    limit: Limit,
    /// Used by this account and by the settled ones below it.
    used: Used,
    /// The same in full, as it is reported.
    spent: Spend,
    /// Promised to this account itself, so it cannot be reserved.
    promised: Used,
}

/// Returns a kind that has nothing left and is needed to begin. An agent without tool calls can still
/// answer, so these do not count.
fn lacks(limit: &Limit) -> Option<LimitKind> {
    [
        (limit.tokens, LimitKind::Tokens),
        (limit.money, LimitKind::Cost),
        (limit.turns, LimitKind::Turns),
    ]
    .into_iter()
    .find_map(|(amount, kind)| (amount == Some(0)).then_some(kind))
}

impl Accounts {
    /// Creates accounts with a single account.
    pub(crate) fn new(limit: Limit) -> (Self, AccountId) {
        let root = AccountId(0);
        let account = Account {
            limit,
            ..Account::default()
        };
        let accounts = Self {
            accounts: BTreeMap::from([(root, account)]),
            next: 1,
        };
        (accounts, root)
    }

    /// Opens an account with `min(wanted, left)` of each kind. For a kind without a wanted amount, it
    /// gets one of `parts` equal parts of the remaining amount.
    pub(crate) fn reserve(
        &mut self,
        above: AccountId,
        wanted: Limit,
        parts: u64,
    ) -> Result<AccountId, NothingLeft> {
        if self.accounts.len() >= MAX_ACCOUNTS {
            return Err(NothingLeft::TooMany);
        }
        let limit = self.left(above).with(wanted, |left, wanted| match left {
            Some(left) => Some(wanted.unwrap_or(left.div_ceil(parts.max(1))).min(left)),
            None => wanted,
        });
        match lacks(&limit) {
            Some(kind) => Err(NothingLeft::Of(kind)),
            None => Ok(self.open(Account {
                above: Some(above),
                limit,
                ..Account::default()
            })),
        }
    }

    /// Opens an account for a tool call, which shares all limits of the account above.
    ///
    /// A run has at most as many of them as it may have tool calls at once.
    pub(crate) fn open_call(&mut self, above: AccountId) -> AccountId {
        self.open(Account {
            above: Some(above),
            is_call: true,
            ..Account::default()
        })
    }

    fn open(&mut self, account: Account) -> AccountId {
        let id = AccountId(self.next);
        self.next += 1;
        self.accounts.insert(id, account);
        id
    }

    /// Records additional usage of an account.
    pub(crate) fn spend(&mut self, id: AccountId, more: &Spend) {
        self.book(id, more, Used::from(more));
    }

    /// Records additional usage that the limits count as `counted`.
    pub(crate) fn book(&mut self, id: AccountId, more: &Spend, counted: Used) {
        if let Some(account) = self.accounts.get_mut(&id) {
            account.used = account.used.plus(counted);
            account.spent = account.spent.combine(*more);
        }
    }

    /// Replaces the amounts that are promised to an account itself.
    pub(crate) fn promise(&mut self, id: AccountId, promised: Used) {
        if let Some(account) = self.accounts.get_mut(&id) {
            account.promised = promised;
        }
    }

    /// Settles an account: adds its usage to the one above and releases the rest.
    ///
    /// The accounts below it move to the one above. The root cannot be settled.
    pub(crate) fn settle(&mut self, id: AccountId) {
        let Some(above) = self.accounts.get(&id).and_then(|account| account.above) else {
            return;
        };
        let Some(settled) = self.accounts.remove(&id) else {
            return;
        };
        for below in self.accounts.values_mut() {
            if below.above == Some(id) {
                below.above = Some(above);
            }
        }
        self.book(above, &settled.spent, settled.used);
    }

    /// Returns the limit of an account. Nothing is allowed for a settled one.
    pub(crate) fn limit(&self, id: AccountId) -> Limit {
        let account = self.accounts.get(&self.payer(id));
        account.map_or(Used::default().map(Some), |account| account.limit)
    }

    /// Returns the amounts that can still be reserved. Nothing is left of a settled account.
    pub(crate) fn left(&self, id: AccountId) -> Limit {
        let taken = self.taken().remove(&self.payer(id)).unwrap_or_default();
        self.limit(id)
            .with(taken, |limit, taken| Some(limit?.saturating_sub(taken)))
    }

    /// Returns the usage of an account and everything below it.
    pub(crate) fn spent(&self, id: AccountId) -> Spend {
        let sums = self.sums(|account| account.spent, |_, spent| spent, Spend::combine);
        sums.get(&id).copied().unwrap_or_default()
    }

    /// Returns the number of open reservations directly below an account, also by its tool calls.
    pub(crate) fn at_work(&self, id: AccountId) -> usize {
        let payer = self.payer(id);
        let open = self.accounts.values().filter(|account| !account.is_call);
        open.filter(|account| {
            account
                .above
                .is_some_and(|above| self.payer(above) == payer)
        })
        .count()
    }

    /// Returns the amounts that each account has used, promised and set aside for those below.
    fn taken(&self) -> BTreeMap<AccountId, Used> {
        self.sums(
            |account| account.used.plus(account.promised),
            |account, taken| {
                let part = account.limit.map(|limit| limit.unwrap_or(0));
                part.with(taken, u64::max)
            },
            Used::plus,
        )
    }

    /// Sums up a value for each account: its own one, and those that the accounts below pass up.
    fn sums<T: Copy>(
        &self,
        own: impl Fn(&Account) -> T,
        passes_up: impl Fn(&Account, T) -> T,
        plus: impl Fn(T, T) -> T,
    ) -> BTreeMap<AccountId, T> {
        let own = self
            .accounts
            .iter()
            .map(|(id, account)| (*id, own(account)));
        let mut sums: BTreeMap<AccountId, T> = own.collect();
        // An account is younger than the one above, so its own sum is complete.
        for (id, account) in self.accounts.iter().rev() {
            let up = sums.get(id).map(|sum| passes_up(account, *sum));
            let above = account.above.and_then(|above| sums.get_mut(&above));
            if let (Some(up), Some(above)) = (up, above) {
                *above = plus(*above, up);
            }
        }
        sums
    }

    /// Returns the account whose limits apply: for a tool call, that of its run.
    fn payer(&self, id: AccountId) -> AccountId {
        match self.accounts.get(&id) {
            Some(Account {
                is_call: true,
                above: Some(above),
                ..
            }) => self.payer(*above),
            _ => id,
        }
    }
}

#[cfg(test)]
mod tests;
