//! The arithmetic of shared limits, by example and for random accounts.

use super::*;
use plimsoll_context::{Money, Tokens};
use proptest::prelude::*;

type Amounts = [u64; SHARED.len()];
type Limits = [Option<u64>; SHARED.len()];

/// Returns limits on tokens, money, turns and tool calls.
fn limits([tokens, money, max_turns, max_tool_calls]: Limits) -> ExecutionLimits {
    ExecutionLimits {
        max_total_tokens: tokens.map(Tokens),
        max_cost: money.map(Money),
        max_turns,
        max_tool_calls,
        ..ExecutionLimits::default()
    }
}

fn tokens(amount: u64) -> ExecutionLimits {
    limits([Some(amount), None, None, None])
}

/// Changes each book by the amount of its kind.
fn change(account: &Account, amounts: Amounts, change: fn(&mut Book, u64)) {
    let of = |book: &Book| SHARED.iter().position(|kind| *kind == book.kind);
    account.change(|book| change(book, amounts[of(book).unwrap()]));
}

fn spend(account: &Account, more: Amounts) {
    change(account, more, |book, more| book.used += more);
}

fn promise(account: &Account, promised: Amounts) {
    change(account, promised, |book, promised| book.promised = promised);
}

fn use_tokens(account: &Account, tokens: u64) {
    spend(account, [tokens, 0, 0, 0]);
}

fn left(account: &Account) -> Option<u64> {
    account.left(LimitKind::MaxTokens)
}

fn all_left(account: &Account) -> Limits {
    SHARED.map(|kind| account.left(kind))
}

fn all_limits(account: &Account) -> Limits {
    SHARED.map(|kind| account.limit(kind))
}

fn used(account: &Account) -> Amounts {
    lock(&account.books).books.map(|book| book.used)
}

fn sum(one: Amounts, other: Amounts) -> Amounts {
    std::array::from_fn(|at| one[at] + other[at])
}

#[test]
fn what_is_reserved_is_gone_at_once_and_what_was_not_used_comes_back() {
    let root = Account::new(&tokens(100));
    let one = root.open(&tokens(60), 1).unwrap();
    assert_eq!((left(&root), left(&one)), (Some(40), Some(60)));
    // The second wants more than is left.
    let two = root.open(&tokens(60), 1).unwrap();
    assert_eq!((left(&root), left(&two)), (Some(0), Some(40)));
    let nothing = NothingLeft::Of(LimitKind::MaxTokens);
    assert_eq!(root.open(&tokens(1), 1).unwrap_err(), nothing);
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
    let root = Account::new(&tokens(100));
    let parts = (0..3).map(|begun| root.open(&ExecutionLimits::default(), 3 - begun).unwrap());
    let parts: Vec<_> = parts.collect();
    let shares: Vec<_> = parts.iter().map(|part| left(part)).collect();
    assert_eq!(shares, [Some(34), Some(33), Some(33)]);
    assert_eq!(left(&root), Some(0));
}

#[test]
fn what_was_used_beyond_a_grant_is_missing_above_at_once() {
    let root = Account::new(&tokens(100));
    let one = root.open(&tokens(40), 1).unwrap();
    let below = one.open(&tokens(40), 1).unwrap();
    use_tokens(&below, 55);
    assert_eq!((left(&one), left(&root)), (Some(0), Some(45)));
    drop(below);
    assert_eq!((left(&one), left(&root)), (Some(0), Some(45)));
    drop(one);
    assert_eq!(left(&root), Some(45));
}

#[test]
fn an_account_is_open_until_those_below_it_are_closed() {
    let root = Account::new(&tokens(100));
    let one = root.open(&tokens(50), 1).unwrap();
    let below = one.open(&tokens(20), 1).unwrap();
    use_tokens(&one, 5);
    drop(one);
    assert_eq!(left(&root), Some(50));
    use_tokens(&below, 7);
    drop(below);
    assert_eq!(left(&root), Some(88));
}

#[test]
fn a_promise_is_not_given_away() {
    let root = Account::new(&limits([None, None, None, Some(5)]));
    let two_calls = [0, 0, 0, 2];
    spend(&root, two_calls);
    promise(&root, two_calls);
    let one = root.open(&ExecutionLimits::default(), 1).unwrap();
    assert_eq!(one.limit(LimitKind::ToolLimit), Some(1));
    // An agent without tool calls can still answer.
    let two = root.open(&ExecutionLimits::default(), 1).unwrap();
    assert_eq!(two.limit(LimitKind::ToolLimit), Some(0));
    assert_eq!(two.limit(LimitKind::MaxTokens), None);
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
fn part(account: &Account, thousandths: u64) -> Amounts {
    all_left(account).map(|left| left.unwrap_or(1_000) * thousandths / 1_000)
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
        let held = below.iter().map(|below| lock(&below.books).books);
        let held = held.map(|books| books.map(|book| book.held()));
        let held = held.fold(Amounts::default(), sum);
        assert_eq!(books.books.map(|book| book.below), held);
        assert_eq!(books.open, below.len());
        for book in books.books {
            let sum = book.left().map(|left| book.taken() + left);
            assert_eq!(sum, book.limit);
        }
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
        let root = Account::new(&limits(limit));
        let mut handles = vec![Arc::clone(&root)];
        let mut spent = Amounts::default();
        for op in ops {
            let len = handles.len();
            match op {
                Op::Reserve(index, wanted, shares) => {
                    let above = Arc::clone(&handles[index % len]);
                    let before = all_left(&above);
                    if let Ok(account) = above.open(&limits(wanted), shares) {
                        let (got, after) = (all_limits(&account), all_left(&above));
                        for (at, (got, before)) in got.into_iter().zip(before).enumerate() {
                            assert!(wanted[at].is_none_or(|wanted| got.is_some_and(|got| got <= wanted)));
                            assert!(before.is_none() || got <= before);
                            // The amount is taken out at once.
                            let rest = before.map(|before| before - got.unwrap());
                            assert_eq!(rest, after[at]);
                        }
                        handles.push(account);
                    }
                }
                Op::Spend(index, thousandths) => {
                    let more = part(&handles[index % len], thousandths);
                    spend(&handles[index % len], more);
                    spent = sum(spent, more);
                }
                Op::Promise(index, thousandths) => {
                    let account = &handles[index % len];
                    promise(account, Amounts::default());
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
        prop_assert_eq!(used(&root), spent);
        for (limit, spent) in limit.into_iter().zip(spent) {
            assert!(limit.is_none_or(|limit| spent <= limit));
        }
    }

    /// The answer of a call may be larger than the remaining amount. The excess is recorded as
    /// well.
    #[test]
    fn overspending_is_booked_too(ops in prop::collection::vec((any::<usize>(), 0_u64..300, any::<bool>()), 0..60)) {
        let all = |amount| limits([Some(amount); SHARED.len()]);
        let root = Account::new(&all(1_000));
        let mut handles = vec![Arc::clone(&root)];
        let mut spent = 0;
        for (index, amount, closes) in ops {
            let at = index % handles.len();
            handles.extend(handles[at].open(&all(amount), 1).ok());
            spend(&handles[at], [amount; SHARED.len()]);
            spent += amount;
            if closes && at > 0 {
                handles.swap_remove(at);
            }
        }
        drop(handles);
        prop_assert_eq!(used(&root), [spent; SHARED.len()]);
    }
}
