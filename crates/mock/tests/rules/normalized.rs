//! Every recorded session of the shared data is read, message for message. Skipped with a note if the
//! data does not exist.

use plimsoll_mock::rules::SHAPE;
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat::{Dialect, read, render};
use serde_json::Value;

use plimsoll_testkit::recorded_sessions;

#[test]
fn every_session_is_read() {
    let Some(recorded) = recorded_sessions::sessions() else {
        return;
    };
    let (mut sessions, mut count) = (0, 0);
    for (source, line) in recorded {
        let chat = read(&line).unwrap_or_else(|error| panic!("{source}: {error}"));
        let whole: Value = serde_json::from_str(&line).unwrap();
        let originals = whole["messages"].as_array().unwrap();
        assert_eq!(chat.messages.len(), originals.len());

        // What the session itself breaks (calls without results, silent assistants) is told;
        // rendering adds no fault of its own.
        let openai = Dialect::openai();
        let before = faults(&whole, &openai);
        let input = RenderInput::default();
        let body = render(&input, &chat.messages, &openai).unwrap().body;
        let after = faults(&serde_json::from_slice(&body).unwrap(), &openai);
        assert!(
            after.iter().all(|rule| before.contains(rule)),
            "{before:?} {after:?}"
        );
        assert!(!after.contains(&"OC5") && !after.contains(&SHAPE));
        sessions += 1;
        count += chat.messages.len();
    }
    println!("{sessions} sessions, {count} messages");
    assert!(sessions > 0);
}

fn faults(request: &Value, dialect: &Dialect) -> Vec<&'static str> {
    let mut rules: Vec<&str> = validate(request, dialect)
        .into_iter()
        .map(|fault| fault.rule)
        .collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}
