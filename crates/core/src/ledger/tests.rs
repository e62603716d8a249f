//! The arithmetic of shared limits, by example and for random ledgers.

use super::*;
use plimsoll_agent::Cost;
use plimsoll_context::Usage;
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

fn left(ledger: &Ledger, node: AccountId) -> Option<u64> {
    ledger.left(node).tokens
}

#[test]
fn what_is_reserved_is_gone_at_once_and_what_was_not_used_comes_back() {
    let (mut ledger, root) = Ledger::new(tokens(100));
    let one = ledger.reserve(root, tokens(60), 1).unwrap();
    assert_eq!(
        (left(&ledger, root), left(&ledger, one)),
        (Some(40), Some(60))
    );
    // The second wants more than is left.
    let two = ledger.reserve(root, tokens(60), 1).unwrap();
    assert_eq!(
        (left(&ledger, root), left(&ledger, two)),
        (Some(0), Some(40))
    );
    assert_eq!(
        ledger.reserve(root, tokens(1), 1),
        Err(NothingLeft::Of(LimitKind::Tokens))
    );
    ledger.spend(one, &used(10));
    assert_eq!(
        (left(&ledger, root), left(&ledger, one)),
        (Some(0), Some(50))
    );
    ledger.settle(one);
    assert_eq!(left(&ledger, root), Some(50));
    ledger.settle(two);
    assert_eq!(left(&ledger, root), Some(90));
    assert_eq!(
        ledger.reserve(one, tokens(1), 1),
        Err(NothingLeft::Of(LimitKind::Tokens))
    );
}

/// Usage beyond an agent's part comes out of its safety margin.
#[test]
fn a_last_answer_beyond_the_part_is_set_aside() {
    let (mut ledger, root) = Ledger::new(tokens(1_000));
    let one = ledger.reserve_with_slack(root, tokens(400), 1).unwrap();
    assert_eq!(
        (left(&ledger, root), left(&ledger, one)),
        (Some(500), Some(400))
    );
    ledger.spend(one, &used(480));
    assert_eq!(
        (left(&ledger, root), left(&ledger, one)),
        (Some(500), Some(0))
    );
    // If there is not enough for both, the part is smaller.
    let two = ledger
        .reserve_with_slack(root, Limit::default(), 1)
        .unwrap();
    assert_eq!(
        (left(&ledger, root), left(&ledger, two)),
        (Some(0), Some(400))
    );
    ledger.settle(one);
    ledger.settle(two);
    assert_eq!(left(&ledger, root), Some(520));
}

#[test]
fn what_is_not_asked_for_is_an_equal_share() {
    let (mut ledger, root) = Ledger::new(tokens(100));
    let shares: Vec<_> = (0..3)
        .map(|begun| {
            let node = ledger.reserve(root, Limit::default(), 3 - begun).unwrap();
            left(&ledger, node)
        })
        .collect();
    assert_eq!(shares, [Some(34), Some(33), Some(33)]);
    assert_eq!(left(&ledger, root), Some(0));
}

#[test]
fn what_was_used_beyond_a_grant_is_missing_above_before_it_is_settled() {
    let (mut ledger, root) = Ledger::new(tokens(100));
    let one = ledger.reserve(root, tokens(40), 1).unwrap();
    let below = ledger.reserve(one, tokens(40), 1).unwrap();
    ledger.spend(below, &used(55));
    assert_eq!(
        (left(&ledger, one), left(&ledger, root)),
        (Some(0), Some(45))
    );
    ledger.settle(below);
    assert_eq!(
        (left(&ledger, one), left(&ledger, root)),
        (Some(0), Some(45))
    );
    ledger.settle(one);
    assert_eq!(left(&ledger, root), Some(45));
}

#[test]
fn who_loses_its_parent_is_held_by_the_one_above() {
    let (mut ledger, root) = Ledger::new(tokens(100));
    let one = ledger.reserve(root, tokens(50), 1).unwrap();
    let below = ledger.reserve(one, tokens(20), 1).unwrap();
    ledger.spend(one, &used(5));
    ledger.settle(one);
    assert_eq!(left(&ledger, root), Some(75));
    ledger.spend(below, &used(7));
    ledger.settle(below);
    assert_eq!(left(&ledger, root), Some(88));
    // Settling twice does no harm.
    ledger.settle(below);
    assert_eq!(left(&ledger, root), Some(88));
}

#[test]
fn a_promise_is_not_given_away() {
    let (mut ledger, root) = Ledger::new(Limit {
        tool_calls: Some(5),
        ..Limit::default()
    });
    let promised = Used {
        tool_calls: 2,
        ..Used::default()
    };
    ledger.spend(root, &spend(promised));
    ledger.promise(root, promised);
    let one = ledger.reserve(root, Limit::default(), 1).unwrap();
    assert_eq!(ledger.limit(one).tool_calls, Some(1));
    // An agent without tool calls can still answer.
    let two = ledger.reserve(root, Limit::default(), 1).unwrap();
    assert_eq!(ledger.limit(two).tool_calls, Some(0));
    assert_eq!(ledger.limit(two).tokens, None);
}

#[test]
fn there_is_an_end_to_places() {
    let (mut ledger, root) = Ledger::new(Limit::default());
    for _ in 1..MAX_ACCOUNTS {
        ledger.reserve(root, Limit::default(), 1).unwrap();
    }
    assert_eq!(
        ledger.reserve(root, Limit::default(), 1),
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
fn part(ledger: &Ledger, id: AccountId, thousandths: u64) -> Used {
    let left = ledger.left(id);
    left.map(|left| left.unwrap_or(1_000) * thousandths / 1_000)
}

/// Returns what an account has used, promised and set aside, by its definition.
fn taken(ledger: &Ledger, id: AccountId) -> Used {
    let account = &ledger.accounts[&id];
    let below = ledger.accounts.iter();
    let below = below.filter(|(_, below)| below.above == Some(id));
    below.fold(account.used.plus(account.promised), |sum, (id, below)| {
        let part = below
            .limit
            .map(|limit| limit.unwrap_or(0))
            .plus(below.slack);
        sum.plus(part.with(taken(ledger, *id), u64::max))
    })
}

fn sums_hold(ledger: &Ledger) {
    for (id, account) in &ledger.accounts {
        if account.is_call {
            assert_eq!(ledger.left(*id), ledger.left(account.above.unwrap()));
            continue;
        }
        let taken = taken(ledger, *id);
        account.limit.with(
            taken.with(ledger.left(*id), |taken, left| (taken, left)),
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
        let (mut ledger, root) = Ledger::new(limits(limit));
        let mut spent = Used::default();
        for op in ops {
            let nodes: Vec<AccountId> = ledger.accounts.keys().copied().collect();
            let at = |index: usize| nodes[index % nodes.len()];
            match op {
                Op::Reserve(index, wanted, shares) => {
                    let (above, wanted) = (at(index), limits(wanted));
                    let before = ledger.left(above);
                    if let Ok(node) = ledger.reserve(above, wanted, shares) {
                        let got = ledger.limit(node);
                        let after = ledger.left(above);
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
                    let more = part(&ledger, at(index), thousandths);
                    ledger.spend(at(index), &spend(more));
                    spent = spent.plus(more);
                }
                Op::Promise(index, thousandths) => {
                    ledger.promise(at(index), Used::default());
                    let promised = part(&ledger, at(index), thousandths);
                    ledger.promise(at(index), promised);
                }
                Op::Call(index) => {
                    ledger.open_call(at(index));
                }
                Op::Settle(index) => ledger.settle(at(index)),
            }
            sums_hold(&ledger);
        }
        // Settle the remaining nodes in any order.
        let nodes: Vec<AccountId> = ledger.accounts.keys().copied().collect();
        for node in nodes {
            ledger.settle(node);
            sums_hold(&ledger);
        }
        prop_assert_eq!(ledger.accounts.len(), 1);
        prop_assert_eq!(Used::from(&ledger.spent(root)), spent);
        prop_assert_eq!(ledger.accounts[&root].used, spent);
        ledger.limit(root).with(spent, |limit, spent| assert!(limit.is_none_or(|limit| spent <= limit)));
    }

    /// The answer of a call may be larger than the remaining amount. The excess is recorded as
    /// well.
    #[test]
    fn overspending_is_booked_too(ops in prop::collection::vec((any::<usize>(), 0_u64..300, any::<bool>()), 0..60)) {
        let (mut ledger, root) = Ledger::new(all(1_000).map(Some));
        let mut spent = 0;
        for (index, amount, settles) in ops {
            let nodes: Vec<AccountId> = ledger.accounts.keys().copied().collect();
            let node = nodes[index % nodes.len()];
            let _ = ledger.reserve(node, all(amount).map(Some), 1);
            ledger.spend(node, &spend(all(amount)));
            spent += amount;
            if settles {
                ledger.settle(node);
            }
            prop_assert_eq!(Used::from(&ledger.spent(root)), all(spent));
        }
        let nodes: Vec<AccountId> = ledger.accounts.keys().rev().copied().collect();
        for node in nodes {
            ledger.settle(node);
        }
        prop_assert_eq!(ledger.accounts[&root].used, all(spent));
    }
}
