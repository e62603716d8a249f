//! `plimsoll doctor --model`: what would be sent, why it would be accepted, and what a server says
//! when it is asked. Without a network, and never with a key on the screen.

use serde_json::{Value, json};

use super::command::{Home, Said, feed};
use super::fake::{Answer, Fake};

const HUSH: &str = "sk-0123456789-hush";

fn with_key(home: &Home, variable: &str, args: &[&str]) -> Said {
    let mut command = home.command(args);
    command.env(variable, HUSH);
    feed(command, b"")
}

fn report(home: &Home, variable: &str, model: &str) -> Value {
    let said = with_key(home, variable, &["doctor", "--json", "--model", model]);
    assert!(!said.out.contains("hush"), "{}", said.out);
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err))
}

#[test]
fn the_example_is_accepted_and_every_figure_has_its_origin() {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    let mine = "[anthropic.claude-opus-5]\nmax_output = 9000";
    std::fs::write(home.data().join("models.toml"), mine).unwrap();
    let model = "anthropic/claude-opus-5";
    let said = with_key(&home, "ANTHROPIC_API_KEY", &["doctor", "--model", model]).done();
    for words in [
        "Anthropic Messages, by the profile claude-opus-5",
        "https://api.anthropic.com/v1 (the usual one)",
        "$ANTHROPIC_API_KEY is set",
        "1000000 tokens (built in)",
        "9000 tokens at most (yours)",
        "from 512 tokens on (built in)",
        "POST messages/count_tokens",
        "[AM1, AM2, AM3, AM4]",
        "accepted: 0 faults; rules checked: shape, AM1, AM2,",
    ] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    assert!(!said.out.contains("hush") && !said.out.contains('\u{1b}'));
    let told = report(&home, "ANTHROPIC_API_KEY", model);
    assert_eq!(told["accepted"], true);
    assert_eq!(told["window"]["tokens"], 1_000_000);
    assert_eq!(told["facts"]["max_output"]["from"], "user");
    let request = &told["explained"]["sample"]["request"];
    assert_eq!(request["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn every_wire_is_explained() {
    let home = Home::new();
    for (variable, model, wire, rule) in [
        (
            "OPENAI_API_KEY",
            "openai/gpt-5",
            "OpenAI Chat Completions",
            "OC1",
        ),
        (
            "OPENAI_API_KEY",
            "openai-responses/gpt-5",
            "OpenAI Responses",
            "OR3",
        ),
        (
            "MISTRAL_API_KEY",
            "mistral/mistral-large-latest",
            "OpenAI Chat Completions",
            "OC7",
        ),
        ("X", "ollama/gemma3", "OpenAI Chat Completions", "T1"),
        ("X", "local", "OpenAI Chat Completions", "T3"),
    ] {
        let told = report(&home, variable, model);
        assert_eq!(told["explained"]["wire"], wire, "{model}");
        assert_eq!(told["faults"], json!([]), "{model}");
        let rules = told["explained"]["sample"]["rules"].as_array().unwrap();
        assert!(rules.contains(&json!(rule)), "{model}: {rules:?}");
    }
}

#[test]
fn what_is_missing_sets_the_exit_code() {
    let home = Home::new();
    let said = home.run(["doctor", "--model", "openai/gpt-5"]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(
        said.out.contains("none; set OPENAI_API_KEY"),
        "{}",
        said.out
    );
    assert!(said.out.contains("fault: "), "{}", said.out);
    assert!(said.out.contains("accepted: 0 faults"), "{}", said.out);
    assert_eq!(home.run(["doctor", "--connect"]).code, Some(2));
    let unknown = home.run(["doctor", "--model", "opnai/gpt-5"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.err.contains("do you mean `openai`?"),
        "{}",
        unknown.err
    );
    let nowhere = home.run(["doctor", "--model", "openai-compatible/m"]);
    assert!(nowhere.err.contains("--base-url"), "{}", nowhere.err);
}

#[test]
fn a_server_is_asked_and_generates_nothing() {
    let models = json!({"data": [{"id": "m", "max_model_len": 7_777}, {"id": "n"}]});
    let pages = vec![("/v1/models", models)];
    let fake = Fake::scripted("compatible", pages, |_, _| Answer::say("no"));
    let home = Home::new();
    let url = fake.url();
    let ask = |model: &str| {
        let args = ["doctor", "--connect", "--base-url", &url, "--model", model];
        home.run(args)
    };
    let said = ask("openai-compatible/m").done();
    for words in [
        "lists 2 models, this one among them",
        "tells a window of 7777 tokens",
        "7777 tokens (as its server says)",
        "(--base-url)",
    ] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    let said = ask("openai-compatible/x");
    assert_eq!(said.code, Some(1));
    assert!(
        said.out.contains("fault: its server lists no model `x`"),
        "{}",
        said.out
    );
    assert!(fake.asked().is_empty(), "nothing was generated");
    let gone = [
        "doctor",
        "--connect",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--model",
        "vllm/m",
    ];
    let gone = home.run(gone);
    assert_eq!(gone.code, Some(1));
    assert!(gone.out.contains("does not answer"), "{}", gone.out);
}

#[test]
fn a_request_is_weighed_by_its_provider_where_that_is_asked_for() {
    let pages = vec![("/v1/messages/count_tokens", json!({"input_tokens": 4_321}))];
    let fake = Fake::scripted("compatible", pages, |_, _| Answer::say("no"));
    let chat =
        json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]);
    let url = fake.url();
    let home = Home::new();
    let count = |model: &str| {
        let args = ["count", "--exact", "--model", model, "--base-url", &url];
        home.pipe(args, chat.to_string())
    };
    let said = count("anthropic/claude-opus-5").done();
    assert_eq!(
        said.out,
        "4321 tokens, counted by anthropic/claude-opus-5\n"
    );
    let none = count("openai-compatible/m");
    assert_eq!(none.code, Some(5));
    assert!(
        none.err.contains("does not say what a request weighs"),
        "{}",
        none.err
    );
    assert_eq!(home.run(["count", "--exact"]).code, Some(2));
    assert_eq!(home.run(["count", "--model", "openai/x"]).code, Some(2));
}
