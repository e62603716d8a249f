//! The unused part of the budget after a cut, over the recorded sessions, if they exist.

use std::sync::Arc;

use plimsoll_context::{Estimate, TokenCounter, Tokens, ViewLimits};
use plimsoll_foreign::Body;
use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};

use crate::cutting::{fixed, policies};
use plimsoll_testkit::recorded_sessions;

/// Sessions of fewer tokens leave too little to fill 5 % of them.
const LEAST: Tokens = Tokens(20_000);
const NAMES: [&str; 3] = ["extract", "evict", "sliding_window"];
const SHARES: [u64; 3] = [5, 10, 20];

/// Prints the distribution; `evict` and `sliding_window` use at least 95 % of every budget.
#[test]
fn the_budget_is_used() {
    let Some(recorded) = recorded_sessions::sessions() else {
        return;
    };
    let counter: Arc<dyn TokenCounter> = Arc::new(Estimate);
    let target = Target::Chat(Dialect::openai());
    let mut used: Vec<Vec<(f64, String)>> = vec![Vec::new(); NAMES.len() * SHARES.len()];
    for (_, line) in recorded {
        let session: Value = serde_json::from_str(&line).unwrap();
        let text = json!({"messages": session["messages"]}).to_string();
        let text = repair_request(&text, &target, Reasoning::Keep)
            .unwrap()
            .request;
        let body = Body::read(&text, &target).unwrap();
        let view = body.transcript(&counter);
        if view.tokens() < LEAST {
            continue;
        }
        let fixed = fixed(&text, &target, &counter);
        for (at, policy) in policies().iter().take(NAMES.len()).enumerate() {
            for (nth, share) in SHARES.iter().enumerate() {
                let budget = fixed + (view.tokens().0 - fixed) * share / 100;
                let line = ViewLimits::exactly(Tokens(budget));
                match body.cut(&view, policy, &line) {
                    Ok(Some(cut)) => {
                        let share = cut.tokens.0 as f64 / budget as f64;
                        let what = format!(
                            "{} {} of {budget}: {:?} {}",
                            session["id"],
                            cut.tokens,
                            cut.plan.stages,
                            view.items().len()
                        );
                        used[at * SHARES.len() + nth].push((share, what));
                    }
                    Ok(None) => panic!("nothing was cut"),
                    Err(error) => println!("{} {budget}: {error}", session["id"]),
                }
            }
        }
    }
    for (at, list) in used.iter_mut().enumerate() {
        list.sort_by(|one, other| one.0.total_cmp(&other.0));
        let under = |mark: f64| list.iter().filter(|(share, _)| *share < mark).count();
        println!(
            "{:<15} {:>2} %: {} sessions, least {:.3}, tenth {:.3}, median {:.3}; under 80 %: {}, under 95 %: {}",
            NAMES[at / SHARES.len()],
            SHARES[at % SHARES.len()],
            list.len(),
            list[0].0,
            list[list.len() / 10].0,
            list[list.len() / 2].0,
            under(0.8),
            under(0.95),
        );
        for (share, what) in list.iter().take(6).filter(|(share, _)| *share < 0.95) {
            println!("    {share:.3} {what}");
        }
        assert!(at < SHARES.len() || under(0.95) == 0, "{}", list[0].1);
    }
}
