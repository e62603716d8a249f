//! The costs of the policies: the provider's prompt cache, and counting. Only checks growth,
//! without a clock; times are benchmarks.

use std::sync::Arc;

use plimsoll_context::{
    Budget, Calibration, ContextStrategy, Policy, SummaryConfig, TokenCounter, Tokens, Transcript,
    Trigger, ViewLimits,
};
use plimsoll_testkit::ByteCounter;
use plimsoll_testkit::notation::message;

const REQUESTS: usize = 80;

fn preset(name: &str, trigger: Option<u64>, window: u64) -> (Policy, Budget) {
    let strategy = ContextStrategy::named(name, trigger.map(Tokens)).unwrap();
    let line = strategy.line(ViewLimits {
        window: Some(Tokens(window)),
        ..ViewLimits::default()
    });
    let budget = line
        .budget(Tokens(0), Tokens::ZERO, Calibration::default())
        .unwrap();
    (strategy.policy(None, SummaryConfig::default()), budget)
}

/// One turn: a call and its result, `weight` tokens in all.
fn turn(view: &mut Transcript, n: usize, weight: u64) {
    view.push(message(&format!("a:[c{n}]")));
    view.mark_sent();
    view.push(message(&format!("r:c{n}*{}", (weight - 18) * 4)));
}

fn bytes(view: &Transcript) -> String {
    let messages = view.items().iter();
    messages
        .map(|item| serde_json::to_string(&item.message).unwrap())
        .collect()
}

fn common_prefix(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(a, b)| a == b).count()
}

/// The share of a request's bytes that the request before it began with, averaged over
/// [`REQUESTS`] at saturation, each turn adding one percent of the budget.
fn reused(policy: &Policy, budget: &Budget) -> f64 {
    let step = budget.trigger.0 / 100;
    let mut view = Transcript::new(Arc::new(plimsoll_context::Chars4));
    view.push(message("s:rules*400"));
    view.push(message("u:task*400"));
    let mut n = 0;
    while view.tokens() + Tokens(step) <= budget.trigger {
        turn(&mut view, n, step);
        n += 1;
    }
    view.mark_sent();
    let mut before = bytes(&view);
    let mut sum = 0.0;
    let mut plans = 0;
    for _ in 0..REQUESTS {
        turn(&mut view, n, step);
        n += 1;
        if let Some(plan) = policy.plan(&view, budget, Trigger::Request).unwrap() {
            view.apply(&plan).unwrap();
            plans += 1;
        }
        view.mark_sent();
        let now = bytes(&view);
        sum += common_prefix(&before, &now) as f64 / now.len() as f64;
        before = now;
    }
    assert!(plans > 1, "{plans} plans: not at saturation");
    sum / REQUESTS as f64
}

/// S30.
#[test]
fn the_prefix_holds_at_saturation() {
    for name in ["evict", "sliding_window"] {
        for (trigger, window) in [
            (None, 8_000),
            (None, 200_000),
            (Some(8_000), 200_000),
            (Some(50_000), 200_000),
            // An explicit trigger beyond the window, or beyond one that an overflow taught.
            (Some(100_000), 8_000),
        ] {
            let (policy, budget) = preset(name, trigger, window);
            let reused = reused(&policy, &budget);
            println!("{name} {trigger:?} of {window}: {:.1} %", reused * 100.0);
            assert!(reused > 0.9, "{name} {trigger:?} {window}: {reused}");
        }
    }
}

/// A chat of `messages` messages, as a filter gets it.
fn chat(counter: &Arc<ByteCounter>, messages: usize) -> Transcript {
    let counter: Arc<dyn TokenCounter> = Arc::clone(counter) as _;
    let mut view = Transcript::new(counter);
    view.push(message("u:task"));
    for n in 0..messages / 2 {
        turn(&mut view, n, 300);
    }
    view.mark_sent();
    view
}

/// S29: once counted, clamping 4,000 messages to 2,000 tokens counts hardly more than what stays.
#[test]
fn clamping_a_long_chat_counts_what_stays() {
    for name in ["evict", "sliding_window"] {
        let counter = Arc::new(ByteCounter::default());
        let mut view = chat(&counter, 4_000);
        let (policy, budget) = preset(name, Some(2_000), 200_000);
        let counted = counter.during(|| {
            let plan = policy.plan(&view, &budget, Trigger::Request).unwrap();
            view.apply(&plan.unwrap()).unwrap();
        });
        assert!(view.tokens() <= budget.target);
        let stays = view.tokens().0 * 4;
        println!("{name}: {counted} bytes counted, {stays} stay");
        assert!(counted <= 4 * stays, "{name}: {counted} for {stays}");
    }
}

/// A turn under the trigger counts what is new and nothing else, however long the view is.
#[test]
fn a_turn_counts_only_what_is_new() {
    for messages in [100, 10_000] {
        let counter = Arc::new(ByteCounter::default());
        let mut view = chat(&counter, messages);
        let (policy, budget) = preset("evict", Some(100_000_000), 100_000_000);
        let mut said = 0;
        let counted = counter.during(|| {
            turn(&mut view, messages, 300);
            said = view.items().iter().rev().take(2).map(size).sum();
            assert_eq!(policy.plan(&view, &budget, Trigger::Request), Ok(None));
        });
        assert_eq!(counted, said, "{messages} messages");
    }
}

fn size(item: &plimsoll_context::Item) -> u64 {
    let calls = item.message.calls();
    let calls: usize = calls
        .map(|call| call.name.len() + call.arguments.len())
        .sum();
    (item.message.text().len() + calls) as u64
}
