//! The arithmetic of shared limits, by example and for random trees.

use super::*;
use proptest::prelude::*;

fn all(amount: u64) -> UsedAmounts {
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

fn used(tokens: u64) -> UsedAmounts {
    Amounts {
        tokens,
        ..UsedAmounts::default()
    }
}

fn left(tree: &Tree, node: NodeId) -> Option<u64> {
    tree.ledger(node).unwrap().left().tokens
}

#[test]
fn what_is_reserved_is_gone_at_once_and_what_was_not_used_comes_back() {
    let (mut tree, root) = Tree::new(tokens(100));
    let one = tree.reserve(root, tokens(60), 1).unwrap();
    assert_eq!((left(&tree, root), left(&tree, one)), (Some(40), Some(60)));
    // The second wants more than is left.
    let two = tree.reserve(root, tokens(60), 1).unwrap();
    assert_eq!((left(&tree, root), left(&tree, two)), (Some(0), Some(40)));
    assert_eq!(
        tree.reserve(root, tokens(1), 1),
        Err(ReserveError::UsedUp(AllowanceKind::Tokens))
    );
    tree.spend(one, used(10));
    assert_eq!((left(&tree, root), left(&tree, one)), (Some(0), Some(50)));
    tree.settle(one);
    assert_eq!(left(&tree, root), Some(50));
    tree.settle(two);
    assert_eq!(left(&tree, root), Some(90));
    assert_eq!(tree.reserve(one, tokens(1), 1), Err(ReserveError::Settled));
}

/// Usage beyond an agent's part comes out of its safety margin.
#[test]
fn a_last_answer_beyond_the_part_is_set_aside() {
    let (mut tree, root) = Tree::new(tokens(1_000));
    let one = tree.reserve_with_slack(root, tokens(400), 1).unwrap();
    assert_eq!(
        (left(&tree, root), left(&tree, one)),
        (Some(500), Some(400))
    );
    tree.spend(one, used(480));
    assert_eq!((left(&tree, root), left(&tree, one)), (Some(500), Some(0)));
    // If there is not enough for both, the part is smaller.
    let two = tree.reserve_with_slack(root, Limit::default(), 1).unwrap();
    assert_eq!((left(&tree, root), left(&tree, two)), (Some(0), Some(400)));
    tree.settle(one);
    tree.settle(two);
    assert_eq!(left(&tree, root), Some(520));
}

#[test]
fn what_is_not_asked_for_is_an_equal_share() {
    let (mut tree, root) = Tree::new(tokens(100));
    let shares: Vec<_> = (0..3)
        .map(|begun| {
            let node = tree.reserve(root, Limit::default(), 3 - begun).unwrap();
            left(&tree, node)
        })
        .collect();
    assert_eq!(shares, [Some(34), Some(33), Some(33)]);
    assert_eq!(left(&tree, root), Some(0));
}

#[test]
fn what_was_used_beyond_a_grant_is_missing_above_before_it_is_settled() {
    let (mut tree, root) = Tree::new(tokens(100));
    let one = tree.reserve(root, tokens(40), 1).unwrap();
    let below = tree.reserve(one, tokens(40), 1).unwrap();
    tree.spend(below, used(55));
    assert_eq!((left(&tree, one), left(&tree, root)), (Some(0), Some(45)));
    tree.settle(below);
    assert_eq!((left(&tree, one), left(&tree, root)), (Some(0), Some(45)));
    tree.settle(one);
    assert_eq!(left(&tree, root), Some(45));
}

#[test]
fn who_loses_its_parent_is_held_by_the_one_above() {
    let (mut tree, root) = Tree::new(tokens(100));
    let one = tree.reserve(root, tokens(50), 1).unwrap();
    let below = tree.reserve(one, tokens(20), 1).unwrap();
    tree.spend(one, used(5));
    tree.settle(one);
    assert_eq!(left(&tree, root), Some(75));
    tree.spend(below, used(7));
    tree.settle(below);
    assert_eq!(left(&tree, root), Some(88));
    // Settling twice does no harm.
    tree.settle(below);
    assert_eq!(left(&tree, root), Some(88));
}

#[test]
fn a_promise_is_not_given_away() {
    let (mut tree, root) = Tree::new(Limit {
        tool_calls: Some(5),
        ..Limit::default()
    });
    let promised = UsedAmounts {
        tool_calls: 2,
        ..UsedAmounts::default()
    };
    tree.meter(root, promised, promised);
    let one = tree.reserve(root, Limit::default(), 1).unwrap();
    assert_eq!(tree.ledger(one).unwrap().limit.tool_calls, Some(1));
    // An agent without tool calls can still answer.
    let two = tree.reserve(root, Limit::default(), 1).unwrap();
    assert_eq!(tree.ledger(two).unwrap().limit.tool_calls, Some(0));
    assert_eq!(tree.ledger(two).unwrap().limit.tokens, None);
}

#[test]
fn there_is_an_end_to_places() {
    let (mut tree, root) = Tree::new(Limit::default());
    for _ in 1..MAX_NODES {
        tree.reserve(root, Limit::default(), 1).unwrap();
    }
    assert_eq!(
        tree.reserve(root, Limit::default(), 1),
        Err(ReserveError::TooMany)
    );
}

#[derive(Debug, Clone)]
enum Op {
    Reserve(usize, [Option<u64>; 4], u64),
    /// Thousandths of the remaining amount.
    Spend(usize, u64),
    Promise(usize, u64),
    Settle(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let wanted = prop::array::uniform4(prop::option::of(0_u64..400));
    prop_oneof![
        3 => (any::<usize>(), wanted, 0_u64..5).prop_map(|(at, w, n)| Op::Reserve(at, w, n)),
        3 => (any::<usize>(), 0_u64..=1_000).prop_map(|(at, part)| Op::Spend(at, part)),
        1 => (any::<usize>(), 0_u64..=1_000).prop_map(|(at, part)| Op::Promise(at, part)),
        2 => any::<usize>().prop_map(Op::Settle),
    ]
}

/// Returns a share of the remaining amount, or of a thousand if there is no limit.
fn part(ledger: &Ledger, thousandths: u64) -> UsedAmounts {
    ledger
        .left()
        .map(|left| left.unwrap_or(1_000) * thousandths / 1_000)
}

fn sums_hold(tree: &Tree) {
    for (node, ledger) in &tree.nodes {
        let below = tree.nodes.values().filter(|l| l.parent == Some(*node));
        let held = below.fold(UsedAmounts::default(), |sum, below| sum.plus(below.held()));
        assert_eq!(ledger.reserved, held, "{node:?}");
        let taken = ledger.taken();
        ledger.limit.with(
            taken.with(ledger.left(), |taken, left| (taken, left)),
            |limit, (taken, left)| {
                let sum = limit.map(|_| taken + left.unwrap());
                assert_eq!(sum, limit, "{node:?}");
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
        let (mut tree, root) = Tree::new(limits(limit));
        let mut spent = UsedAmounts::default();
        for op in ops {
            let nodes: Vec<NodeId> = tree.nodes.keys().copied().collect();
            let at = |index: usize| nodes[index % nodes.len()];
            match op {
                Op::Reserve(index, wanted, shares) => {
                    let (above, wanted) = (at(index), limits(wanted));
                    let before = tree.ledger(above).unwrap().left();
                    if let Ok(node) = tree.reserve(above, wanted, shares) {
                        let got = tree.ledger(node).unwrap().limit;
                        let after = tree.ledger(above).unwrap().left();
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
                    let more = part(tree.ledger(at(index)).unwrap(), thousandths);
                    tree.spend(at(index), more);
                    spent = spent.plus(more);
                }
                Op::Promise(index, thousandths) => {
                    tree.meter(at(index), UsedAmounts::default(), UsedAmounts::default());
                    let promised = part(tree.ledger(at(index)).unwrap(), thousandths);
                    tree.meter(at(index), UsedAmounts::default(), promised);
                }
                Op::Settle(index) => tree.settle(at(index)),
            }
            sums_hold(&tree);
        }
        // Settle the remaining nodes in any order.
        let nodes: Vec<NodeId> = tree.nodes.keys().copied().collect();
        for node in nodes {
            tree.settle(node);
            sums_hold(&tree);
        }
        let root = *tree.ledger(root).unwrap();
        prop_assert_eq!(root.used(), spent);
        prop_assert_eq!(root.reserved, UsedAmounts::default());
        root.limit.with(spent, |limit, spent| assert!(limit.is_none_or(|limit| spent <= limit)));
    }

    /// The answer of a call may be larger than the remaining amount. The excess is recorded as
    /// well.
    #[test]
    fn overspending_is_booked_too(ops in prop::collection::vec((any::<usize>(), 0_u64..300, any::<bool>()), 0..60)) {
        let (mut tree, root) = Tree::new(all(1_000).map(Some));
        let mut spent = 0;
        for (index, amount, settles) in ops {
            let nodes: Vec<NodeId> = tree.nodes.keys().copied().collect();
            let node = nodes[index % nodes.len()];
            let _ = tree.reserve(node, all(amount).map(Some), 1);
            tree.spend(node, all(amount));
            spent += amount;
            if settles {
                tree.settle(node);
            }
            for (node, ledger) in &tree.nodes {
                let below = tree.nodes.values().filter(|l| l.parent == Some(*node));
                let held = below.fold(UsedAmounts::default(), |sum, below| sum.plus(below.held()));
                assert_eq!(ledger.reserved, held);
            }
        }
        let nodes: Vec<NodeId> = tree.nodes.keys().rev().copied().collect();
        for node in nodes {
            tree.settle(node);
        }
        prop_assert_eq!(tree.ledger(root).unwrap().used(), all(spent));
    }
}
