//! `plimsoll doctor --model`: the request, the reasons why the API accepts it, and the answer of a
//! server. Without a network, and never with a key in the output.

use serde_json::{Value, json};

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
    std::fs::create_dir_all(home.data()).unwrap();
    let mine = "[models.anthropic.claude-opus-5]\nmax_output = 9000";
    std::fs::write(home.data().join("plimsoll.toml"), mine).unwrap();
    let model = "anthropic/claude-opus-5";
    let said = with_key(&home, "ANTHROPIC_API_KEY", &["doctor", "--model", model]).done();
    for words in [
        "Anthropic Messages, by the profile claude-opus-5",
        "https://api.anthropic.com/v1 (the usual one)",
        "$ANTHROPIC_API_KEY is set",
        "1000000 tokens (as published)",
        "9000 tokens at most (configured)",
        "from 512 tokens on (built in)",
        "POST messages/count_tokens",
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
        ("X", "local", "OpenAI Chat Completions"),
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
fn our_own_models_are_known_by_name() {
    let home = Home::new();
    let said = home.run(["doctor", "--model", "local"]).done();
    let name = said.out.lines().next().unwrap().strip_prefix("local/");
    let name = name.unwrap();
    assert_eq!(sample(&said)["model"], name);
    assert_ne!(name, "default");
    let nope = home.run(["doctor", "--model", "local/nope"]);
    assert_eq!(nope.code, Some(1), "{}", nope.err);
    let fault = nope.out.lines().last().unwrap();
    assert!(fault.contains("nope") && fault.contains(name), "{fault}");
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
    let fake = Fake::scripted("compatible", pages, |_, _| FakeAnswer::say("no"));
    let home = Home::new();
    let url = fake.url();
    let ask = |model: &str| {
        let args = ["doctor", "--connect", "--base-url", &url, "--model", model];
        home.run(args)
    };
    let said = ask("openai-compatible/m").done();
    for words in [
        "lists 2 models, including this one",
        "reports a window of 7777 tokens",
        "7777 tokens (from the server)",
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
    let fake = Fake::scripted("compatible", pages, |_, _| FakeAnswer::say("no"));
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
    assert!(none.err.contains("does not count requests"), "{}", none.err);
    assert_eq!(home.run(["count", "--exact"]).code, Some(2));
    assert_eq!(home.run(["count", "--model", "openai/x"]).code, Some(2));
}

#[test]
fn a_refused_key_is_told_as_that_and_any_status_is_an_answer() {
    let home = Home::new();
    let ask = |status: u16, key: Option<&str>| {
        let fake = Fake::listing(status, json!({"error": {"message": "no"}}));
        let url = fake.url();
        let model = "openai-compatible/m";
        let mut command =
            home.command(["doctor", "--connect", "--base-url", &url, "--model", model]);
        command.envs(key.map(|key| ("OPENAI_COMPATIBLE_API_KEY", key)));
        let said = feed(command, b"");
        assert!(!said.out.contains("does not answer"), "{}", said.out);
        assert!(fake.asked().is_empty(), "nothing was generated");
        said
    };
    for status in [401, 403] {
        let said = ask(status, Some(HUSH));
        assert_eq!(said.code, Some(1), "{}", said.out);
        let words = format!(
            "refuses the key (status {status}); check the value of OPENAI_COMPATIBLE_API_KEY"
        );
        assert!(said.out.contains(&words), "{}", said.out);
        assert!(!said.out.contains("hush"));
        let said = ask(status, None);
        let words = format!("requires a key (status {status}); set OPENAI_COMPATIBLE_API_KEY");
        assert!(said.out.contains(&words), "{}", said.out);
    }
    for status in [404, 500] {
        let said = ask(status, None).done();
        let words = format!("answers the request for its models with status {status}");
        assert!(said.out.contains(&words), "{}", said.out);
    }
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

#[test]
fn where_nothing_tells_without_generating_nobody_is_asked() {
    let home = Home::new();
    let url = ["--base-url", "http://127.0.0.1:9"];
    let model = [
        "doctor",
        "--connect",
        "--model",
        "bedrock/amazon.nova-pro-v1:0",
    ];
    let args = [&model[..], &url].concat();
    let said = with_key(&home, "AWS_BEARER_TOKEN_BEDROCK", &args).done();
    assert!(said.out.contains("was not asked"), "{}", said.out);
}
