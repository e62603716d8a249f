//! Judges chats by the rules of a server.

use std::collections::BTreeSet;

use plimsoll_foreign::{Reasoning, RepairedRequest, repair_request};
use plimsoll_mock::rules::Validate as _;
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::ErrorStyle;
use serde_json::{Value, json};

/// The keys beside the list of a history that count.
const KEYS: [&str; 6] = ["messages", "input", "system", "tools", "thinking", "store"];

/// Returns the faults of the messages of a request. A history is judged as a request that may end with
/// the model's message.
pub(crate) fn faults(text: &str, target: &Target) -> Vec<String> {
    let mut request: Value = serde_json::from_str(text).unwrap();
    if request.is_array() {
        let key = target.protocol().list();
        request = json!({key: request});
    }
    let is_history = request.get("model").is_none();
    let mut target = target.clone();
    let keys = request.as_object_mut().unwrap();
    if is_history {
        keys.retain(|key, _| KEYS.contains(&key.as_str()));
    }
    keys.entry("model").or_insert("-".into());
    match &mut target {
        Target::Messages(profile) => {
            profile.prefill |= is_history;
            profile.unasked_thinking |= is_history;
            keys.entry("max_tokens").or_insert(64_000.into());
            let mode = request["thinking"]["type"].as_str().unwrap_or_default();
            profile.prefill &= !matches!(mode, "enabled" | "adaptive");
        }
        Target::Chat(dialect) => {
            let last = request["messages"].as_array().and_then(|list| list.last());
            let is_prefix = last.is_some_and(|last| last["prefix"] == true);
            dialect.prefill |= is_history || dialect.voice == ErrorStyle::Mistral && is_prefix;
        }
        Target::Responses(_) => {}
    }
    let list = target.protocol().list();
    let faults = target.validate(&request).into_iter();
    // Of the breakpoints of the cache, only their number is repaired.
    let of_messages = faults.filter(|fault| fault.rule != "AM11" || fault.place == "the request");
    let of_messages = of_messages.filter(|fault| {
        ["system", list, "the request", "thinking"]
            .iter()
            .any(|key| fault.place.starts_with(key))
    });
    of_messages.map(|fault| fault.to_string()).collect()
}

/// Repairs a chat, and checks that its server accepts it then and that another repair changes nothing.
#[track_caller]
pub(crate) fn repaired(text: &str, target: &Target) -> RepairedRequest {
    let repaired = repair_request(text, target, Reasoning::Keep).unwrap();
    let found = faults(&repaired.request, target);
    assert_eq!(
        found, [""; 0],
        "{target:?}\n{text}\n{}\n{:?}",
        repaired.request, repaired.repairs
    );
    let again = repair_request(&repaired.request, target, Reasoning::Keep).unwrap();
    assert_eq!(
        again.repairs,
        [],
        "{text}\n{}\n{}",
        repaired.request,
        again.request
    );
    assert_eq!(again.request, repaired.request);
    assert_eq!(
        repaired.repairs.is_empty(),
        repaired.request == text,
        "{text}"
    );
    let lost = lost(text, target, &repaired);
    assert!(
        lost.is_empty(),
        "{target:?}\n{lost:?} of {text}\n{repaired:?}"
    );
    repaired
}

/// Returns the places of entries that lost a text without a repair that names them.
fn lost(before: &str, target: &Target, repaired: &RepairedRequest) -> Vec<String> {
    let mut request: Value = serde_json::from_str(before).unwrap();
    let list = match request.is_array() {
        true => request,
        false => request[target.protocol().list()].take(),
    };
    let named: BTreeSet<&str> = repaired
        .repairs
        .iter()
        .map(|one| one.place.as_str())
        .collect();
    let after = &repaired.request;
    let whole: Value = serde_json::from_str(after).unwrap();
    let left: BTreeSet<String> = texts(&whole).collect();
    // A text may be a part of another one now.
    let is_lost = |text: String| !left.contains(&text) && !after.contains(text.trim_matches('"'));
    let entries = list.as_array().into_iter().flatten().enumerate();
    let entries = entries.map(|(at, entry)| (format!("{}[{at}]", target.protocol().list()), entry));
    let unnamed = entries.filter(|(place, _)| !named.contains(place.as_str()));
    let lost = unnamed.filter(|(_, entry)| texts(entry).any(is_lost));
    lost.map(|(place, _)| place).collect()
}

/// Returns the texts in a value, as JSON.
fn texts(value: &Value) -> Box<dyn Iterator<Item = String> + '_> {
    match value {
        Value::String(_) => Box::new(std::iter::once(value.to_string())),
        Value::Array(list) => Box::new(list.iter().flat_map(texts)),
        Value::Object(keys) => Box::new(keys.values().flat_map(texts)),
        _ => Box::new(std::iter::empty()),
    }
}
