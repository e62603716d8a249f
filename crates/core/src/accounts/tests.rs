//! The arithmetic of shared limits, by example and for random accounts.

use super::*;
use plimsoll_agent::Cost;
use plimsoll_context::{Money, Tokens, Usage};
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

fn used(tokens: u64) -> Spend {
    spend(Used {
        tokens,
        ..Used::default()
    })
}

fn spend(used: Used) -> Spend {
    let usage = Usage {
        input: Tokens(used.tokens),
        ..Usage::default()
    };
    Spend {
        usage,
        cost: Cost::of(Some(Money(used.money))),
        turns: used.turns,
        tool_calls: used.tool_calls,
        ..Spend::default()
    }
}

fn left(accounts: &Accounts, node: AccountId) -> Option<u64> {
    accounts.left(node).tokens
}

#[test]
fn what_is_reserved_is_gone_at_once_and_what_was_not_used_comes_back() {
    let (mut accounts, root) = Accounts::new(tokens(100));
    let one = accounts.reserve(root, tokens(60), 1).unwrap();
    assert_eq!(
        (left(&accounts, root), left(&accounts, one)),
        (Some(40), Some(60))
    );
    // The second wants more than is left.
    let two = accounts.reserve(root, tokens(60), 1).unwrap();
    assert_eq!(
        (left(&accounts, root), left(&accounts, two)),
        (Some(0), Some(40))
    );
    assert_eq!(
        accounts.reserve(root, tokens(1), 1),
        Err(NothingLeft::Of(LimitKind::Tokens))
    );
    accounts.spend(one, &used(10));
    assert_eq!(
        (left(&accounts, root), left(&accounts, one)),
        (Some(0), Some(50))
    );
    accounts.settle(one);
    assert_eq!(left(&accounts, root), Some(50));
    accounts.settle(two);
    assert_eq!(left(&accounts, root), Some(90));
    assert_eq!(
        accounts.reserve(one, tokens(1), 1),
        Err(NothingLeft::Of(LimitKind::Tokens))
    );
}

#[test]
fn what_is_not_asked_for_is_an_equal_share() {
    let (mut accounts, root) = Accounts::new(tokens(100));
    let shares: Vec<_> = (0..3)
        .map(|begun| {
            let node = accounts.reserve(root, Limit::default(), 3 - begun).unwrap();
            left(&accounts, node)
        })
        .collect();
    assert_eq!(shares, [Some(34), Some(33), Some(33)]);
    assert_eq!(left(&accounts, root), Some(0));
}

#[test]
fn what_was_used_beyond_a_grant_is_missing_above_before_it_is_settled() {
    let (mut accounts, root) = Accounts::new(tokens(100));
    let one = accounts.reserve(root, tokens(40), 1).unwrap();
    let below = accounts.reserve(one, tokens(40), 1).unwrap();
    accounts.spend(below, &used(55));
    assert_eq!(
        (left(&accounts, one), left(&accounts, root)),
        (Some(0), Some(45))
    );
    accounts.settle(below);
    assert_eq!(
        (left(&accounts, one), left(&accounts, root)),
        (Some(0), Some(45))
    );
    accounts.settle(one);
    assert_eq!(left(&accounts, root), Some(45));
}

#[test]
fn who_loses_its_parent_is_held_by_the_one_above() {
    let (mut accounts, root) = Accounts::new(tokens(100));
    let one = accounts.reserve(root, tokens(50), 1).unwrap();
    let below = accounts.reserve(one, tokens(20), 1).unwrap();
    accounts.spend(one, &used(5));
    accounts.settle(one);
    assert_eq!(left(&accounts, root), Some(75));
    accounts.spend(below, &used(7));
    accounts.settle(below);
    assert_eq!(left(&accounts, root), Some(88));
    // Settling twice does no harm.
    accounts.settle(below);
    assert_eq!(left(&accounts, root), Some(88));
}

#[test]
fn a_promise_is_not_given_away() {
    let (mut accounts, root) = Accounts::new(Limit {
        tool_calls: Some(5),
        ..Limit::default()
    });
    let promised = Used {
        tool_calls: 2,
        ..Used::default()
    };
    accounts.spend(root, &spend(promised));
    accounts.promise(root, promised);
    let one = accounts.reserve(root, Limit::default(), 1).unwrap();
    assert_eq!(accounts.limit(one).tool_calls, Some(1));
    // An agent without tool calls can still answer.
    let two = accounts.reserve(root, Limit::default(), 1).unwrap();
    assert_eq!(accounts.limit(two).tool_calls, Some(0));
    assert_eq!(accounts.limit(two).tokens, None);
}

#[test]
fn there_is_an_end_to_places() {
    let (mut accounts, root) = Accounts::new(Limit::default());
    for _ in 1..MAX_ACCOUNTS {
        accounts.reserve(root, Limit::default(), 1).unwrap();
    }
    assert_eq!(
        accounts.reserve(root, Limit::default(), 1),
        Err(NothingLeft::TooMany)
    );
}

#[derive(Debug, Clone)]
enum Op {
    Reserve(usize, [Option<u64>; 4], u64),
    /// Thousandths of the remaining amount.
    Spend(usize, u64),
    Promise(usize, u64),
    Call(usize),
    Settle(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let wanted = prop::array::uniform4(prop::option::of(0_u64..400));
    prop_oneof![
        3 => (any::<usize>(), wanted, 0_u64..5).prop_map(|(at, w, n)| Op::Reserve(at, w, n)),
        3 => (any::<usize>(), 0_u64..=1_000).prop_map(|(at, part)| Op::Spend(at, part)),
        1 => (any::<usize>(), 0_u64..=1_000).prop_map(|(at, part)| Op::Promise(at, part)),
        1 => any::<usize>().prop_map(Op::Call),
        2 => any::<usize>().prop_map(Op::Settle),
    ]
}

/// Returns a share of the remaining amount, or of a thousand if there is no limit.
fn part(accounts: &Accounts, id: AccountId, thousandths: u64) -> Used {
    let left = accounts.left(id);
    left.map(|left| left.unwrap_or(1_000) * thousandths / 1_000)
}

/// Returns what an account has used, promised and set aside, by its definition.
fn taken(accounts: &Accounts, id: AccountId) -> Used {
    let account = &accounts.accounts[&id];
    let below = accounts.accounts.iter();
    let below = below.filter(|(_, below)| below.above == Some(id));
    below.fold(account.used.plus(account.promised), |sum, (id, below)| {
        let part = below.limit.map(|limit| limit.unwrap_or(0));
        sum.plus(part.with(taken(accounts, *id), u64::max))
    })
}

fn sums_hold(accounts: &Accounts) {
    for (id, account) in &accounts.accounts {
        if account.is_call {
            assert_eq!(accounts.left(*id), accounts.left(account.above.unwrap()));
            continue;
        }
        let taken = taken(accounts, *id);
        account.limit.with(
            taken.with(accounts.left(*id), |taken, left| (taken, left)),
            |limit, (taken, left)| {
                let sum = limit.map(|_| taken + left.unwrap());
                assert_eq!(sum, limit, "{id:?}");
            },
        );
    }
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
        let (mut accounts, root) = Accounts::new(limits(limit));
        let mut spent = Used::default();
        for op in ops {
            let nodes: Vec<AccountId> = accounts.accounts.keys().copied().collect();
            let at = |index: usize| nodes[index % nodes.len()];
            match op {
                Op::Reserve(index, wanted, shares) => {
                    let (above, wanted) = (at(index), limits(wanted));
                    let before = accounts.left(above);
                    if let Ok(node) = accounts.reserve(above, wanted, shares) {
                        let got = accounts.limit(node);
                        let after = accounts.left(above);
                        got.with(wanted, |got, wanted| {
                            assert!(wanted.is_none_or(|wanted| got.is_some_and(|got| got <= wanted)));
                        });
                        got.with(before, |got, before| assert!(before.is_none() || got <= before));
                        // The amount is taken out at once.
                        before.with(got, |before, got| before.map(|before| before - got.unwrap()))
                            .with(after, |wanted, after| assert_eq!(wanted, after));
                    }
                }
                Op::Spend(index, thousandths) => {
                    let more = part(&accounts, at(index), thousandths);
                    accounts.spend(at(index), &spend(more));
                    spent = spent.plus(more);
                }
                Op::Promise(index, thousandths) => {
                    accounts.promise(at(index), Used::default());
                    let promised = part(&accounts, at(index), thousandths);
                    accounts.promise(at(index), promised);
                }
                Op::Call(index) => {
                    accounts.open_call(at(index));
                }
                Op::Settle(index) => accounts.settle(at(index)),
            }
            sums_hold(&accounts);
        }
        // Settle the remaining nodes in any order.
        let nodes: Vec<AccountId> = accounts.accounts.keys().copied().collect();
        for node in nodes {
            accounts.settle(node);
            sums_hold(&accounts);
        }
        prop_assert_eq!(accounts.accounts.len(), 1);
        prop_assert_eq!(Used::from(&accounts.spent(root)), spent);
        prop_assert_eq!(accounts.accounts[&root].used, spent);
        accounts.limit(root).with(spent, |limit, spent| assert!(limit.is_none_or(|limit| spent <= limit)));
    }

    /// The answer of a call may be larger than the remaining amount. The excess is recorded as
    /// well.
    #[test]
    fn overspending_is_booked_too(ops in prop::collection::vec((any::<usize>(), 0_u64..300, any::<bool>()), 0..60)) {
        let (mut accounts, root) = Accounts::new(all(1_000).map(Some));
        let mut spent = 0;
        for (index, amount, settles) in ops {
            let nodes: Vec<AccountId> = accounts.accounts.keys().copied().collect();
            let node = nodes[index % nodes.len()];
            let _ = accounts.reserve(node, all(amount).map(Some), 1);
            accounts.spend(node, &spend(all(amount)));
            spent += amount;
            if settles {
                accounts.settle(node);
            }
            prop_assert_eq!(Used::from(&accounts.spent(root)), all(spent));
        }
        let nodes: Vec<AccountId> = accounts.accounts.keys().rev().copied().collect();
        for node in nodes {
            accounts.settle(node);
        }
        prop_assert_eq!(accounts.accounts[&root].used, all(spent));
    }
}
