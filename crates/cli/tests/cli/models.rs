//! `plimsoll models`: the known models with their sources, fetching the published table, and its
//! effect on a run.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use super::command::Home;
use super::fake::{Fake, FakeAnswer};
use super::terminal::Terminal;

/// Rows of LiteLLM's table, with those that nobody can call.
const TABLE: &str = include_str!("../../../providers/tests/tables/litellm.json");

fn home(models: &str) -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("models.toml"), models).unwrap();
    home
}

fn listed(home: &Home, args: &[&str]) -> Value {
    let args = [&["models", "--json"], args].concat();
    serde_json::from_str(&home.run(args).done().out).unwrap()
}

fn one(home: &Home, model: &str) -> Value {
    let models = &listed(home, &[model])["models"];
    let mut models = models.as_array().unwrap().iter();
    models.find(|row| row["model"] == model).cloned().unwrap()
}

fn update(home: &Home, more: &[&str]) -> super::command::CommandOutput {
    let table = home.file("table.json", TABLE);
    let from = table.display().to_string();
    home.run([&["models", "update", "--from", &from], more].concat())
}

#[test]
fn what_is_known_is_listed_with_who_says_so() {
    let home = home("[openai.gpt-5]\nwindow = 300_000\n[xai.grok-9]\ninput = 1.0\noutput = 2.0");
    let five = one(&home, "openai/gpt-5");
    assert_eq!(five["window"]["value"], 300_000);
    assert_eq!(five["window"]["from"], "user");
    assert_eq!(five["max_output"]["from"], "built_in");
    assert_eq!(five["prices"]["value"]["input"], 1.25);
    let all = listed(&home, &[]);
    assert!(all["models"].as_array().unwrap().len() > 80);
    let said = home.run(["models", "gpt-5-mini"]).done();
    assert!(said.out.contains("openai/gpt-5-mini"), "{}", said.out);
    assert!(
        !said.out.contains("claude") && !said.out.contains('\u{1b}'),
        "{}",
        said.out
    );
    let said = home.run(["models", "grok-9"]).done();
    assert!(said.out.contains("* yours, in"), "{}", said.out);
    assert_eq!(home.run(["models", "no-such"]).code, Some(1));
    let file = home.file(
        "plimsoll.toml",
        "[models.\"openai/gpt-5\"]\nwindow = 310_000",
    );
    let five = &listed(
        &home,
        &["openai/gpt-5", "--config", &file.display().to_string()],
    )["models"];
    assert_eq!(five[0]["window"]["from"], "configuration");
    assert_eq!(five[0]["window"]["value"], 310_000);
}

#[test]
fn a_narrow_terminal_shows_each_model_in_lines_of_its_own() {
    let home = home("[xai.grok-9]\nwindow = 300_000\ninput = 1.0\noutput = 2.0\nimages = true");
    let command = || home.command(["models", "grok-9"]);
    let mut narrow = Terminal::start(command(), &[], 80);
    assert_eq!(narrow.end(), Some(0));
    let row = "xai/grok-9\n  window 300000* │ $1.00* in │ $2.00* out │ images*\n";
    assert!(narrow.screen().contains(row), "{}", narrow.screen());
    let mut wide = Terminal::start(command(), &[], 120);
    assert_eq!(wide.end(), Some(0));
    assert!(
        wide.screen().contains("xai/grok-9    300000*"),
        "{}",
        wide.screen()
    );
}

#[test]
fn an_update_writes_what_is_published_and_touches_nothing_of_the_users() {
    let mine = "# mine\n[openai.gpt-5]\nwindow = 300_000\n";
    let home = home(mine);
    let published = home.data().join("models-published.toml");
    let said = update(&home, &[]).done();
    assert!(said.out.contains(" written to "), "{}", said.out);
    assert!(said.out.contains("overrides these values"), "{}", said.out);
    let text = std::fs::read_to_string(&published).unwrap();
    assert!(
        text.contains("# date: ") && text.contains("table.json"),
        "{text}"
    );
    let own = std::fs::read_to_string(home.data().join("models.toml")).unwrap();
    assert_eq!(own, mine);
    assert_eq!(one(&home, "openai/gpt-5")["window"]["value"], 300_000);
    let kimi = one(&home, "mistral/mistral-large-latest");
    assert_eq!(kimi["window"]["from"], "published");
    assert!(listed(&home, &[])["published"]["date"].is_string());
    let again = update(&home, &["--json"]).done();
    let report: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(report["file"], published.display().to_string());
    assert!(report["models"].as_u64() > Some(10), "{report}");
    let left: Vec<_> = std::fs::read_dir(home.data()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing is left beside them");
}

/// A server that gives one answer and ends with the head of what it was asked.
fn serve(answer: String) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let length = stream.read(&mut head).unwrap();
        write!(stream, "{answer}").unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    (place, server)
}

fn served(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

#[test]
fn a_table_comes_from_an_address_too() {
    let (place, server) = serve(served("200 OK", TABLE));
    let url = format!("http://{place}/table.json");
    let home = Home::new();
    let said = home.run(["models", "update", "--from", &url]).done();
    server.join().unwrap();
    assert!(said.out.contains(&url), "{}", said.out);
}

#[test]
fn credentials_in_an_address_are_used_and_never_shown_or_kept() {
    let home = Home::new();
    for more in [&[][..], &["--json"]] {
        let (place, server) = serve(served("200 OK", TABLE));
        let url = format!("http://me:hush@{place}/table.json?token=hush#hush");
        let args = [&["models", "update", "--from", &url], more].concat();
        let said = home.run(args).done();
        let asked = server.join().unwrap().to_lowercase();
        assert!(asked.contains("token=hush") && asked.contains("authorization: basic "));
        assert!(!said.out.contains("hush") && !said.err.contains("hush"));
        let shown = format!("http://{place}/table.json");
        assert!(said.out.contains(&shown), "{}", said.out);
        let text = std::fs::read_to_string(home.data().join("models-published.toml")).unwrap();
        assert!(text.contains(&format!("# from: {shown}\n")), "{text}");
        assert!(!text.contains("hush"));
    }
    let (refused, server) = serve(served("403 Forbidden", ""));
    let (page, other) = serve(served("200 OK", "<html>"));
    for (url, words) in [
        (format!("http://me:hush@{refused}/t?k=hush"), "status 403"),
        (format!("http://me:hush@{page}/t?k=hush"), "no JSON"),
        (
            "http://me:hush@127.0.0.1:9/t?k=hush".to_owned(),
            "cannot be fetched",
        ),
        (
            "http://me:hush@:x/t?k=hush".to_owned(),
            "not a valid address",
        ),
        (
            "ftp://me:hush@127.0.0.1/t?k=hush".to_owned(),
            "of http or https",
        ),
    ] {
        let said = home.run(["models", "update", "--from", &url]);
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
        assert!(
            !said.err.contains("hush") && !said.out.contains("hush"),
            "{}",
            said.err
        );
    }
    server.join().unwrap();
    other.join().unwrap();
}

#[test]
fn what_is_no_table_changes_nothing() {
    let home = Home::new();
    for (text, words) in [
        ("<html>", "no JSON"),
        ("{}", "no model of a provider that we know"),
    ] {
        let file = home.file("bad.json", text).display().to_string();
        let said = home.run(["models", "update", "--from", &file]);
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains(words), "{}", said.err);
    }
    let gone = home.run(["models", "update", "--from", "no-such.json"]);
    assert_eq!(gone.code, Some(2));
    assert!(!home.data().join("models-published.toml").exists());
}

#[test]
fn a_run_has_the_window_that_is_known_where_its_server_tells_none() {
    let fake = || Fake::new([FakeAnswer::say("Done.")]);
    let mine = "[openai-compatible.m]\nwindow = 12_345";
    let said = home(mine).agent(&fake(), &["Say it."]).done();
    assert!(
        said.err
            .contains("window 12345 tokens, from your models.toml"),
        "{}",
        said.err
    );
    let here = home(mine);
    here.file(
        "plimsoll.toml",
        "[models.openai-compatible.m]\nwindow = 23_456",
    );
    let said = here
        .agent(&fake(), &["--config", "plimsoll.toml", "Say it."])
        .done();
    assert!(
        said.err.contains("23456 tokens, from the configuration"),
        "{}",
        said.err
    );
    let given = home(mine).agent(&fake(), &["--max-context", "9000", "Say it."]);
    assert!(given.done().err.contains("9000 tokens, as given"));
    let none = Home::new().agent(&fake(), &["Say it."]).done();
    assert!(none.err.contains("200000 tokens, assumed"), "{}", none.err);
}

#[test]
fn a_table_that_could_not_be_read_again_is_not_written() {
    let entry = serde_json::json!({
        "litellm_provider": "openai", "mode": "chat", "max_input_tokens": 123_456,
        "max_output_tokens": 12_345, "input_cost_per_token": 1.234_567e-6,
        "output_cost_per_token": 2.345_678e-6, "cache_read_input_token_cost": 1.234_567e-7,
        "cache_creation_input_token_cost": 1.534_567e-6, "supports_vision": true,
        "cache_creation_input_token_cost_above_1hr": 2.534_567e-6,
        "supports_reasoning": true, "supports_function_calling": true,
        "prompt_cache_min_tokens": 1_024,
    });
    let rows = (0..10_000).map(|at| (format!("m{at:0>190}"), entry.clone()));
    let table = Value::Object(rows.collect()).to_string();
    let home = Home::new();
    let from = home.file("table.json", &table).display().to_string();
    let said = home.run(["models", "update", "--from", &from]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("nothing was written"), "{}", said.err);
    assert!(!home.data().join("models-published.toml").exists());
}

#[test]
fn what_was_fetched_is_only_a_cache() {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    let published = home.data().join("models-published.toml");
    for bad in [
        b"[openai".to_vec(),
        b"[openai.m]\nwindow = -1".to_vec(),
        vec![0xfe],
        vec![b'#'; 4 * 1024 * 1024 + 1],
    ] {
        std::fs::write(&published, bad).unwrap();
        for args in [
            &["models", "gpt-5-mini"][..],
            &["doctor", "--model", "ollama/qwen3"],
        ] {
            let said = home.run(args).done();
            let warned = said
                .err
                .matches("download it again with `plimsoll models update`");
            assert_eq!(warned.count(), 1, "{}", said.err);
            let cure = format!("or remove {}", published.display());
            assert!(said.err.contains(&cure), "{}", said.err);
        }
    }
    let again = update(&home, &[]).done();
    assert_eq!(again.err, "");
    assert_eq!(home.run(["models", "gpt-5-mini"]).done().err, "");
}
