//! Findings of fuzzing, each with the smallest text that shows it. The targets are in `fuzz/`.

use plimsoll_context::{Message, Reply};
use plimsoll_mock::rules as judge;
use plimsoll_wire::{RenderInput, StreamDecoder};
use plimsoll_wire::{anthropic, openai_responses};
use serde_json::{Value, json};

fn anthropic_reply(events: &[Value]) -> Reply {
    let mut state = anthropic::MessagesStreamState::new();
    for event in events {
        state.push(&event.to_string()).unwrap();
    }
    state.finish().unwrap()
}

fn responses_request(reply: Reply, profile: &openai_responses::ResponsesProfile) -> Value {
    let said = [
        Message::user("q"),
        Message::Assistant { parts: reply.parts },
        Message::user("and?"),
    ];
    let input = RenderInput {
        model: "m",
        ..RenderInput::default()
    };
    let body = openai_responses::render(&input, &said, profile)
        .unwrap()
        .body;
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_block_of_messages_that_nobody_named_is_not_sent_back() {
    let reply = anthropic_reply(&[
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": {}, "id": "a"}}),
        json!({"type": "message_stop"}),
    ]);
    let said = [
        Message::user("q"),
        Message::Assistant { parts: reply.parts },
        Message::user("and?"),
    ];
    let profile = anthropic::MessagesProfile::of_model("claude-opus-4-8");
    let input = RenderInput {
        model: "claude-opus-4-8",
        ..RenderInput::default()
    };
    let body = anthropic::render(&input, &said, &profile).unwrap();
    let request: Value = serde_json::from_slice(&body.body).unwrap();
    assert_eq!(judge::anthropic::validate(&request, &profile), []);
}

#[test]
fn reasoning_of_another_server_does_not_go_to_openai() {
    for item in [
        json!({"type": "reasoning", "id": "call_c", "summary": [], "encrypted_content": "gA=="}),
        json!({"type": "reasoning", "id": 1, "summary": [], "encrypted_content": "gA=="}),
        json!({"type": "reasoning", "id": "rs_1", "content": [], "encrypted_content": "gA=="}),
    ] {
        let said = json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "t"}]});
        let body = json!({"id": "r", "status": "completed", "output": [item, said]}).to_string();
        let reply = openai_responses::read_reply(&body).unwrap();
        let openai = openai_responses::ResponsesProfile::openai();
        let request = responses_request(reply.clone(), &openai);
        assert_eq!(judge::openai_responses::validate(&request, &openai), []);
        // Its own server gets it as it was.
        let own = openai_responses::ResponsesProfile::compatible();
        let request = responses_request(reply, &own);
        assert_eq!(request["input"][1], item);
        assert_eq!(judge::openai_responses::validate(&request, &own), []);
    }
}

#[test]
fn the_model_does_not_say_what_it_is_told() {
    let heard = json!([
        {"role": "assistant", "content": [{"type": "input_image"}, {"type": "output_text", "text": "t"}]},
        {"role": "user", "content": [{"type": "refusal"}, {"type": "input_text", "text": "q"}]},
    ]);
    let text = heard.to_string();
    let chat = openai_responses::read(&text).unwrap();
    let profile = openai_responses::ResponsesProfile::openai();
    let input = RenderInput {
        model: "m",
        ..RenderInput::default()
    };
    let body = openai_responses::render(&input, &chat.messages, &profile).unwrap();
    let request: Value = serde_json::from_slice(&body.body).unwrap();
    assert_eq!(judge::openai_responses::validate(&request, &profile), []);
}

#[test]
fn an_item_that_nobody_named_is_no_part_of_the_message_after_it() {
    let strange = [
        json!({"type": ""}),
        json!({"id": "rs_1", "summary": [], "encrypted_content": "gA=="}),
    ];
    for item in strange {
        let said = json!({"type": "message", "role": "assistant", "phase": "commentary",
            "content": [{"type": "output_text", "text": "t"}]});
        let body = json!({"id": "r", "status": "completed", "output": [item, said]}).to_string();
        let reply = openai_responses::read_reply(&body).unwrap();
        let profile = openai_responses::ResponsesProfile::openai();
        let request = responses_request(reply, &profile);
        let kept =
            json!({"type": "message", "role": "assistant", "content": "t", "phase": "commentary"});
        assert_eq!(request["input"][1], kept);
        assert_eq!(judge::openai_responses::validate(&request, &profile), []);
    }
}
