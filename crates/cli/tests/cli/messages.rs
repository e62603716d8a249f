//! `plimsoll run` with an Anthropic model: several turns with thinking and parallel calls. Every
//! request is validated like by the API, and every signature is verified.

use plimsoll_mock::rules::anthropic::sign;
use serde_json::{Value, json};

use super::command::Home;
use super::fake::{Fake, FakeAnswer};

fn thinks(request: &Value, thought: &str) -> Value {
    json!({"type": "thinking", "thinking": thought, "signature": sign(request, thought)})
}

fn asks(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": input})
}

fn says(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Thinks before each of its turns, where it is asked to.
fn answer(request: &Value, number: usize) -> FakeAnswer {
    let thought = thinks(request, &format!("turn {number}: \"ä\""));
    let redacted = json!({"type": "redacted_thinking", "data": sign(request, "")});
    match number {
        0 => FakeAnswer::blocks(
            &[
                thought,
                says("I look."),
                asks("1", "read", json!({"path": "notes.txt"})),
            ],
            "tool_use",
        ),
        1 => FakeAnswer::blocks(
            &[
                thought,
                redacted,
                asks("2", "list", json!({})),
                asks("3", "grep", json!({"pattern": "forty"})),
            ],
            "tool_use",
        ),
        2 => FakeAnswer::blocks(&[thought, says("It is forty-two.")], "end_turn"),
        3 => FakeAnswer::blocks(&[thought, says("Still forty-two.")], "end_turn"),
        _ => FakeAnswer::new(500, "no request was expected"),
    }
}

#[test]
fn a_run_with_thinking_and_parallel_calls_is_valid_at_every_request() {
    for model in ["claude-sonnet-4-5", "claude-opus-5-5"] {
        let home = Home::new();
        home.file("notes.txt", "the number is forty-two\n");
        let fake = Fake::messages(answer);
        let name = format!("anthropic/{model}");
        let run = |task: &str| {
            let url = fake.url();
            let arguments = ["run", "--model", &name, "--thinking-level", "high"];
            let rest = ["--base-url", url.as_str(), "--session", "s", task];
            home.run(arguments.iter().chain(&rest)).done()
        };
        assert_eq!(run("Which number?").out, "It is forty-two.\n");
        // A session goes on with all of it, as it came.
        assert_eq!(run("Sure?").out, "Still forty-two.\n");
        let asked = fake.asked();
        assert_eq!(asked.len(), 4);
        let kinds = |message: &Value| -> Vec<String> {
            let blocks = message["content"].as_array().unwrap().iter();
            blocks
                .map(|block| block["type"].as_str().unwrap().to_owned())
                .collect()
        };
        let messages = asked[3]["messages"].as_array().unwrap();
        let said: Vec<Vec<String>> = messages.iter().map(kinds).collect();
        assert_eq!(
            said,
            [
                vec!["text"],
                vec!["thinking", "text", "tool_use"],
                vec!["tool_result"],
                vec!["thinking", "redacted_thinking", "tool_use", "tool_use"],
                vec!["tool_result", "tool_result"],
                vec!["thinking", "text"],
                vec!["text"],
            ],
            "{model}"
        );
        let first = &messages[1]["content"][0];
        assert_eq!(*first, thinks(&asked[0], "turn 0: \"ä\""));
        assert!(messages[2].to_string().contains("forty-two"));
    }
}
