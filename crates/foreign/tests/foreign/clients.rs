//! Requests of real clients, as recorded by `cargo xtask clients`: every one is valid and unchanged
//! byte for byte if there is nothing to do. Cut by any policy to any budget, it stays valid,
//! within the budget, and keeps every instruction. Skipped with a note if there are no recordings.

use std::sync::Arc;

use plimsoll_context::{Estimate, TokenCounter};
use plimsoll_foreign::{BodyCut, CutError};
use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_wire::Target;
use serde_json::Value;

use crate::client_requests;
use crate::cutting::{cut, fixed, policies, weighs};

/// Budgets, in percent of the tokens that are neither instructions nor tools. Those fit into each.
const SHARES: [u64; 10] = [0, 5, 10, 25, 40, 60, 75, 90, 99, 100];

#[test]
fn requests_of_real_clients_keep_their_instructions() {
    let Some(recorded) = client_requests::clients() else {
        return;
    };
    let counter: Arc<dyn TokenCounter> = Arc::new(Estimate);
    let mut clients = 0;
    for client in recorded {
        let name = &client.name;
        assert_eq!(client.about["refused"], Value::Array(Vec::new()), "{name}");
        let (mut requests, mut cuts, mut too_small) = (0, 0, 0);
        for (path, text) in &client.requests {
            let request: Value = serde_json::from_str(text).unwrap();
            let target = client.target(&request);
            let repaired = repair_request(text, &target, Reasoning::Keep).unwrap();
            assert_eq!(&repaired.request, text, "{}", path.display());
            assert_eq!(repaired.repairs, [], "{}", path.display());
            let (fixed, whole) = (
                fixed(text, &target, &counter),
                weighs(text, &target, &counter),
            );
            for policy in policies() {
                for share in SHARES {
                    let budget = fixed + ((whole - fixed) * share).div_ceil(100);
                    let after = cut(text, &target, budget, &policy, &counter);
                    let place = format!("{} at {share} %, {budget} tokens", path.display());
                    match after {
                        Ok(None) => assert!(whole <= budget, "{place}"),
                        Ok(Some(cut)) => {
                            judge(&request, &target, budget, &cut, &counter, &place);
                            cuts += 1;
                        }
                        Err(CutError::CannotFit(error)) => {
                            assert!(error.minimum.0 > budget, "{place}: {error}");
                            too_small += 1;
                        }
                        Err(error) => panic!("{place}: {error}"),
                    }
                }
            }
            requests += 1;
        }
        println!(
            "{name} {}: {requests} requests, {cuts} cuts, {too_small} budgets too small",
            client.about["version"].as_str().unwrap(),
        );
        assert!(cuts > 0, "{name}");
        clients += 1;
    }
    assert!(clients > 0);
}

fn judge(
    before: &Value,
    target: &Target,
    budget: u64,
    cut: &BodyCut,
    counter: &Arc<dyn TokenCounter>,
    place: &str,
) {
    let tokens = weighs(&cut.chat.write(), target, counter);
    assert!(tokens <= budget, "{place}: {tokens}");
    let repaired = repair_request(&cut.chat.write(), target, Reasoning::Keep).unwrap();
    assert_eq!(repaired.repairs, [], "{place}");
    let after: Value = serde_json::from_str(&cut.chat.write()).unwrap();
    let kept = instructions(&after, target);
    let mut left = kept.iter();
    for instruction in instructions(before, target) {
        assert!(
            left.any(|one| *one == instruction),
            "{place}: lost or moved {instruction}\nkept {kept:#?}"
        );
    }
}

/// Everything in a request that instructs the model or gives it tools, in order.
fn instructions(request: &Value, target: &Target) -> Vec<Value> {
    let beside = ["system", "instructions", "tools"];
    let mut found: Vec<Value> = beside.map(|key| request[key].clone()).to_vec();
    for message in request[target.protocol().list()].as_array().unwrap() {
        let role = message["role"].as_str().unwrap_or_default();
        let kind = message["type"].as_str().unwrap_or_default();
        if matches!(role, "system" | "developer") || kind == "additional_tools" {
            found.push(message.clone());
        }
        let blocks = message["content"].as_array().into_iter().flatten();
        found.extend(
            blocks
                .filter(|block| block["type"] == "tool_reference")
                .cloned(),
        );
    }
    found
}
