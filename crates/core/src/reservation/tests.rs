//! Reservations: the sums are right however they end.

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
    let all = Reservation::new(&limits(1_000));
    let reserve = || all.reserve(&limits(400)).unwrap();
    // Panics.
    let grant = reserve();
    let died = tokio::spawn(async move {
        grant.spend(&spend(100, 7));
        panic!("out of rum");
    });
    assert!(died.await.is_err());
    // Is cancelled.
    let grant = reserve();
    let (began, begins) = tokio::sync::oneshot::channel();
    let hangs = tokio::spawn(async move {
        grant.spend(&spend(50, 1));
        began.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    begins.await.unwrap();
    assert_eq!(all.left().max_total_tokens, Some(Tokens(1_000 - 100 - 400)));
    hangs.abort();
    assert!(hangs.await.is_err());
    // Times out.
    let grant = reserve();
    let late = async move {
        grant.spend(&spend(30, 0));
        std::future::pending::<()>().await;
    };
    assert!(tokio::time::timeout(Duration::ZERO, late).await.is_err());
    assert_eq!(all.spent().usage.total_tokens(), Tokens(180));
    assert_eq!(all.left().max_total_tokens, Some(Tokens(820)));
    assert_eq!(all.at_work(), 0);
    assert_eq!(all.spent().cost.known, Money(8));
}

#[test]
fn a_meter_is_read_live_at_every_floor() {
    let all = Reservation::new(&ExecutionLimits::default());
    let call = all.for_call(None);
    let grant = call.reserve(&limits(10_000)).unwrap();
    let below = grant.for_call(None);
    let grandchild = below.reserve(&limits(5_000)).unwrap();
    grandchild.spend(&spend(10, 1));
    grant.spend(&spend(3, 0));
    below.spend(&spend(2, 0));
    let read = |part: &Reservation| part.spent().usage.total_tokens().0;
    assert_eq!((read(&grandchild), read(&below)), (10, 12));
    assert_eq!((read(&grant), read(&call), read(&all)), (15, 15, 15));
    // Another call of the same run has a meter of its own.
    assert_eq!(read(&all.for_call(None)), 0);
    drop(grandchild);
    assert_eq!((read(&below), read(&grant)), (12, 15));
    drop((below, grant));
    assert_eq!((read(&call), read(&all)), (15, 15));
    drop(call);
    assert_eq!(read(&all), 15);
}

#[test]
fn a_grant_tightens_limits_and_never_loosens_them() {
    let all = Reservation::new(&ExecutionLimits {
        max_cost: Some(Money(9)),
        max_tool_calls: Some(4),
        max_duration: Some(Duration::from_secs(60)),
        ..limits(1_000)
    });
    let grant = all.reserve(&ExecutionLimits::turns(7)).unwrap();
    let own = ExecutionLimits {
        count_tokens: Some(CountTokens::Growth),
        max_tool_calls: Some(2),
        ..ExecutionLimits::turns(20)
    };
    let within = own.within(&grant.limits());
    assert_eq!(within.max_total_tokens, Some(Tokens(1_000)));
    assert_eq!(within.count_tokens, Some(CountTokens::Processed));
    assert_eq!(
        (within.max_turns, within.max_tool_calls),
        (Some(7), Some(2))
    );
    assert_eq!(within.max_cost, Some(Money(9)));
    assert!(within.max_duration.unwrap() <= Duration::from_secs(60));
    let free = Reservation::unlimited();
    assert_eq!(own.within(&free.limits()), own);
}

#[tokio::test(start_paused = true)]
async fn time_is_not_shared_out_but_ends_for_all() {
    let all = Reservation::new(&ExecutionLimits {
        max_duration: Some(Duration::from_secs(60)),
        ..ExecutionLimits::turns(100)
    });
    let long = ExecutionLimits {
        max_duration: Some(Duration::from_secs(600)),
        ..ExecutionLimits::turns(10)
    };
    let grant = all.reserve(&long).unwrap();
    assert_eq!(grant.until, all.until);
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
    let run = Reservation::of_run(&limits);
    let mut booked = Default::default();
    let own = (spend(1_000, 5), Tokens(900));
    let keeps = Spend {
        turns: 49,
        tool_calls: 1,
        ..spend(2_000, 0)
    };
    run.book(own, keeps, &mut booked);
    run.book(own, keeps, &mut booked);
    let call = run.for_call(None);
    let left = call.left();
    assert_eq!(left.max_total_tokens, Some(Tokens(10_000 - 900 - 2_000)));
    assert_eq!(left.max_tool_calls, Some(9));
    assert_eq!(left.max_turns, Some(MAX_TURNS_BELOW));
    let grant = call.reserve(&self::limits(50_000)).unwrap();
    assert_eq!(grant.limits().max_total_tokens, Some(Tokens(7_100)));
    assert_eq!(
        call.reserve(&limits).unwrap_err().to_string(),
        "nothing is left of the limit on tokens"
    );
    assert_eq!(call.at_work(), 1);
}
