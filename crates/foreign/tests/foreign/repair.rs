//! Damage as users of the providers report it.

use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_responses::ResponsesProfile;
use plimsoll_wire::{Target, anthropic};
use serde_json::{Value, json};

use crate::judged::repaired;

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn the_oldest_images_beyond_the_limit_become_notes() {
    let data = "A".repeat(4_500_000);
    let url = format!("data:image/png;base64,{data}");
    let image = |protocol: usize| match protocol {
        0 => json!({"type": "image_url", "image_url": {"url": url}}),
        1 => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        _ => json!({"type": "image", "source":
            {"type": "base64", "media_type": "image/png", "data": data}}),
    };
    let targets = [
        Target::from(Dialect::openai()),
        ResponsesProfile::openai().into(),
        anthropic::MessagesProfile::of_model("claude-opus-4-6").into(),
    ];
    for (protocol, target) in targets.into_iter().enumerate() {
        let message = json!({"role": "user", "content": [image(protocol), image(protocol)]});
        let list = vec![message; 3];
        let text =
            json!({"model": "m", "max_tokens": 9, target.protocol().list(): list}).to_string();
        let repaired = repaired(&text, &target);
        assert_eq!(repaired.request.matches("An image stood here.").count(), 2);
        let told: Vec<String> = repaired.repairs.iter().map(ToString::to_string).collect();
        let place = target.protocol().list();
        let expected =
            format!("{place}[0]: too many bytes of images: put a note in their place (images)");
        assert_eq!(told, [expected]);
    }
}

/// Servers that number calls per turn use the same ids all over. The work grows with the number of calls.
#[test]
fn many_calls_with_one_id_are_repaired_at_once() {
    let target = Target::of_protocol("openai-responses", None).unwrap();
    let mut input = vec![user("q")];
    for _ in 0..4_000 {
        input.push(
            json!({"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{}"}),
        );
        input.push(json!({"type": "function_call_output", "call_id": "call_0", "output": "r"}));
    }
    let calls: Vec<Value> = (0..4_000)
        .map(|at| json!({"type": "function_call", "call_id": format!("c{at}"), "name": "f", "arguments": "{}"}))
        .collect();
    input.extend(calls);
    let text = json!({"model": "m", "input": input}).to_string();
    let begin = std::time::Instant::now();
    let repaired =
        plimsoll_foreign::repair_request(&text, &target, plimsoll_foreign::Reasoning::Keep);
    let repaired = repaired.unwrap();
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
    assert_eq!(repaired.repairs.len(), 2 * 3_999 + 4_000);
    assert!(repaired.request.contains("\"call_0_"));
}

#[test]
fn a_text_that_was_cut_within_a_character_is_readable() {
    let request = r#"{"model":"m","messages":[{"role":"user","content":"a \ud83d b"}]}"#;
    let target = Target::Chat(Dialect::default());
    let repaired = repair_request(request, &target, Reasoning::Keep).unwrap();
    assert_eq!(repaired.request, request.replace("ud83d", "ufffd"));
    let [repair] = repaired.repairs.as_slice() else {
        panic!("{:?}", repaired.repairs);
    };
    assert!(repair.to_string().contains("half a character"), "{repair}");
}

/// The server has the call, in the response before or as an item that the request names.
#[test]
fn results_of_stored_calls_stay() {
    let target = Target::of_protocol("openai-responses", None).unwrap();
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "r"});
    let named = json!({"type": "item_reference", "id": "fc_1"});
    let too_long = json!({"type": "item_reference", "id": "f".repeat(65)});
    for (request, left) in [
        (
            json!({"model": "m", "previous_response_id": "resp_1", "input": [result]}),
            1,
        ),
        (
            json!({"model": "m", "conversation": {"id": "conv_1"}, "input": [result]}),
            1,
        ),
        (
            json!({"model": "m", "input": [user("q"), named, result]}),
            3,
        ),
        (json!({"model": "m", "input": [user("q"), too_long]}), 1),
        (
            json!({"model": "m", "input": [user("q"), named, {
                "type": "function_call_output", "call_id": "c".repeat(65), "output": "r"}]}),
            2,
        ),
        (
            json!({"model": "m", "previous_response_id": null, "input": [user("q"), result]}),
            1,
        ),
    ] {
        let repaired = repair_request(&request.to_string(), &target, Reasoning::Keep).unwrap();
        let repaired: Value = serde_json::from_str(&repaired.request).unwrap();
        let all = request["input"].as_array().unwrap();
        assert_eq!(repaired["input"].as_array().unwrap(), &all[..left]);
    }
}
