//! Grants, meters and ledger: the sums are right however they end.

use super::*;
use plimsoll_agent::Cost;
use plimsoll_context::Usage;

fn limits(tokens: u64) -> ExecutionLimits {
    ExecutionLimits {
        max_total_tokens: Some(Tokens(tokens)),
        ..ExecutionLimits::default()
    }
}

fn spend(tokens: u64, money: u64) -> Spend {
    Spend {
        usage: Usage {
            input: Tokens(tokens),
            ..Usage::default()
        },
        cost: Cost::of(Some(Money(money))),
        turns: 1,
        ..Spend::default()
    }
}

#[tokio::test]
async fn a_grant_is_settled_however_it_ends() {
    let all = Allowance::new(&limits(1_000));
    let reserve = || all.reserve_part(wanted(&limits(400)), None, 1).unwrap();
    // Panics.
    let grant = reserve();
    let died = tokio::spawn(async move {
        grant.meter().add(&spend(100, 7));
        panic!("out of rum");
    });
    assert!(died.await.is_err());
    // Is cancelled.
    let grant = reserve();
    let (began, begins) = tokio::sync::oneshot::channel();
    let hangs = tokio::spawn(async move {
        grant.meter().add(&spend(50, 1));
        began.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    begins.await.unwrap();
    assert_eq!(all.left().tokens, Some(1_000 - 100 - 400));
    hangs.abort();
    assert!(hangs.await.is_err());
    // Times out.
    let grant = reserve();
    let late = async move {
        grant.meter().add(&spend(30, 0));
        std::future::pending::<()>().await;
    };
    assert!(tokio::time::timeout(Duration::ZERO, late).await.is_err());
    assert_eq!((all.used().tokens, all.left().tokens), (180, Some(820)));
    assert_eq!(all.reserved(), UsedAmounts::default());
    assert_eq!(all.meter().total().cost.known, Money(8));
}

#[test]
fn a_meter_is_read_live_at_every_floor() {
    let all = Allowance::new(&ExecutionLimits::default());
    let call = all.for_call();
    let grant = call.reserve(&limits(10_000)).unwrap();
    let below = grant.for_call();
    let grandchild = below.reserve(&limits(5_000)).unwrap();
    grandchild.meter().add(&spend(10, 1));
    grant.meter().add(&spend(3, 0));
    below.meter().add(&spend(2, 0));
    let read = |allowance: &Allowance| allowance.meter().total().usage.total_tokens().0;
    assert_eq!((read(&grandchild), read(&below)), (10, 12));
    assert_eq!((read(&grant), read(&call), read(&all)), (15, 15, 15));
    // Another call of the same run has a meter of its own.
    assert_eq!(read(&all.for_call()), 0);
    assert_eq!(grant.used().tokens, 5);
    drop(grandchild);
    assert_eq!(grant.used().tokens, 15);
    drop(grant);
    assert_eq!((all.used().tokens, read(&all)), (15, 15));
}

#[test]
fn a_grant_tightens_limits_and_never_loosens_them() {
    let all = Allowance::new(&ExecutionLimits {
        max_cost: Some(Money(9)),
        max_tool_calls: Some(4),
        ..limits(1_000)
    });
    let grant = all.reserve(&ExecutionLimits::turns(7)).unwrap();
    let own = ExecutionLimits {
        count_tokens: Some(CountTokens::Growth),
        max_tool_calls: Some(2),
        ..ExecutionLimits::turns(20)
    };
    let within = grant.within(&own);
    assert_eq!(within.max_total_tokens, Some(Tokens(1_000)));
    assert_eq!(within.count_tokens, Some(CountTokens::Processed));
    assert_eq!(
        (within.max_turns, within.max_tool_calls),
        (Some(7), Some(2))
    );
    assert_eq!(within.max_cost, Some(Money(9)));
    assert!(within.max_duration.unwrap() <= ExecutionLimits::standard().max_duration.unwrap());
    let free = Allowance::of(Limit::default(), None);
    assert_eq!(free.within(&own), own);
}

#[tokio::test(start_paused = true)]
async fn time_is_not_shared_out_but_ends_for_all() {
    let all = Allowance::new(&ExecutionLimits {
        max_duration: Some(Duration::from_secs(60)),
        ..ExecutionLimits::turns(100)
    });
    let long = ExecutionLimits {
        max_duration: Some(Duration::from_secs(600)),
        ..ExecutionLimits::turns(10)
    };
    let grant = all.reserve(&long).unwrap();
    assert_eq!(grant.until(), all.until());
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(all.reserve(&long).unwrap_err(), NothingLeft::Time);
    assert_eq!(grant.reserve(&long).unwrap_err(), NothingLeft::Time);
}

#[test]
fn a_run_is_booked_once_and_keeps_what_it_needs() {
    let limits = ExecutionLimits {
        max_tool_calls: Some(10),
        ..limits(10_000)
    };
    let mut ledger = BudgetLedger::of_run(&limits, None);
    let own = OwnUsage {
        spend: spend(1_000, 5),
        tokens: Tokens(900),
        keeps_tokens: Tokens(2_000),
        keeps_turns: 49,
        keeps_tool_calls: 1,
        ..OwnUsage::default()
    };
    ledger.book(&own);
    ledger.book(&own);
    let call = ledger.for_call(None);
    let left = call.left();
    assert_eq!(left.tokens, Some(10_000 - 900 - 2_000));
    assert_eq!(left.tool_calls, Some(9));
    assert_eq!(left.turns, Some(MAX_TURNS_BELOW));
    let grant = call.reserve(&self::limits(50_000)).unwrap();
    assert_eq!(grant.limit().tokens, Some(7_100));
    assert_eq!(
        call.reserve(&limits).unwrap_err().to_string(),
        "no tokens are left"
    );
    assert_eq!(call.at_work(), 1);
}
