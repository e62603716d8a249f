//! The case files in `tests/cases`: damaged requests, and what they are repaired to. The notation is explained in
//! crates/testkit/src/cases.rs.
//!
//! `for` names the server: a dialect, a template behind vLLM or `with` another dialect, `responses`, or a model of
//! Anthropic's. `-` adds an entry to the list, and other keys are those of the request; `bare` leaves out everything
//! but the list. `drop` removes all reasoning. The outcome is the rules that refuse the request, the repairs, changed keys, and the list.
//! Each repaired request is accepted, keeps every text that no repair names, and is not repaired again.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_foreign::{Reasoning, Target, repair_request};
use plimsoll_mock::rules::Validate as _;
use plimsoll_testkit::cases::{self, Case};
use plimsoll_wire::anthropic::MessagesProfile;
use plimsoll_wire::openai_chat::{Dialect, Template};
use serde_json::{Map, Value, json};

use crate::judged::repaired;

fn target(name: &str) -> Target {
    let (server, name) = name.split_once(" with ").unwrap_or(("vllm", name));
    let template = match name {
        "gemma" => Some(Template::Gemma),
        "mistral-template" => Some(Template::Mistral),
        "qwen" => Some(Template::Qwen),
        "llama3.1" => Some(Template::Llama31),
        _ => None,
    };
    match (template, Dialect::named(name)) {
        (Some(template), _) => Dialect::named(server)
            .unwrap()
            .with_template(template)
            .into(),
        (None, Some(dialect)) => dialect.into(),
        (None, None) if name == "responses" => {
            Target::of_protocol("openai-responses", None).unwrap()
        }
        (None, None) => MessagesProfile::of_model(name).into(),
    }
}

fn outcome(case: &Case) -> Vec<String> {
    let target = target(case.get("for").expect("a server"));
    let mut request: Map<String, Value> = Map::new();
    for (key, value) in case.input() {
        if !["for", "-", "bare", "drop"].contains(&key) {
            request.insert(key.to_owned(), cases::json(value));
        }
    }
    request.insert(target.protocol().list().to_owned(), case.json("-").into());
    let request = Value::from(request);
    let faults = target.validate(&request);
    let rules: BTreeSet<&str> = faults.iter().map(|fault| fault.rule).collect();
    let text = match case.get("bare") {
        Some(_) => request[target.protocol().list()].to_string(),
        None => request.to_string(),
    };
    let repaired = match case.get("drop") {
        Some(_) => repair_request(&text, &target, Reasoning::Drop).unwrap(),
        None => repaired(&text, &target),
    };
    let rules: Vec<&str> = rules.into_iter().collect();
    let mut outcome = vec![format!("refused by {}", rules.join(", "))];
    if rules.is_empty() {
        outcome.clear();
    }
    if repaired.request == text {
        outcome.push("unchanged".to_owned());
        return outcome;
    }
    outcome.extend(repaired.repairs.iter().map(ToString::to_string));
    let mut after: Value = serde_json::from_str(&repaired.request).unwrap();
    if after.is_array() {
        after = json!({target.protocol().list(): after});
    }
    let keys = [
        "system",
        "instructions",
        "thinking",
        "tools",
        "tool_choice",
        "functions",
    ]
    .iter();
    let changed = keys.filter(|key| after.get(*key) != request.get(*key));
    outcome.extend(changed.map(|key| format!("{key} {}", after[*key])));
    let list = after[target.protocol().list()]
        .as_array()
        .into_iter()
        .flatten();
    outcome.extend(list.map(|entry| format!("- {entry}")));
    outcome
}

#[test]
fn each_damaged_request_is_repaired() {
    for name in ["chat", "responses", "messages"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
        cases::check(&file.join(format!("{name}.txt")), outcome);
    }
}
