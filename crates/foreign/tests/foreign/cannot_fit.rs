//! The size that `CannotFit` advises: a cut to it succeeds at the first attempt, on each protocol,
//! under every policy of `compact`.
//!
//! `cargo xtask soak the_advised_size` (or `PROPTEST_CASES=10000`) makes 10,000 chats of each
//! protocol.

use std::sync::Arc;

use plimsoll_context::{Chars4, Estimate, Policy, TokenCounter};
use plimsoll_foreign::CutError;
use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::Dialect;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cutting::{cut, fixed, policies, weighs};
use crate::random_chats::{chat, claude, history, step};
use crate::targets::{chats, claudes, responses};

/// Cuts to the size that the error advises for `budget`, if there is one.
fn judge(
    request: &Value,
    target: &Target,
    budget: u64,
    policy: &Policy,
    counter: &Arc<dyn TokenCounter>,
) -> Result<bool, TestCaseError> {
    let repaired = repair_request(&request.to_string(), target, Reasoning::Keep);
    let text = repaired.unwrap().request;
    let Err(CutError::CannotFit(error)) = cut(&text, target, budget, policy, counter) else {
        return Ok(false);
    };
    let what = || format!("{target:?}\n{budget}: {error}\n{text}");
    prop_assert!(
        error.minimum.0 > budget && error.limit.0 == budget,
        "{}",
        what()
    );
    let least = fixed(&text, target, counter);
    prop_assert!(
        error.minimum.0 > least && error.overhead.0 == least,
        "{} {}",
        least,
        what()
    );
    let cut = cut(&text, target, error.minimum.0, policy, counter);
    let cut = match cut {
        Ok(cut) => cut,
        Err(error) => return Err(TestCaseError::fail(format!("{error}\n{}", what()))),
    };
    let left = cut.map_or(text.as_str().into(), |cut| cut.chat.write());
    prop_assert!(
        weighs(&left, target, counter) <= error.minimum.0,
        "{}",
        what()
    );
    Ok(true)
}

fn counters() -> [Arc<dyn TokenCounter>; 2] {
    [Arc::new(Chars4), Arc::new(Estimate)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_advised_size_fits_random_histories(
        steps in prop::collection::vec(step(), 1..14),
        budget in 1_u64..400,
        policy in 0_usize..4,
        counter in 0_usize..2,
        thinks in any::<bool>(),
        one in 0_usize..100,
    ) {
        let (policy, counter) = (&policies()[policy], &counters()[counter]);
        let (chats, responses, claudes) = (chats(), responses(), claudes());
        let (responses, model) = (&responses[one % responses.len()], &claudes[one % claudes.len()]);
        judge(&chat(&steps), &chats[one % chats.len()], budget, policy, counter)?;
        judge(&history(&steps, thinks), responses, budget, policy, counter)?;
        judge(&claude(&steps, false), model, budget, policy, counter)?;
    }
}

/// Three texts that were cut to a quarter of a small budget weigh more in a larger one, as a quarter of
/// that is more.
#[test]
fn texts_that_weigh_more_in_a_larger_budget_are_counted_at_its_size() {
    let words = |count: usize, word: &str| format!("{word} ").repeat(count);
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": json!({"path": words(16, "berth")}).to_string()}});
    let result = |id: &str, count| json!({"role": "tool", "tool_call_id": id, "content": words(count, "tide")});
    let chat = json!({"messages": [
        {"role": "user", "content": words(16, "cargo")},
        {"role": "assistant", "content": words(36, "crane")},
        {"role": "user", "content": words(105, "pilot")},
        {"role": "assistant", "content": words(40, "permit"), "tool_calls": [call("c0"), call("c1"), call("c2")]},
        result("c0", 62), result("c1", 96), result("c2", 41),
    ]});
    let target = Target::Chat(Dialect::openai());
    for counter in &counters() {
        for policy in policies() {
            for budget in [1, 50, 120, 150, 180] {
                assert!(
                    judge(&chat, &target, budget, &policy, counter).unwrap(),
                    "{budget}"
                );
            }
        }
    }
}
