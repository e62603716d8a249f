//! Exports as collectors receive them, and collectors that misbehave: no run becomes slower or
//! changes because of them, and the user is told once. Each test has its own collector.

mod collector;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use plimsoll::model::Failure;
use plimsoll::pricing::{PriceSheet, Rates};
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, AgentBuilder, Money, Tokens, ToolError, Window, tool};
use serde_json::json;

use super::dispatch;
use super::export::FINISH_TIMEOUT;
use super::settings::Settings;
use collector::Collector;

const SECRET: &str = "SENTINEL-4711";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    at: String,
}

/// Runs an agent while its telemetry is exported. Returns the warning at the end.
fn run(settings: &Settings, agent: AgentBuilder) -> Option<String> {
    let (dispatch, telemetry, faults) = dispatch(settings);
    assert_eq!(faults, [""; 0]);
    let dispatch = dispatch.unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let agent = agent.build().unwrap();
    // One thread, so that it is the default of all tasks.
    tracing::dispatcher::with_default(&dispatch, || {
        runtime.block_on(async {
            let ran = agent.run(&format!("Look around. {SECRET}")).await;
            ran.or_else(plimsoll::Error::into_output).unwrap();
        });
    });
    drop((runtime, dispatch));
    telemetry.finish()
}

/// An agent whose first call is refused, and whose second calls fail in part.
fn looking() -> AgentBuilder {
    let provider = ScriptedProvider::new([
        Turn::Fail(Failure::RateLimited {
            retry_after_ms: Some(1),
            message: format!("slow down, {SECRET}"),
        }),
        Turn::calls([
            ("look", json!({"at": SECRET})),
            ("look", json!({"at": "away"})),
            ("invented_by_the_model", json!({})),
        ]),
        Turn::say(format!("I saw {SECRET}.")),
    ]);
    let look = tool("look", "Looks.", |input: Look| async move {
        match input.at.as_str() {
            "away" => Err(ToolError(format!("nothing there, {SECRET}"))),
            at => Ok(format!("{at}: {SECRET}")),
        }
    });
    let rates = Rates {
        input: Money::from_dollars(3.0).unwrap(),
        output: Money::from_dollars(15.0).unwrap(),
        ..Rates::FREE
    };
    Agent::builder(provider)
        .system(format!("You look. {SECRET}"))
        .tool(look)
        .max_parallel_tools(4)
        .prices(PriceSheet::of(rates))
        .window(Window::Known(Tokens(32_000)))
}

#[test]
fn spans_are_one_trace_with_their_kinds_states_and_events() {
    let collector = Collector::start();
    assert_eq!(run(&collector.settings(), looking()), None);
    let spans = collector.spans();
    let run = spans.iter().find(|span| span.name == "invoke_agent");
    let run = run.unwrap();
    assert!(run.parent.is_empty());
    assert_eq!((run.kind, run.status), (1, 0));
    let [(event, retry)] = &run.events[..] else {
        panic!("{:?}", run.events);
    };
    assert_eq!((&**event, &*retry["error.type"]), ("retry", "rate_limited"));
    for span in spans.iter().filter(|span| span.id != run.id) {
        assert_eq!((&span.trace, &span.parent), (&run.trace, &run.id));
    }
    let chats: Vec<_> = spans.iter().filter(|span| span.kind == 3).collect();
    let [refused, calling, answering] = &chats[..] else {
        panic!("{chats:?}");
    };
    assert_eq!((refused.status, calling.status), (2, 0));
    let reasons = |span: &collector::SentSpan| {
        let reasons = &span.attributes["gen_ai.response.finish_reasons"];
        reasons.clone()
    };
    assert_eq!(reasons(calling), "[tool_call]");
    assert_eq!(reasons(answering), "[stop]");
    assert!(!collector.has_read(SECRET));
    assert!(collector.has_read("execute_tool look"));
    assert_eq!(collector.resource()["service.name"], "plimsoll");
}

fn settings(address: &str, timeout: Duration) -> Settings {
    let settings = Settings::from_variables(|name| {
        (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| address.to_owned())
    });
    Settings {
        timeout,
        ..settings
    }
}

fn talk() -> AgentBuilder {
    Agent::builder(ScriptedProvider::new([Turn::say("Land!")]))
}

#[test]
fn an_absent_collector_is_reported_once() {
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let settings = settings(&format!("http://{address}"), Duration::from_secs(10));
    let warning = run(&settings, talk()).unwrap();
    assert!(warning.contains(&address.to_string()), "{warning}");
    assert!(warning.contains("the run is not affected"), "{warning}");
}

/// Longer than any end may last: what bounds it is the end's own bound.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn a_silent_collector_is_waited_for_for_a_few_seconds() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://user:pass-word@{}", listener.local_addr().unwrap());
    let began = Instant::now();
    let warning = run(&settings(&address, EXPORT_TIMEOUT), talk()).unwrap();
    let took = began.elapsed();
    assert!(took < FINISH_TIMEOUT + EXPORT_TIMEOUT / 2, "{took:?}");
    assert!(!warning.contains("pass-word"), "{warning}");
    assert!(warning.contains("no answer within 3 s"), "{warning}");
}

#[test]
fn settings_that_cannot_be_followed_are_refused() {
    let long = Duration::from_secs(1);
    let error = |settings: &Settings| dispatch(settings).2.join("; ");
    for address in ["localhost:4318", "ftp://x", "no address at all"] {
        let refused = error(&settings(address, long));
        assert!(refused.contains("spans"), "{address}");
    }
    let grpc = Settings {
        protocol: Some("grpc".into()),
        ..settings("http://localhost:4317", long)
    };
    assert!(error(&grpc).contains("4318"));
    let log = Settings {
        log: Some("plimsoll=loud".into()),
        ..settings("", long)
    };
    assert!(error(&log).contains("PLIMSOLL_LOG"));
}
