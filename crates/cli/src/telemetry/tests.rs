//! Exports as collectors receive them, and collectors that misbehave: no run becomes slower or
//! changes because of them, and the user is told once. Each test has its own collector.

mod collector;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use plimsoll::model::Failure;
use plimsoll::pricing::{PriceSheet, Rates};
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{Agent, AgentBuilder, ContextStrategy, Money, Tokens, ToolError, Window, tool};
use serde_json::json;

use super::dispatch;
use super::export::FINISH_TIMEOUT;
use super::settings::Settings;
use collector::{Collector, Point};

const DOCS: &str = include_str!("../../../../docs/telemetry.md");
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

/// The points of a metric with these labels.
fn points<'a>(points: &'a [Point], name: &str, labels: &[(&str, &str)]) -> Vec<&'a Point> {
    let fits = |point: &&Point| {
        let has = |(key, value): &(&str, &str)| {
            point.attributes.get(*key).map(String::as_str) == Some(*value)
        };
        point.name == name && labels.iter().all(has)
    };
    points.iter().filter(fits).collect()
}

#[test]
fn metrics_have_units_buckets_and_few_labels() {
    let collector = Collector::start();
    assert_eq!(run(&collector.settings(), looking()), None);
    let all = collector.points();
    let one = |name: &str, labels: &[(&str, &str)]| {
        let found = points(&all, name, labels);
        assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
        found[0].clone()
    };
    let model = ("gen_ai.request.model", "model");
    let spans = collector.spans();
    let run = spans.iter().find(|span| span.name == "invoke_agent");
    let run = run.unwrap();
    for (kind, key) in [
        ("input", "gen_ai.usage.input_tokens"),
        ("output", "gen_ai.usage.output_tokens"),
    ] {
        let tokens = one(
            "gen_ai.client.token.usage",
            &[model, ("gen_ai.token.type", kind)],
        );
        assert_eq!((tokens.count, &*tokens.unit), (2, "{token}"));
        assert_eq!(tokens.value.to_string(), run.attributes[key]);
        assert_eq!(tokens.bounds.last(), Some(&67_108_864.0));
    }
    let limited = [model, ("error.type", "rate_limited")];
    let failed = one("gen_ai.client.operation.duration", &limited);
    assert_eq!(
        (failed.count, &*failed.unit, failed.bounds[0]),
        (1, "s", 0.01)
    );
    assert_eq!(failed.bounds.last(), Some(&81.92));
    let calls = points(&all, "gen_ai.client.operation.duration", &[model]);
    assert_eq!(calls.iter().map(|point| point.count).sum::<u64>(), 3);
    let first = one("gen_ai.client.operation.time_to_first_chunk", &[model]);
    assert_eq!(first.count, 2);
    let labels = [("gen_ai.tool.name", "look"), ("error.type", "tool_error")];
    one("gen_ai.execute_tool.duration", &labels);
    let invented = ("gen_ai.tool.name", "invented_by_the_model");
    assert!(points(&all, "gen_ai.execute_tool.duration", &[invented]).is_empty());
    let duration = one("gen_ai.invoke_agent.duration", &[model]);
    assert_eq!((duration.count, duration.bounds[0]), (1, 0.1));
    let retries = one("plimsoll.retries", &[model]);
    assert_eq!((retries.value, &*retries.unit), (1.0, "{retry}"));
    let cost = one("plimsoll.cost", &[model]);
    assert_eq!(cost.value.to_string(), run.attributes["plimsoll.cost"]);
    for point in &all {
        assert!(DOCS.contains(&format!("`{}`", point.name)), "{point:?}");
        for label in point.attributes.keys() {
            let is_unbounded = label.contains("conversation") || label.contains("call.id");
            assert!(!is_unbounded, "{point:?}");
        }
    }
    assert!(!collector.has_read(SECRET));
    assert!(collector.has_read("execute_tool look"));
    assert_eq!(collector.resource()["service.name"], "plimsoll");
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
}

#[test]
fn plans_are_counted() {
    let calls = (0..12).map(|n| Turn::call("fetch", json!({"at": format!("row {n}")})));
    let model = ScriptedProvider::new(calls).then_always(Turn::say("done"));
    let fetch = tool("fetch", "Fetches.", |input: Look| async move {
        Ok::<_, ToolError>(format!("{} of {SECRET}\n", input.at).repeat(120))
    });
    let agent = Agent::builder(model)
        .tool(fetch.idempotent())
        .context_strategy(ContextStrategy::named("sliding_window", Some(Tokens(6_000))).unwrap())
        .window(Window::Known(Tokens(32_000)));
    let collector = Collector::start();
    assert_eq!(run(&collector.settings(), agent), None);
    let spans = collector.spans();
    let plans: Vec<_> = spans.iter().filter(|span| span.name == "compact").collect();
    let freed = plans.iter().map(|plan| {
        let freed = &plan.attributes["plimsoll.plan.tokens_freed"];
        freed.parse::<f64>().unwrap()
    });
    let all = collector.points();
    let why = ("plimsoll.plan.why", "request");
    let value = |name| points(&all, name, &[why])[0].value;
    assert_eq!(value("plimsoll.plans"), plans.len() as f64);
    assert_eq!(value("plimsoll.plan.tokens_freed"), freed.sum::<f64>());
}

#[test]
fn refusals_and_limits_are_counted() {
    let watch = tool("watch", "", |_: Look| async move {
        Ok::<_, ToolError>("all hands on deck ".repeat(200))
    });
    let model = ScriptedProvider::new([])
        .then_always(Turn::call("watch", json!({"at": "sea"})))
        .with_window(Tokens(3_000));
    // It is told of a window that there is not.
    let agent = Agent::builder(model)
        .tool(watch.idempotent())
        .window(Window::Known(Tokens(30_000)))
        .max_turns(12);
    let collector = Collector::start();
    assert_eq!(run(&collector.settings(), agent), None);
    let spans = collector.spans();
    let refused = spans
        .iter()
        .filter(|span| span.attributes.get("error.type").map(String::as_str) == Some("overflow"));
    let refused = refused.count();
    assert!(refused > 0);
    let all = collector.points();
    let overflows = points(&all, "plimsoll.overflows", &[]);
    assert_eq!(overflows[0].value, refused as f64);
    let ended = ("plimsoll.outcome", "max_turns");
    assert_eq!(points(&all, "plimsoll.limit_hits", &[ended])[0].value, 1.0);
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
    for change in [
        (|_| {}) as fn(&mut Settings),
        |settings| settings.metrics = None,
        |settings| settings.traces = None,
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://user:pass-word@{}", listener.local_addr().unwrap());
        let mut settings = settings(&address, EXPORT_TIMEOUT);
        change(&mut settings);
        let began = Instant::now();
        let warning = run(&settings, talk()).unwrap();
        let took = began.elapsed();
        assert!(took < FINISH_TIMEOUT + EXPORT_TIMEOUT / 2, "{took:?}");
        assert!(!warning.contains("pass-word"), "{warning}");
        assert!(warning.contains("no answer within 3 s"), "{warning}");
    }
}

#[test]
fn settings_that_cannot_be_followed_are_refused() {
    let long = Duration::from_secs(1);
    let error = |settings: &Settings| dispatch(settings).2.join("; ");
    for address in ["localhost:4318", "ftp://x", "no address at all"] {
        let whole = settings(address, long);
        assert!(error(&whole).contains("spans"), "{address}");
        // One that is good does not make the other so.
        let half = Settings {
            traces: Some("http://localhost:4318/v1/traces".into()),
            ..whole
        };
        assert!(error(&half).contains("metrics"), "{address}");
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
