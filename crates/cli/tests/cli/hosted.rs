//! `plimsoll run` with hosted tools and with a longer-lived prompt cache: against the strict mocks,
//! over compactions, and the messages if a provider does not support them.

use plimsoll_mock::{Call, Mock, RecordedRequest, Script, Server, Turn};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::command::{CommandOutput, Home};

/// What the user says that the server holds, and what it does: there is no overflow.
const SAID_WINDOW: u64 = 16_000;
const WINDOW: u64 = 24_000;
const TURNS: usize = 14;
const TASK: &str = "Find out what the sea does.";
const SEARCH: &str = r#"{"type":"web_search_20250305","name":"web_search","max_uses":3}"#;

/// A server, and the threads that it answers on.
struct HostedServer {
    server: Server,
    _runtime: Runtime,
}

impl HostedServer {
    fn start(mock: Mock, script: Script) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let mock = mock.window(WINDOW).script(script);
        let server = runtime.block_on(Server::start(mock)).unwrap();
        Self {
            server,
            _runtime: runtime,
        }
    }

    fn run(&self, home: &Home, model: &str, rest: &[&str]) -> CommandOutput {
        let url = format!("{}/v1", self.server.address());
        let window = SAID_WINDOW.to_string();
        let run = ["run", "--model", model, "--base-url", &url];
        let how = [
            "--max-context",
            &window,
            "--thinking-level",
            "medium",
            "--policy",
            "evict",
        ];
        home.run(run.iter().chain(&how).chain(rest).chain(&[TASK]))
    }
}

fn home() -> Home {
    let home = Home::new();
    for part in 0..8 {
        let line = |line| format!("part {part}, line {line}: nothing to see here\n");
        let name = format!("part{part}.txt");
        home.file(&name, (0..60).map(line).collect::<String>());
    }
    home
}

/// Reads a file each turn and searches in every other; `blocks` are the search of a turn.
fn script(blocks: impl Fn(usize) -> Vec<Turn>) -> Script {
    let read = |turn: usize| Call {
        name: "read".into(),
        arguments: json!({"path": format!("part{}.txt", turn % 8)}),
        id: None,
    };
    let turns = (1..TURNS).flat_map(|turn| {
        let mut all = match turn % 2 {
            0 => blocks(turn),
            _ => vec![Turn::default()],
        };
        if let Some(last) = all.last_mut() {
            last.think = Some(format!("Turn {turn}: what next?"));
            last.call = vec![read(turn)];
        }
        all
    });
    Script::new(
        turns
            .collect::<Vec<_>>()
            .into_iter()
            .chain([Turn::say("It ebbs.")]),
    )
}

/// A search and what it found; in one turn, or in a turn that is paused and the next.
fn of_messages(turn: usize) -> Vec<Turn> {
    let id = format!("srvtoolu_{turn}");
    let asks = json!({"type": "server_tool_use", "id": id, "name": "web_search",
        "input": {"query": format!("sea {turn}")}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [
        {"type": "web_search_result", "title": format!("Sea {turn}"), "url": "https://sea.example",
            "encrypted_content": "c2Vh".repeat(40)}]});
    if !turn.is_multiple_of(4) {
        return vec![Turn {
            blocks: vec![asks, found],
            ..Turn::default()
        }];
    }
    let pauses = Turn {
        say: Some("I look it up.".into()),
        blocks: vec![asks],
        stop: Some("pause_turn".into()),
        ..Turn::default()
    };
    let goes_on = Turn {
        blocks: vec![found],
        ..Turn::default()
    };
    vec![pauses, goes_on]
}

fn of_responses(turn: usize) -> Vec<Turn> {
    let searched = json!({"type": "web_search_call", "id": format!("ws_{turn}"),
        "status": "completed", "action": {"type": "search", "query": format!("sea {turn}")}});
    vec![Turn {
        blocks: vec![searched],
        ..Turn::default()
    }]
}

fn events(said: &CommandOutput) -> Vec<Value> {
    let lines = said.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The run ended well, no request was refused, each asked for the tool, the view was made smaller, and
/// what the provider's tool did was told.
fn check(said: &CommandOutput, asked: &[RecordedRequest], tool: &Value) -> Vec<Value> {
    let events = events(said);
    assert_eq!(events.last().unwrap()["outcome"]["text"], "It ebbs.");
    for one in asked {
        assert_eq!(one.status, 200, "{:?}", one.fault);
        let tools = one.body["tools"].as_array().unwrap();
        assert_eq!(tools.iter().filter(|own| *own == tool).count(), 1);
        assert!(tools.len() > 1, "the host's own are there too");
    }
    let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert!(count("plan_applied") >= 1);
    let told = |kind: &str| {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind.cloned().collect::<Vec<Value>>()
    };
    let (calls, results) = (told("hosted_call"), told("hosted_result"));
    assert_eq!((calls.len(), results.len()), (TURNS / 2 - 1, TURNS / 2 - 1));
    assert_eq!(calls[0]["name"], "web_search");
    assert!(calls[0]["text"].as_str().unwrap().contains("sea 2"));
    // What came of it goes back, as long as it is in the view.
    let went_back = asked
        .iter()
        .filter(|one| one.body.to_string().contains("sea 2"));
    assert!(went_back.count() >= 1);
    events
}

#[test]
fn messages_with_a_search_and_an_hour_of_cache() {
    for model in ["claude-sonnet-4-5", "claude-opus-5-5"] {
        let home = home();
        let mock = Mock::messages_without_keys();
        let mocked = HostedServer::start(mock, script(of_messages));
        let set = format!("hosted_tools=[{SEARCH}]");
        let rest = ["--set", &set, "--cache-retention", "long", "--json"];
        let said = mocked
            .run(&home, &format!("anthropic/{model}"), &rest)
            .done();
        let asked = mocked.server.requests();
        let tool: Value = serde_json::from_str(SEARCH).unwrap();
        let bare = |mut one: RecordedRequest| {
            for tool in one.body["tools"].as_array_mut().unwrap() {
                tool.as_object_mut().unwrap().remove("cache_control");
            }
            one
        };
        let plain: Vec<RecordedRequest> = asked.iter().cloned().map(bare).collect();
        let events = check(&said, &plain, &tool);
        let found = events.iter().find(|event| event["type"] == "hosted_result");
        assert_eq!(found.unwrap()["text"], "Sea 2 https://sea.example");
        // All of the cache is kept for an hour, and paid as that.
        for one in &asked {
            let body = one.body.to_string();
            let marks = body.matches("\"cache_control\"").count();
            assert_eq!(marks, body.matches("\"ttl\":\"1h\"").count(), "{body}");
        }
        let outcome = &events.last().unwrap()["outcome"];
        let tokens = |key: &str| outcome["usage"][key].as_f64().unwrap_or_default();
        let written = tokens("cache_write");
        assert!(written > 0.0 && written == tokens("cache_write_longer"));
        let (input, output, read) = match model {
            "claude-sonnet-4-5" => (3.0, 15.0, 0.3),
            _ => (2.0 * 2.0, 20.0, 0.2),
        };
        let cost = tokens("input") * input
            + tokens("output") * output
            + tokens("cache_read") * read
            + written * 2.0 * input;
        let booked = outcome["cost"]["known"].as_f64().unwrap() / 1e9;
        assert!((booked - cost / 1e6).abs() < 1e-4, "{booked} {cost}");
    }
}

#[test]
fn the_head_alone_may_be_kept_longer() {
    let home = home();
    let mocked = HostedServer::start(
        Mock::messages_without_keys(),
        script(|_| vec![Turn::default()]),
    );
    let system = format!("system={}", "Answer briefly. ".repeat(400));
    let retention = ["--set", "cache.retention=head"];
    let rest = [&["--set", &system, "--json"][..], &retention].concat();
    let said = mocked.run(&home, "anthropic/claude-opus-5-5", &rest).done();
    let asked = mocked.server.requests();
    assert!(asked.iter().all(|one| one.status == 200));
    let system = asked[3].body["system"].to_string();
    let messages = asked[3].body["messages"].to_string();
    assert!(system.contains("\"ttl\":\"1h\"") && !messages.contains("\"ttl\""));
    assert!(messages.contains("cache_control"));
    let events = events(&said);
    let usage = &events.last().unwrap()["outcome"]["usage"];
    let tokens = |key: &str| usage[key].as_u64().unwrap_or_default();
    assert!((1..tokens("cache_write")).contains(&tokens("cache_write_longer")));
}

#[test]
fn responses_with_a_search_and_a_day_of_cache() {
    let home = home();
    let mocked = HostedServer::start(Mock::responses(), script(of_responses));
    let file = home.file(
        "with.toml",
        "hosted_tools = [{ type = \"web_search\" }]\ncache.retention = \"long\"\n",
    );
    let rest = ["--config", file.to_str().unwrap(), "--json"];
    let said = mocked.run(&home, "openai-responses/gpt-5", &rest).done();
    let asked = mocked.server.requests();
    check(&said, &asked, &json!({"type": "web_search"}));
    for one in &asked {
        assert_eq!(one.body["prompt_cache_retention"], "24h");
    }
}

#[test]
fn where_there_is_no_such_thing_it_is_said() {
    let home = home();
    let dialect = || Mock::chat("openai").unwrap();
    let answers = || Script::new([Turn::say("Aye.").repeated()]);
    let mocked = HostedServer::start(dialect(), answers());
    // A longer life is left out, with a word; a tool is asked for or nothing runs.
    let said = mocked
        .run(&home, "openai/gpt-4o", &["--cache-retention", "long"])
        .done();
    assert!(
        said.err.contains("gpt-4o has no such thing"),
        "{}",
        said.err
    );
    let body = &mocked.server.requests()[0].body;
    assert!(body.get("prompt_cache_retention").is_none());
    let search = "hosted_tools=[{type=\"web_search\"}]";
    let said = mocked.run(&home, "openai/gpt-5", &["--set", search]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(
        said.err.contains("openai/gpt-5 has none here"),
        "{}",
        said.err
    );
    for (model, tool, words) in [
        (
            "anthropic/claude-opus-5",
            "{type=\"bash_20250124\",name=\"b\"}",
            "runs at the client",
        ),
        (
            "openai-responses/gpt-5",
            "{type=\"shell\"}",
            "is run by the client",
        ),
        ("openai-responses/gpt-5", "{name=\"x\"}", "has no `type`"),
    ] {
        let set = format!("hosted_tools=[{tool}]");
        let said = mocked.run(&home, model, &["--set", &set]);
        assert_eq!(said.code, Some(2), "{tool}: {}", said.err);
        assert!(said.err.contains(words), "{tool}: {}", said.err);
    }
    assert_eq!(mocked.server.requests().len(), 1);
}

#[test]
fn a_tool_in_a_wrong_form_is_refused_by_the_provider() {
    let home = home();
    let answers = || Script::new([Turn::say("Aye.").repeated()]);
    let messages = HostedServer::start(Mock::messages_without_keys(), answers());
    let responses = HostedServer::start(Mock::responses(), answers());
    let (claude, gpt) = ("anthropic/claude-opus-5", "openai-responses/gpt-5");
    for (mocked, model, tool, words) in [
        (
            &messages,
            claude,
            "{type=\"web_search_20250305\"}",
            "name: Field required",
        ),
        (
            &messages,
            claude,
            "{type=\"web_surf\",name=\"x\"}",
            "Input tag 'web_surf'",
        ),
        (
            &responses,
            gpt,
            "{type=\"file_search\"}",
            "vector_store_ids",
        ),
        (
            &responses,
            gpt,
            "{type=\"web_surf\"}",
            "Invalid value: 'web_surf'",
        ),
    ] {
        let set = format!("hosted_tools=[{tool}]");
        let said = mocked.run(&home, model, &["--set", &set]);
        assert_eq!(said.code, Some(5), "{tool}: {}", said.err);
        let mut lines = said.err.lines();
        let refusal = lines.find(|line| line.starts_with("plimsoll: the provider refused"));
        assert!(refusal.unwrap().contains(words), "{tool}: {}", said.err);
    }
}

#[test]
fn what_is_denied_is_not_asked_for() {
    let home = home();
    let answers = Script::new([Turn::say("Aye.").repeated()]);
    let mocked = HostedServer::start(Mock::messages_without_keys(), answers);
    let set = format!("hosted_tools=[{SEARCH}]");
    let model = "anthropic/claude-opus-5";
    for pattern in ["web_search", "web_search_20250305", "web_*"] {
        let said = mocked
            .run(&home, model, &["--set", &set, "--deny", pattern])
            .done();
        assert!(
            said.err.contains("is denied by the permissions"),
            "{}",
            said.err
        );
        let asked = mocked.server.requests();
        let body = asked.last().unwrap().body.to_string();
        assert!(!body.contains("web_search"), "{body}");
    }
    // What cannot be kept is refused.
    let deny = ["--set", &set, "--deny", "web_search:*secret*"];
    let said = mocked.run(&home, model, &deny);
    assert_eq!(said.code, Some(2));
    assert!(
        said.err.contains("which the provider runs by itself"),
        "{}",
        said.err
    );
}

#[test]
fn the_doctor_shows_what_there_is() {
    let home = Home::new();
    let url = ["--base-url", "http://127.0.0.1:1/v1"];
    let doctor = |model: &str| {
        let args = [&["doctor", "--model", model], &url[..]].concat();
        home.run(args).done().out
    };
    let said = doctor("anthropic/claude-opus-5");
    let words = "available: web_search, web_fetch, code_execution";
    assert!(said.contains(words), "{said}");
    let said = doctor("openai/gpt-5");
    assert!(said.contains("has none for this protocol"), "{said}");
}
