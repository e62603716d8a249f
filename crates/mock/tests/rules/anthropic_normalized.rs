//! Every recorded session of the shared data is repaired and sent to an Anthropic model: each
//! request is valid. Skipped with a note if the data does not exist.

use plimsoll_context::Message;
use plimsoll_mock::rules::anthropic::validate;
use plimsoll_wire::anthropic::{MessagesProfile, read, render};
use plimsoll_wire::openai_chat;
use plimsoll_wire::{Effort, RenderInput};
use serde_json::Value;

use plimsoll_testkit::{recorded_sessions, repair};

const MODELS: [&str; 4] = [
    "claude-sonnet-4-5",
    "claude-opus-4-6",
    "claude-opus-5-5",
    "compatible",
];

#[test]
fn every_session_is_accepted() {
    let Some(recorded) = recorded_sessions::sessions() else {
        return;
    };
    let (mut sessions, mut requests) = (0_usize, 0);
    for (_, line) in recorded {
        let chat = openai_chat::read(&line).unwrap();
        let whole = repair(chat.messages).messages;
        let whole: Vec<Message> = whole.into_iter().map(|(_, message)| message).collect();
        let model = MODELS[sessions % MODELS.len()];
        let profile = MessagesProfile::of_model(model);
        let input = RenderInput {
            model,
            tools: &chat.tools,
            effort: Some(Effort::Medium),
            ..RenderInput::default()
        };
        // The whole of it, and half of it wherever that ends between exchanges.
        let half = whole.len() / 2;
        let half = whole
            .iter()
            .skip(half)
            .position(Message::is_user)
            .map(|at| half + at);
        for messages in [Some(&whole[..]), half.map(|at| &whole[..at])]
            .into_iter()
            .flatten()
        {
            let body = render(&input, messages, &profile).unwrap().body;
            let body = String::from_utf8(body).unwrap();
            let request: Value = serde_json::from_str(&body).unwrap();
            let faults = validate(&request, &profile);
            assert!(faults.is_empty(), "{model}: {faults:?}");
            // What was sent once is sent the same again.
            let chat = read(&body).unwrap();
            let again = render(&input, &chat.messages, &profile).unwrap().body;
            let again: Value = serde_json::from_slice(&again).unwrap();
            assert_eq!(again["messages"], request["messages"], "{model}");
            requests += 1;
        }
        sessions += 1;
    }
    println!("{sessions} sessions, {requests} requests");
    assert!(sessions > 0);
}
