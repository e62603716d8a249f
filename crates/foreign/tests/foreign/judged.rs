//! Judges chats by the rules of a server.

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
        let key = target.list();
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
    let list = target.list();
    let faults = target.validate(&request).into_iter();
    let of_messages = faults.filter(|fault| {
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
    repaired
}
