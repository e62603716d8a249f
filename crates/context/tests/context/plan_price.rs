//! The price of a plan: the rewritten tokens, the savings of later requests, and the reason.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{
    Budget, CacheRetention, Chars4, LongerCache, Message, Money, Part, Plan, Policy, Price,
    PriceFacts, PriceSheet, Rates, Reason, Tokens, Transcript, Trigger,
};

fn dollars(dollars: f64) -> Money {
    Money::from_dollars(dollars).unwrap()
}

fn sheet() -> PriceSheet {
    PriceSheet {
        cache_lives: Some(Duration::from_secs(300)),
        longer: Some(LongerCache {
            lives: Duration::from_secs(3_600),
            cache_write: dollars(6.0),
        }),
        ..PriceSheet::of(Rates {
            input: dollars(3.0),
            output: dollars(15.0),
            cache_read: Some(dollars(0.3)),
            cache_write: Some(dollars(3.75)),
        })
    }
}

fn budget(limit: u64) -> Budget {
    Budget {
        limit: Tokens(limit),
        trigger: Tokens(limit / 2),
        target: Tokens(limit / 4),
        max_result: Tokens(limit),
        keep_recent: 1,
        overhead: Tokens(0),
        instructions: Tokens(0),
    }
}

fn said(letters: usize) -> Message {
    Message::Assistant {
        parts: vec![Part::text("a".repeat(letters))],
    }
}

/// A task of 100 letters, then 40 questions and answers of 400 each, all sent but the last.
fn view() -> Transcript {
    let mut view = Transcript::new(Arc::new(Chars4));
    view.push(Message::user("t".repeat(100)));
    for _ in 0..40 {
        view.push(said(400));
        view.push(Message::user("u".repeat(400)));
        view.mark_sent();
    }
    view.push(said(400));
    view.push(Message::user("and now?"));
    view
}

fn plan(view: &Transcript, budget: &Budget, why: Trigger) -> Plan {
    let policy = Policy::sliding_window();
    policy.best_plan(view, budget, why).unwrap()
}

#[test]
fn a_plan_is_priced_by_what_it_rewrites_and_frees() {
    let (view, budget, sheet) = (view(), budget(10_000), sheet());
    let plan = plan(&view, &budget, Trigger::Request);
    let unsent: Tokens = view.unsent().iter().map(|item| item.tokens).sum();
    let head = view.items()[0].tokens;
    let rewrites = plan.after().minus(head).minus(unsent);
    let facts = PriceFacts {
        sheet: Some(&sheet),
        ..PriceFacts::default()
    };
    let price = Price::of(&plan, &view, &budget, facts);
    assert_eq!(
        price.rewrites, rewrites,
        "what was sent and stays, but the task"
    );
    assert_eq!(price.loses, Some(dollars(3.45).of(rewrites)));
    assert_eq!(price.saves, Some(dollars(0.3).of(plan.frees)));
    let cold = PriceFacts {
        is_cold: true,
        ..facts
    };
    let cold = Price::of(&plan, &view, &budget, cold);
    assert_eq!((cold.loses, cold.reason), (Some(Money(0)), Reason::Cold));
    // A cache of an hour is dearer to write.
    let long = sheet.kept(CacheRetention::Long);
    let kept = PriceFacts {
        sheet: Some(&long),
        ..facts
    };
    let kept = Price::of(&plan, &view, &budget, kept);
    assert_eq!(kept.loses, Some(dollars(5.7).of(rewrites)));
    let age = Some(Duration::from_secs(600));
    assert!(sheet.is_cold_after(age) && !long.is_cold_after(age));
    let unknown = Price::of(&plan, &view, &budget, PriceFacts::default());
    assert_eq!(
        (unknown.loses, unknown.saves),
        (None, None),
        "unknown prices"
    );
}

#[test]
fn the_reason_of_a_plan() {
    let view = view();
    let (roomy, tight) = (budget(10_000), budget(4_000));
    for (budget, why, is_cold, reason) in [
        (&tight, Trigger::Request, false, Reason::Must),
        (&tight, Trigger::Request, true, Reason::Must),
        (&roomy, Trigger::Overflow, false, Reason::Must),
        (&roomy, Trigger::Asked, true, Reason::Asked),
        (&roomy, Trigger::Request, true, Reason::Cold),
        (&roomy, Trigger::Request, false, Reason::Size),
    ] {
        let plan = plan(&view, budget, why);
        let facts = PriceFacts {
            is_cold,
            ..PriceFacts::default()
        };
        let price = Price::of(&plan, &view, budget, facts);
        assert_eq!(price.reason, reason, "{why:?} {is_cold}");
    }
}

#[test]
fn a_price_is_one_sentence_and_survives_the_log() {
    let known = Price {
        rewrites: Tokens(12_300),
        loses: Some(dollars(0.0461)),
        saves: Some(dollars(0.0059)),
        reason: Reason::Size,
    };
    assert_eq!(
        known.to_string(),
        "rewrites 12,300 tokens for $0.0461, then saves $0.0059 a request: the trigger was exceeded"
    );
    let unknown = Price {
        rewrites: Tokens(1_012_003),
        loses: None,
        saves: None,
        reason: Reason::Must,
    };
    assert_eq!(
        unknown.to_string(),
        "rewrites 1,012,003 tokens, at prices that are not known: it would not have fitted"
    );
    let mut plan = plan(&view(), &budget(10_000), Trigger::Request);
    let silent = serde_json::to_string(&plan).unwrap();
    assert!(!silent.contains("price"), "{silent}");
    plan.price = Some(known);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    assert!(plan.describe(None).ends_with("$0.0059 saved a request"));
}
