//! The spans of runs.

use std::sync::{Arc, Mutex};

use plimsoll::model::Failure;
use plimsoll::parallel::{Branch, ParallelOptions, PickFirst, agent_loop_parallel};
use plimsoll::testing::{ScriptedProvider, Turn};
use plimsoll::{
    Agent, AgentBuilder, ContextStrategy, Delta, Error, Tokens, ToolError, Window, tool,
};
use plimsoll_testkit::{ComputedProvider, session_id as id};
use serde_json::{Value, json};

use super::recorder::RecordedSpan;
use super::{has_read, named, names, only, spans_of};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    at: String,
}

const SECRET: &str = "SENTINEL-4711";

/// It looks; and where it is told to look away, it fails.
fn looking(provider: ScriptedProvider) -> AgentBuilder {
    let look = tool("look", "Looks.", |input: Look| async move {
        match input.at.as_str() {
            "away" => Err(ToolError(format!("nothing there, {SECRET}"))),
            at => Ok(format!("{at}: {SECRET}")),
        }
    });
    Agent::builder(provider)
        .system(format!("You look. {SECRET}"))
        .tool(look)
        .max_parallel_tools(4)
        .window(Window::Known(Tokens(32_000)))
}

fn calls() -> ScriptedProvider {
    ScriptedProvider::new([
        Turn::Fail(Failure::RateLimited {
            retry_after_ms: Some(1_500),
            message: format!("slow down, {SECRET}"),
        }),
        Turn::calls([
            ("look", json!({"at": SECRET})),
            ("look", json!({"at": "away"})),
        ]),
        Turn::say(format!("I saw {SECRET}.")),
    ])
}

async fn run(agent: AgentBuilder, name: &str) {
    let agent = agent.build().unwrap();
    let mut session = agent.session(id(name)).await.unwrap();
    let ran = session.run(&format!("Look around. {SECRET}")).await;
    ran.or_else(Error::into_output).unwrap();
}

#[test]
fn a_run_has_a_span_for_each_call_and_nothing_of_what_was_said() {
    let spans = spans_of(|| run(looking(calls()), "s1"));
    assert_eq!(spans.len(), 6, "{:?}", names(&spans));
    let run = only(&spans, "invoke_agent");
    assert_eq!((run.parent, run.failed()), (None, false));
    assert_eq!(run.attributes["otel.kind"], "internal");
    assert!(
        spans
            .iter()
            .all(|span| span.name == "invoke_agent" || span.parent == Some(run.id))
    );
    for (key, value) in [
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.conversation.id", "s1"),
        ("gen_ai.provider.name", "scripted"),
        ("gen_ai.request.model", "model"),
        ("plimsoll.outcome", "answered"),
        ("plimsoll.run", "1"),
        ("plimsoll.turns", "2"),
        ("plimsoll.tool_calls", "2"),
    ] {
        assert_eq!(run.attributes[key], value, "{key}");
    }

    let chats = named(&spans, "chat model");
    let [limited, asking, answering] = &chats[..] else {
        panic!("{:?}", names(&spans));
    };
    assert!(
        chats
            .iter()
            .all(|chat| chat.attributes["otel.kind"] == "client")
    );
    assert!(limited.failed());
    assert_eq!(limited.attributes["error.type"], "rate_limited");
    assert_eq!(limited.attributes["plimsoll.attempt"], "1");
    assert!(!asking.failed());
    assert_eq!(asking.attributes["plimsoll.attempt"], "2");
    assert!(!asking.attributes.contains_key("error.type"));
    assert_eq!(
        asking.attributes["gen_ai.response.finish_reasons"],
        r#"["tool_call"]"#
    );
    assert_eq!(
        answering.attributes["gen_ai.response.finish_reasons"],
        r#"["stop"]"#
    );
    let sum = |key: &str| -> u64 {
        let of = [asking, answering].map(|chat| chat.attributes[key].parse::<u64>().unwrap());
        of.iter().sum()
    };
    for key in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert!(sum(key) > 0);
        assert_eq!(sum(key).to_string(), run.attributes[key], "{key}");
    }
    let first = &answering.attributes["gen_ai.response.time_to_first_chunk"];
    assert!(first.parse::<f64>().unwrap() >= 0.0);
    let [(event, retry)] = &run.events[..] else {
        panic!("{:?}", run.events);
    };
    assert_eq!((&**event, &*retry["error.type"]), ("retry", "rate_limited"));
    // As long as was asked, and a little more.
    let wait: f64 = retry["plimsoll.wait"].parse().unwrap();
    assert!((1.5..=1.8).contains(&wait), "{wait}");

    let looks = named(&spans, "execute_tool look");
    assert_eq!(looks.len(), 2);
    let failed = |failed| {
        let found = looks.iter().find(|look| look.failed() == failed);
        found.unwrap().attributes.clone()
    };
    assert_eq!(failed(true)["error.type"], "tool_error");
    assert_eq!(failed(true)["gen_ai.tool.call.id"], "call_2_1");
    assert_eq!(failed(false)["gen_ai.tool.call.id"], "call_2_0");
    assert_eq!(failed(false)["gen_ai.tool.name"], "look");
    assert_eq!(failed(false)["gen_ai.tool.type"], "function");

    assert!(!has_read(&spans, SECRET));
    assert!(has_read(&spans, "execute_tool look"));
}

#[test]
fn contents_are_sent_to_whoever_asks_for_them() {
    let agent = looking(calls()).record_contents(true);
    let spans = spans_of(|| run(agent, "s"));
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let chats = named(&spans, "chat model");
    let last = &chats.last().unwrap().attributes;
    let system = parse(&last["gen_ai.system_instructions"]);
    assert_eq!(system[0]["content"], format!("You look. {SECRET}"));
    let input = parse(&last["gen_ai.input.messages"]);
    let roles: Vec<&str> = input
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool"]);
    assert_eq!(input[1]["parts"][0]["type"], "tool_call");
    assert_eq!(
        input[2]["parts"][0]["response"],
        format!("{SECRET}: {SECRET}")
    );
    let output = parse(&last["gen_ai.output.messages"]);
    assert_eq!(output[0]["finish_reason"], "stop");
    assert_eq!(output[0]["parts"][0]["content"], format!("I saw {SECRET}."));
    let looks = named(&spans, "execute_tool look");
    let results: Vec<&String> = looks
        .iter()
        .map(|look| &look.attributes["gen_ai.tool.call.result"])
        .collect();
    assert!(
        results.iter().all(|result| result.contains(SECRET)),
        "{results:?}"
    );
    // What a provider says is no content, and may quote it.
    assert!(!has_read(&spans, "slow down"));
}

#[test]
fn a_sub_agent_is_below_the_tool_call_that_started_it() {
    let spans = spans_of(|| async {
        let scout = |name: &str| {
            let model = ScriptedProvider::new([
                Turn::call("look", json!({"at": "sea"})),
                Turn::say("Fuel."),
            ]);
            looking(model).build().unwrap().as_tool(name, "Scouts.")
        };
        let captain = ScriptedProvider::new([
            Turn::calls([
                ("port", json!({"task": "go"})),
                ("starboard", json!({"task": "go"})),
            ]),
            Turn::say("Done."),
        ]);
        let captain = looking(captain)
            .config_id("captain")
            .tool(scout("port"))
            .tool(scout("starboard"));
        run(captain, "fleet").await;
    });
    let captain = only(&spans, "invoke_agent captain");
    for name in ["port", "starboard"] {
        let call = only(&spans, &format!("execute_tool {name}"));
        let agent = only(&spans, &format!("invoke_agent {name}"));
        assert_eq!(
            (call.parent, agent.parent),
            (Some(captain.id), Some(call.id))
        );
        assert!(agent.attributes["gen_ai.conversation.id"].starts_with(&format!("fleet.{name}.")));
        let below: Vec<&str> = children(&spans, agent)
            .iter()
            .map(|span| span.name.as_str())
            .collect();
        assert_eq!(below, ["chat model", "execute_tool look", "chat model"]);
    }
}

fn children<'a>(spans: &'a [RecordedSpan], of: &RecordedSpan) -> Vec<&'a RecordedSpan> {
    spans
        .iter()
        .filter(|span| span.parent == Some(of.id))
        .collect()
}

#[test]
fn branches_are_runs_with_their_own_names() {
    let spans = spans_of(|| async {
        let agent = |says: &str| {
            looking(ScriptedProvider::new([Turn::say(says)]))
                .build()
                .unwrap()
        };
        let mut session = agent("").session(id("trunk")).await.unwrap();
        let branches = vec![
            Branch::new(agent("One.")).config_id("one"),
            Branch::new(agent("Two.")).config_id("two"),
        ];
        let options = ParallelOptions::default();
        agent_loop_parallel(&mut session, "Which?", branches, &PickFirst, options)
            .await
            .unwrap();
    });
    for name in ["one", "two"] {
        let branch = only(&spans, &format!("invoke_agent {name}"));
        assert!(!branch.failed());
    }
}

/// An agent that fetches long things until a plan is due; its summaries have one call each.
fn fetching(strategy: &str) -> AgentBuilder {
    let calls = (0..12).map(|n| Turn::call("fetch", json!({"at": format!("row {n}")})));
    let model = ScriptedProvider::new(calls).then_always(Turn::say("done"));
    let summary = "## Goal\n- fetch\n## Constraints\n- none\n## Decisions\n- none\n## Files\n- none\n\
                   ## Errors\n- none\n## Open work\n- the rest\n## Next step\n- fetch the next";
    let fetch = tool("fetch", "Fetches.", |input: Look| async move {
        Ok::<_, ToolError>(format!("{} of {SECRET}\n", input.at).repeat(120))
    });
    Agent::builder(model)
        .tool(fetch.idempotent())
        .context_strategy(ContextStrategy::named(strategy, Some(Tokens(6_000))).unwrap())
        .summarizer(Arc::new(
            ScriptedProvider::new([]).then_always(Turn::say(summary)),
        ))
        .window(Window::Known(Tokens(32_000)))
        // Tools that join with the first plan would add to what it leaves.
        .recall(false)
}

#[test]
fn plans_and_calls_of_summaries_have_spans() {
    let spans = spans_of(|| run(fetching("summarize"), "s"));
    let run = only(&spans, "invoke_agent");
    let plans = named(&spans, "compact");
    assert!(!plans.is_empty());
    let number = |span: &RecordedSpan, key: &str| span.attributes[key].parse::<f64>().unwrap();
    for plan in &plans {
        assert_eq!(plan.parent, Some(run.id));
        let (before, after) = (
            number(plan, "plimsoll.plan.tokens_before"),
            number(plan, "plimsoll.plan.tokens_after"),
        );
        assert_eq!(before - after, number(plan, "plimsoll.plan.tokens_freed"));
        assert_eq!(plan.attributes["plimsoll.plan.why"], "request");
    }
    let chats = named(&spans, "chat model");
    let of_summary = chats
        .iter()
        .filter(|chat| chat.attributes["plimsoll.purpose"] == "summary");
    let parents: Vec<_> = of_summary.map(|summary| summary.parent).collect();
    assert!(!parents.is_empty() && parents.iter().all(|parent| *parent == Some(run.id)));
    assert!(!has_read(&spans, SECRET));
}

#[test]
fn a_refusal_as_too_long_is_told_and_so_is_the_limit_that_ends_a_run() {
    let spans = spans_of(|| async {
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
        run(agent, "s").await;
    });
    let run = only(&spans, "invoke_agent");
    let refused = named(&spans, "chat model");
    let refused = refused
        .iter()
        .filter(|chat| chat.failed())
        .collect::<Vec<_>>();
    assert!(!refused.is_empty());
    assert!(
        refused
            .iter()
            .all(|chat| chat.attributes["error.type"] == "overflow")
    );
    let told = run
        .events
        .iter()
        .find(|(name, _)| name == "overflow")
        .unwrap();
    assert_eq!(told.1["plimsoll.window"], "3000");
    assert!(!run.failed());
    assert_eq!(run.attributes["plimsoll.outcome"], "max_turns");
    assert_eq!(run.attributes["plimsoll.limit_hit"], "true");
}

#[test]
fn a_refused_call_has_the_status_that_it_was_refused_with() {
    let statuses = Mutex::new(vec![401, 429]);
    // It is refused each time, with the status of the try.
    let refusing = ComputedProvider::new("scripted/model", move |_, deltas| {
        let status = statuses.lock().unwrap().pop().unwrap();
        deltas(Delta::Refused { status });
        let message = "no".to_owned();
        Err(match status {
            429 => Failure::RateLimited {
                retry_after_ms: Some(1),
                message,
            },
            _ => Failure::Auth { message },
        })
    });
    let agent = Agent::builder(refusing).window(Window::Known(Tokens(32_000)));
    let spans = spans_of(|| run(agent, "s"));
    let chats = named(&spans, "chat model");
    let statuses = chats.iter().map(|chat| {
        let of = |key: &str| chat.attributes[key].as_str();
        (of("error.type"), of("http.response.status_code"))
    });
    assert_eq!(
        statuses.collect::<Vec<_>>(),
        [("rate_limited", "429"), ("auth", "401")]
    );
}

#[test]
fn a_run_that_fails_is_an_error() {
    let spans = spans_of(|| async {
        let refused = Turn::Fail(Failure::Auth {
            message: format!("key {SECRET} is not known"),
        });
        run(looking(ScriptedProvider::new([refused])), "refused").await;
    });
    for name in ["invoke_agent", "chat model"] {
        let of = |span: &&RecordedSpan| {
            span.name == name && span.attributes["gen_ai.conversation.id"] == "refused"
        };
        let span = spans.iter().find(of).unwrap();
        assert_eq!(
            (span.failed(), &*span.attributes["error.type"]),
            (true, "auth"),
            "{name}"
        );
    }
    assert!(!has_read(&spans, SECRET));
}
