//! `plimsoll run` for thirty turns with thinking and parallel calls, over an overflow and through
//! two compactions, against the strict mock of each protocol. Single calls are tested in the
//! providers.

use plimsoll_mock::{Call, Mock, RecordedRequest, Script, Server, Turn};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::command::Home;

/// What the server holds, and what the user says that it does.
const WINDOW: u64 = 16_000;
const SAID_WINDOW: u64 = 40_000;
const TURNS: usize = 30;
const TASK: &str = "Read all parts.";
const POLICIES: [&str; 2] = ["evict", "extract"];

/// A server, and the threads that it answers on.
struct LongRunServer {
    server: Server,
    _runtime: Runtime,
}

impl LongRunServer {
    fn start(mock: Mock) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let mock = mock.window(WINDOW).script(script());
        let server = runtime.block_on(Server::start(mock)).unwrap();
        Self {
            server,
            _runtime: runtime,
        }
    }
}

/// Thinks before every turn and reads a file, or two at once; at last it says so.
fn script() -> Script {
    let read = |part: usize| Call {
        name: "read".into(),
        arguments: json!({"path": format!("part{}.txt", part % 8)}),
        id: None,
    };
    let turns = (1..TURNS).map(|turn| Turn {
        think: Some(format!("Turn {turn}: what does the next part say?")),
        say: (turn % 3 == 0).then(|| format!("On to part {turn}.")),
        call: match turn % 2 {
            0 => vec![read(turn), read(turn + 3)],
            _ => vec![read(turn)],
        },
        ..Turn::default()
    });
    let last = Turn {
        think: Some("That was all.".into()),
        ..Turn::say("All parts are read.")
    };
    Script::new(turns.chain([last]))
}

fn home() -> Home {
    let home = Home::new();
    for part in 0..8 {
        let line = |line| format!("part {part}, line {line}: nothing to see here\n");
        home.file(
            &format!("part{part}.txt"),
            (0..80).map(line).collect::<String>(),
        );
    }
    home
}

/// Runs it to its answer. Every request but one was accepted, the task is in each, and the model's
/// thinking comes back as this wire has it.
fn run(model: &str, mock: Mock, policy: &str, thinking: Option<&str>) {
    let home = home();
    let mocked = LongRunServer::start(mock);
    let url = format!("{}/v1", mocked.server.address());
    let window = SAID_WINDOW.to_string();
    let model = ["run", "--model", model, "--base-url", &url];
    let rest = ["--max-context", &window, "--policy", policy, "--json", TASK];
    let thinks = ["--thinking-level", "medium"];
    let said = home.run(model.iter().chain(&thinks).chain(&rest)).done();
    let events: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let outcome = &events.last().unwrap()["outcome"];
    assert_eq!(outcome["text"], "All parts are read.");
    assert_eq!(outcome["turns"], TURNS);
    let count = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!(count("overflow"), 1, "{policy}");
    assert!(count("plan_applied") >= 2, "{policy}");

    let asked = mocked.server.requests();
    let statuses: Vec<u16> = asked.iter().map(|one| one.status).collect();
    let refused = statuses.iter().filter(|status| **status != 200);
    assert_eq!(refused.collect::<Vec<_>>(), [&400], "{policy}");
    assert_eq!(asked.len(), TURNS + 1, "{policy}");
    for one in &asked {
        let body = one.body.to_string();
        assert!(body.contains(TASK), "{policy}: the task stays");
    }
    if let Some(kind) = thinking {
        let kind = format!("\"type\":\"{kind}\"");
        let has_thinking = |one: &RecordedRequest| one.body.to_string().contains(&kind);
        let accepted: Vec<_> = asked.iter().filter(|one| one.status == 200).collect();
        // A plan changes the beginning that thinking may be bound to. Such thinking goes with it,
        // for the whole tool loop.
        let planned = events
            .iter()
            .position(|event| event["event"] == "plan_applied");
        let before = events.iter().take(planned.unwrap());
        let turns = before
            .filter(|event| event["event"] == "turn_start")
            .count();
        assert!(turns > 3, "{policy}: a plan at once, in turn {turns}");
        for (turn, one) in accepted.iter().enumerate().take(turns - 1).skip(1) {
            assert!(has_thinking(one), "{policy}: none in turn {}", turn + 1);
        }
        let is_bound = model.iter().any(|part| part.contains("opus-5-5"));
        let mut after = accepted.iter().skip(turns);
        assert!(
            is_bound || after.all(|one| has_thinking(one)),
            "{policy}: {model:?} lost its thinking by a plan"
        );
    }
}

#[test]
fn chat_completions() {
    for policy in POLICIES {
        run("openai/gpt-5", Mock::chat("openai").unwrap(), policy, None);
    }
}

#[test]
fn responses() {
    for policy in POLICIES {
        let kind = Some("reasoning");
        run("openai-responses/gpt-5", Mock::responses(), policy, kind);
    }
}

#[test]
fn messages() {
    for model in ["claude-sonnet-4-5", "claude-opus-5-5"] {
        for policy in POLICIES {
            let model = format!("anthropic/{model}");
            run(
                &model,
                Mock::messages_without_keys(),
                policy,
                Some("thinking"),
            );
        }
    }
}

/// A minute that carries less than the window is lived with, also where the server names the limit
/// alone.
#[test]
fn a_minutes_allowance() {
    const MINUTE: u64 = 5_000;
    for (model, mock) in [
        ("anthropic/claude-sonnet-4-5", Mock::messages_without_keys()),
        ("openai-responses/gpt-5", Mock::responses()),
    ] {
        let home = home();
        let mocked = LongRunServer::start(mock.tokens_per_minute(MINUTE));
        let url = format!("{}/v1", mocked.server.address());
        let args = ["run", "--model", model, "--base-url", &url, "--policy"];
        let patience = ["--set", "retry.max_attempts=3"];
        let rest = ["evict", "--set", "max_tokens=1000", "--json", TASK];
        let said = home.run(args.iter().chain(&rest).chain(&patience)).done();
        let events = said.out.lines();
        let events: Vec<Value> = events
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let outcome = &events.last().unwrap()["outcome"];
        assert_eq!(outcome["text"], "All parts are read.", "{model}");
        let told: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "overflow")
            .collect();
        let message = told[0]["message"].as_str().unwrap();
        assert!(message.contains("rate limit"), "{model}: {message}");
        let asked = mocked.server.requests();
        let refused = asked.iter().filter(|one| one.status == 429).count();
        // Where most of a request may come from the cache, it is tried three times.
        assert!(told.len() <= 3, "{model}: {told:?}");
        assert!(refused <= 3 * told.len(), "{model}: {refused}");
    }
}
