//! `plimsoll doctor --model`: the request, and the reasons why the API accepts it. Without a network, and
//! never with a key in the output.

use serde_json::Value;

use super::command::{CommandOutput, Home, feed};
use super::fake::{Fake, FakeAnswer};

const HUSH: &str = "sk-0123456789-hush";

fn with_key(home: &Home, variable: &str, args: &[&str]) -> CommandOutput {
    let mut command = home.command(args);
    command.env(variable, HUSH);
    feed(command, b"")
}

#[test]
fn every_figure_has_its_origin() {
    let home = Home::new();
    let model = "anthropic/claude-opus-5";
    let said = with_key(&home, "ANTHROPIC_API_KEY", &["doctor", "--model", model]).done();
    for words in [
        "Anthropic Messages, by the profile claude-opus-5",
        "https://api.anthropic.com/v1 (the usual one)",
        "$ANTHROPIC_API_KEY is set",
        "1000000 tokens (as published)",
        "plimsoll models anthropic/claude-opus-5 shows sizes",
    ] {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    assert!(!said.out.contains("hush") && !said.out.contains('\u{1b}'));
    assert_eq!(sample(&said)["messages"].as_array().unwrap().len(), 1);
}

/// The request of the example.
fn sample(said: &CommandOutput) -> Value {
    let (_, sample) = said
        .out
        .split_once("An example: a question, with a tool\n")
        .unwrap();
    let mut values = serde_json::Deserializer::from_str(sample).into_iter();
    values.next().unwrap().unwrap()
}

#[test]
fn every_wire_is_explained() {
    let home = Home::new();
    for (variable, model, wire) in [
        ("OPENAI_API_KEY", "openai/gpt-5", "OpenAI Chat Completions"),
        (
            "OPENAI_API_KEY",
            "openai-responses/gpt-5",
            "OpenAI Responses",
        ),
        (
            "MISTRAL_API_KEY",
            "mistral/mistral-large-latest",
            "OpenAI Chat Completions",
        ),
        ("X", "ollama/gemma3", "OpenAI Chat Completions"),
    ] {
        let said = with_key(&home, variable, &["doctor", "--model", model]).done();
        let words = format!("  wire      {wire}, by the profile ");
        assert!(said.out.contains(&words), "{model}: {}", said.out);
        assert!(!said.out.contains("hush"), "{}", said.out);
    }
}

#[test]
fn a_model_that_chat_does_not_go_all_the_way_with_is_explained_over_responses() {
    let home = Home::new();
    for model in ["openai/gpt-5.6-terra", "openai/gpt-5-pro"] {
        let args = ["doctor", "--model", model];
        let said = with_key(&home, "OPENAI_API_KEY", &args).done();
        let words = "  wire      OpenAI Responses, by the profile ";
        assert!(said.out.contains(words), "{model}: {}", said.out);
    }
}

#[test]
fn the_model_of_plimsoll_has_no_server_to_explain() {
    let home = Home::new();
    for model in ["local", "local/nope"] {
        let said = home.run(["doctor", "--model", model]);
        said.refused(2, &["starts the server of its local model for each run"]);
    }
}

#[test]
fn what_a_configuration_says_of_a_provider_is_named() {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    let file = home.data().join("plimsoll.toml");
    let mine = "[providers.mine]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"MY_KEY\"\n\
                [providers.groq]\nbase_url = \"http://127.0.0.1:8/v1\"\n";
    std::fs::write(&file, mine).unwrap();
    let of = |model: &str| {
        let args = [
            "doctor",
            "--config",
            file.to_str().unwrap(),
            "--model",
            model,
        ];
        with_key(&home, "MY_KEY", &args).done().out
    };
    let said = of("mine/m");
    assert!(
        said.contains("http://127.0.0.1:9/v1 (the configuration)"),
        "{said}"
    );
    assert!(said.contains("$MY_KEY is set"), "{said}");
    assert!(!said.contains("hush"), "{said}");
    let said = of("groq/m");
    assert!(
        said.contains("http://127.0.0.1:8/v1 (the configuration)"),
        "{said}"
    );
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
fn the_window_is_the_one_that_a_run_begins_with() {
    let home = Home::new();
    let fake = Fake::new([FakeAnswer::say("Done.")]);
    let url = fake.url();
    std::fs::create_dir_all(home.data()).unwrap();
    let window = |own: u64, more: &[&str]| {
        let row = format!("[models.openai-compatible.m]\nwindow = {own}");
        std::fs::write(home.data().join("plimsoll.toml"), row).unwrap();
        let model = ["--model", "openai-compatible/m", "--base-url", &url];
        let said = home.run([&["doctor"], &model[..], more].concat()).done();
        let row = said.out.lines().find(|line| line.starts_with("  window "));
        row.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(window(50_000, &[]), "50000");
    assert_eq!(window(50_000, &["--max-context", "9000"]), "9000");
    let unknown = ["--max-context", "unknown"];
    assert_eq!(window(50_000, &unknown), "learned");
    let both = home.run(["doctor", "--json", "--model", "openai/gpt-5"]);
    assert_eq!(both.code, Some(2), "{}", both.err);
}
