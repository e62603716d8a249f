//! `plimsoll run` with a model of OpenAI's Responses API: several turns with reasoning and parallel
//! calls. Every request is validated like by the API.

use plimsoll_mock::rules::openai_responses::encrypt;
use serde_json::{Value, json};

use super::command::Home;
use super::fake::{Fake, FakeAnswer};

fn reasoning(number: usize) -> Value {
    let id = format!("rs_{number}");
    json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": encrypt(&id, "hm")})
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
        "name": name, "arguments": arguments.to_string(), "status": "completed"})
}

fn says(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "phase": "final_answer", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

#[test]
fn a_run_with_reasoning_and_parallel_calls_is_valid_at_every_request() {
    let home = Home::new();
    home.file("notes.txt", "the number is forty-two\n");
    let fake = Fake::responses([
        FakeAnswer::items(&[
            reasoning(1),
            call("1", "read", json!({"path": "notes.txt"})),
        ]),
        FakeAnswer::items(&[
            reasoning(2),
            call("2", "list", json!({})),
            call("3", "grep", json!({"pattern": "forty"})),
        ]),
        FakeAnswer::items(&[reasoning(3), says("It is forty-two.")]),
        FakeAnswer::items(&[says("Still forty-two.")]),
    ]);
    let run = |task: &str| {
        let model = [
            "run",
            "--model",
            "openai-responses/o4-mini",
            "--thinking-level",
            "high",
        ];
        let url = fake.url();
        let rest = ["--base-url", url.as_str(), "--session", "s", task];
        home.run(model.iter().chain(&rest)).done()
    };
    assert_eq!(run("Which number?").out, "It is forty-two.\n");
    // A session goes on with all of it, as it came.
    assert_eq!(run("Sure?").out, "Still forty-two.\n");
    let asked = fake.asked();
    assert_eq!(asked.len(), 4);
    for request in &asked {
        assert_eq!(request["model"], "o4-mini");
        assert_eq!(request["store"], false);
        assert_eq!(request["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(request["reasoning"], json!({"effort": "high"}));
    }
    let input = asked[3]["input"].as_array().unwrap();
    let kinds: Vec<&str> = input
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "reasoning",
            "function_call",
            "function_call_output",
            "reasoning",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
            "reasoning",
            "message",
            "message",
        ]
    );
    assert_eq!(input[1], reasoning(1));
    assert_eq!(input[3]["call_id"], "call_1");
    assert!(input[3].to_string().contains("forty-two"), "{}", input[3]);
    assert_eq!(input[10]["phase"], "final_answer");
}
