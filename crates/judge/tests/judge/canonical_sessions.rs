//! Every recorded session of the shared data, cut off as by a crash, in the dialect of one server
//! after the other: after the repair it is valid, and repairing is idempotent. Skipped with a note
//! if the data does not exist.

use plimsoll_judge::canonical::{Reasoning, Target, repair_request};
use plimsoll_wire::openai_chat::Dialect;
use serde_json::{Value, json};

use crate::recorded_sessions;

#[test]
fn every_session_can_be_gone_on_with() {
    let Some(recorded) = recorded_sessions::sessions() else {
        return;
    };
    let dialects = Dialect::NAMES
        .iter()
        .filter_map(|name| Dialect::named(name));
    let targets: Vec<Target> = dialects.map(Target::Chat).collect();
    let (mut sessions, mut repairs, mut kept, mut whole) = (0, 0, 0, 0);
    for (_, line) in recorded {
        let session: Value = serde_json::from_str(&line).unwrap();
        let messages = session["messages"].as_array().unwrap();
        // Somewhere else in each, often between a call and its result.
        let end = (sessions * 7 + 3) % messages.len().max(1);
        let cut = json!({"messages": &messages[..=end.min(messages.len() - 1)]});
        let target = &targets[sessions % targets.len()];
        let text = cut.to_string();
        let repaired = repair_request(&text, target, Reasoning::Keep).unwrap();
        assert_eq!(repaired.faults, [], "{:?}", repaired.repairs);
        let again = repair_request(&repaired.request, target, Reasoning::Keep).unwrap();
        assert_eq!(
            (again.request.as_str(), again.repairs.len()),
            (repaired.request.as_str(), 0)
        );
        if repaired.repairs.is_empty() {
            assert_eq!(repaired.request, text);
            whole += 1;
        }
        let after: Value = serde_json::from_str(&repaired.request).unwrap();
        let after = after["messages"].as_array().unwrap();
        kept += after.iter().filter(|one| messages.contains(one)).count();
        repairs += repaired.repairs.len();
        sessions += 1;
    }
    println!(
        "{sessions} sessions, {whole} whole, {repairs} repairs, {kept} messages kept as they were"
    );
    assert!(sessions > 0);
}
