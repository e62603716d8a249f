//! The arithmetic of shared limits, by example and for random accounts.

use super::*;
use proptest::prelude::*;

fn all(amount: u64) -> Used {
    Amounts {
        tokens: amount,
        money: amount,
        turns: amount,
        tool_calls: amount,
    }
}

fn tokens(amount: u64) -> Limit {
    Amounts {
        tokens: Some(amount),
        ..Limit::default()
    }
}

fn spend(account: &Account, more: Used) {
    account.change(|books| books.used = books.used.plus(more));
}

fn promise(account: &Account, promised: Used) {
    account.change(|books| books.promised = promised);
}

fn use_tokens(account: &Account, tokens: u64) {
    let used = Used {
        tokens,
        ..Used::default()
    };
    spend(account, used);
}

fn left(account: &Account) -> Option<u64> {
    account.left().tokens
}

#[test]
fn what_is_reserved_is_gone_at_once_and_what_was_not_used_comes_back() {
    let root = Account::new(tokens(100));
    let one = root.open(tokens(60), 1).unwrap();
    assert_eq!((left(&root), left(&one)), (Some(40), Some(60)));
    // The second wants more than is left.
    let two = root.open(tokens(60), 1).unwrap();
    assert_eq!((left(&root), left(&two)), (Some(0), Some(40)));
    let nothing = NothingLeft::Of(LimitKind::MaxTokens);
    assert_eq!(root.open(tokens(1), 1).unwrap_err(), nothing);
    use_tokens(&one, 10);
    assert_eq!((left(&root), left(&one)), (Some(0), Some(50)));
    assert_eq!(root.at_work(), 2);
    drop(one);
    assert_eq!(left(&root), Some(50));
    drop(two);
    assert_eq!((left(&root), root.at_work()), (Some(90), 0));
}

#[test]
fn what_is_not_asked_for_is_an_equal_share() {
    let root = Account::new(tokens(100));
    let parts = (0..3).map(|begun| root.open(Limit::default(), 3 - begun).unwrap());
    let parts: Vec<_> = parts.collect();
    let shares: Vec<_> = parts.iter().map(|part| left(part)).collect();
    assert_eq!(shares, [Some(34), Some(33), Some(33)]);
    assert_eq!(left(&root), Some(0));
}

#[test]
fn what_was_used_beyond_a_grant_is_missing_above_at_once() {
    let root = Account::new(tokens(100));
    let one = root.open(tokens(40), 1).unwrap();
    let below = one.open(tokens(40), 1).unwrap();
    use_tokens(&below, 55);
    assert_eq!((left(&one), left(&root)), (Some(0), Some(45)));
    drop(below);
    assert_eq!((left(&one), left(&root)), (Some(0), Some(45)));
    drop(one);
    assert_eq!(left(&root), Some(45));
}

#[test]
fn an_account_is_open_until_those_below_it_are_closed() {
    let root = Account::new(tokens(100));
    let one = root.open(tokens(50), 1).unwrap();
    let below = one.open(tokens(20), 1).unwrap();
    use_tokens(&one, 5);
    drop(one);
    assert_eq!(left(&root), Some(50));
    use_tokens(&below, 7);
    drop(below);
    assert_eq!(left(&root), Some(88));
}

#[test]
fn a_promise_is_not_given_away() {
    let root = Account::new(Limit {
        tool_calls: Some(5),
        ..Limit::default()
    });
    let two_calls = Used {
        tool_calls: 2,
        ..Used::default()
    };
    spend(&root, two_calls);
    promise(&root, two_calls);
    let one = root.open(Limit::default(), 1).unwrap();
    assert_eq!(one.limit().tool_calls, Some(1));
    // An agent without tool calls can still answer.
    let two = root.open(Limit::default(), 1).unwrap();
    assert_eq!(two.limit().tool_calls, Some(0));
    assert_eq!(two.limit().tokens, None);
}

#[derive(Debug, Clone)]
enum Op {
    Reserve(usize, [Option<u64>; 4], u64),
    /// Thousandths of the remaining amount.
    Spend(usize, u64),
    Promise(usize, u64),
    Close(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let wanted = prop::array::uniform4(prop::option::of(0_u64..400));
    prop_oneof![
        3 => (any::<usize>(), wanted, 0_u64..5).prop_map(|(at, w, n)| Op::Reserve(at, w, n)),
        3 => (any::<usize>(), 0_u64..=1_000).prop_map(|(at, part)| Op::Spend(at, part)),
        1 => (any::<usize>(), 0_u64..=1_000).prop_map(|(at, part)| Op::Promise(at, part)),
        2 => any::<usize>().prop_map(Op::Close),
    ]
}

/// Returns a share of the remaining amount, or of a thousand if there is no limit.
fn part(account: &Account, thousandths: u64) -> Used {
    let left = account.left();
    left.map(|left| left.unwrap_or(1_000) * thousandths / 1_000)
}

/// Checks the sum of each kind, and what is held for the accounts below. Accounts that only their
/// children keep open are among `all` too.
fn sums_hold(all: &[Arc<Account>]) {
    for account in all {
        let books = *lock(&account.books);
        let is_above = |other: &&Arc<Account>| {
            let above = other.above.as_ref();
            above.is_some_and(|above| Arc::ptr_eq(above, account))
        };
        let below: Vec<&Arc<Account>> = all.iter().filter(is_above).collect();
        let held = below.iter().map(|below| below.held(&lock(&below.books)));
        assert_eq!(books.below, held.fold(Used::default(), Used::plus));
        assert_eq!(books.open, below.len());
        let sums = books
            .taken()
            .with(account.left(), |taken, left| (taken, left));
        account.limit.with(sums, |limit, (taken, left)| {
            assert_eq!(limit.map(|_| taken + left.unwrap()), limit);
        });
    }
}

/// Returns the open accounts: those of the handles, and those above them.
fn open(handles: &[Arc<Account>]) -> Vec<Arc<Account>> {
    let mut all: Vec<Arc<Account>> = Vec::new();
    for handle in handles {
        let mut next = Some(handle);
        while let Some(account) = next {
            if !all.iter().any(|other| Arc::ptr_eq(other, account)) {
                all.push(Arc::clone(account));
            }
            next = account.above.as_ref();
        }
    }
    all
}

proptest! {
    #[test]
    fn nothing_leaks_and_nobody_spends_more_than_the_root_has(
        limit in prop::array::uniform4(prop::option::of(1_u64..2_000)),
        ops in prop::collection::vec(op(), 0..60),
    ) {
        let limits = |[tokens, money, turns, tool_calls]: [Option<u64>; 4]| Limit {
            tokens, money, turns, tool_calls,
        };
        let root = Account::new(limits(limit));
        let mut handles = vec![Arc::clone(&root)];
        let mut spent = Used::default();
        for op in ops {
            let len = handles.len();
            match op {
                Op::Reserve(index, wanted, shares) => {
                    let (above, wanted) = (Arc::clone(&handles[index % len]), limits(wanted));
                    let before = above.left();
                    if let Ok(account) = above.open(wanted, shares) {
                        let (got, after) = (account.limit(), above.left());
                        got.with(wanted, |got, wanted| {
                            assert!(wanted.is_none_or(|wanted| got.is_some_and(|got| got <= wanted)));
                        });
                        got.with(before, |got, before| assert!(before.is_none() || got <= before));
                        // The amount is taken out at once.
                        before.with(got, |before, got| before.map(|before| before - got.unwrap()))
                            .with(after, |wanted, after| assert_eq!(wanted, after));
                        handles.push(account);
                    }
                }
                Op::Spend(index, thousandths) => {
                    let more = part(&handles[index % len], thousandths);
                    spend(&handles[index % len], more);
                    spent = spent.plus(more);
                }
                Op::Promise(index, thousandths) => {
                    let account = &handles[index % len];
                    promise(account, Used::default());
                    promise(account, part(account, thousandths));
                }
                Op::Close(index) if index % len > 0 => drop(handles.swap_remove(index % len)),
                Op::Close(_) => {}
            }
            sums_hold(&open(&handles));
        }
        // Close the others in any order.
        while handles.len() > 1 {
            handles.pop();
            sums_hold(&open(&handles));
        }
        prop_assert_eq!(lock(&root.books).used, spent);
        root.limit.with(spent, |limit, spent| assert!(limit.is_none_or(|limit| spent <= limit)));
    }

    /// The answer of a call may be larger than the remaining amount. The excess is recorded as
    /// well.
    #[test]
    fn overspending_is_booked_too(ops in prop::collection::vec((any::<usize>(), 0_u64..300, any::<bool>()), 0..60)) {
        let root = Account::new(all(1_000).map(Some));
        let mut handles = vec![Arc::clone(&root)];
        let mut spent = 0;
        for (index, amount, closes) in ops {
            let at = index % handles.len();
            handles.extend(handles[at].open(all(amount).map(Some), 1).ok());
            spend(&handles[at], all(amount));
            spent += amount;
            if closes && at > 0 {
                handles.swap_remove(at);
            }
        }
        drop(handles);
        prop_assert_eq!(lock(&root.books).used, all(spent));
    }
}
