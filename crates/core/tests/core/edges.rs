//! Edge cases of a run: late messages, empty replies, failures, and settings for a single run.
//! Ordinary runs have their own tests.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use plimsoll_agent::{EndReason, Event, ExecutionLimits, Failure, Request, SessionEvent};
use plimsoll_context::{ContextStrategy, Delta, Money, Part, PriceSheet, Reply, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, AgentLoopConfig, Branch, Error, MemoryStore, ParallelOptions, PickFirst,
    Provider, Remote, Session, SessionStore, ToolError, Window, agent_loop, agent_loop_parallel,
    tool,
};
use plimsoll_testkit::{Warnings, session_id as id, view_items as items};
use serde_json::{Value, json};

use crate::{Nothing, Panics, price_sheet};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    #[allow(dead_code)]
    n: usize,
}

fn pinned(session: &Session) -> Vec<String> {
    session.pinned().map(|(_, said)| said.text()).collect()
}

// What comes too late.

/// A model during whose answer somebody speaks.
struct Interjects {
    reach: Arc<OnceLock<Remote>>,
    says: String,
}

#[async_trait]
impl Provider for Interjects {
    fn model(&self) -> &str {
        "scripted/interjects"
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let model = ScriptedProvider::new([Turn::say("done")]);
        let reply = model.call(request, deltas).await;
        assert!(self.reach.get().unwrap().steer(self.says.as_str()).await);
        reply
    }
}

#[tokio::test]
async fn what_comes_after_the_end_is_told_too() {
    let warnings = Warnings::default();
    let remote: Arc<OnceLock<Remote>> = Arc::default();
    let reach = Arc::clone(&remote);
    let late = format!("too late {}", "and more ".repeat(40));
    let says = late.clone();
    let agent = Agent::builder(Interjects { reach, says })
        .observer(warnings.observer())
        .build()
        .unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    remote.set(session.remote()).unwrap();
    let output = session.run("go").await.unwrap();
    assert_eq!(output.text, "done");
    assert_eq!(output.undelivered, [[Part::text(late.clone())]]);
    let told = warnings.all();
    assert_eq!(told.len(), 1, "{told:?}");
    let first: String = late.chars().take(80).collect();
    assert!(told[0].contains(&first), "{told:?}");
    let more: String = late.chars().take(81).collect();
    assert!(!told[0].contains(&more), "{told:?}");
}

// What says nothing.

#[tokio::test]
async fn what_is_blank_is_not_said() {
    let warnings = Warnings::default();
    let begun = Arc::new(tokio::sync::Notify::new());
    let go = Arc::new(tokio::sync::Notify::new());
    let held = (Arc::clone(&begun), Arc::clone(&go));
    let hold = move |_: Nothing| {
        let (begun, go) = held.clone();
        async move {
            begun.notify_one();
            go.notified().await;
            Ok::<_, ToolError>("held")
        }
    };
    let provider = ScriptedProvider::new([Turn::call("hold", json!({})), Turn::say("done")]);
    let agent = Agent::builder(provider.clone())
        .tool(tool("hold", "Holds.", hold))
        .observer(warnings.observer())
        .build()
        .unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    for blank in [vec![], vec![Part::text("")], vec![Part::text(" \n"); 2]] {
        let refused = session.run_parts(blank).await;
        assert!(matches!(refused, Err(Error::EmptyTask)), "{refused:?}");
    }
    let remote = session.remote();
    let (output, ()) = tokio::join!(session.run("go"), async {
        begun.notified().await;
        assert!(!remote.steer("").await);
        assert!(!remote.steer("\n ").await);
        assert!(!remote.steer(vec![]).await);
        assert!(!remote.follow_up(vec![Part::text("\t")]).await);
        go.notify_one();
    });
    let output = output.unwrap();
    assert_eq!((output.text.as_str(), output.turns), ("done", 2));
    assert!(output.undelivered.is_empty());
    let requests = provider.requests();
    let roles = requests[1]["messages"].as_array().unwrap().iter();
    let roles: Vec<&str> = roles.map(|said| said["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
}

// What breaks down.

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_is_a_model_that_fails() {
    let provider = Panics::default();
    let agent = Agent::builder(provider.clone()).build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let output = session.run("go").await.or_else(Error::into_output);
    let output = output.unwrap();
    assert!(
        matches!(output.reason, EndReason::Failed { .. }),
        "{:?}",
        output.reason
    );
    assert!(output.text.contains("out of rum"), "{}", output.text);
    assert_eq!(
        provider.0.load(Ordering::SeqCst),
        1,
        "waiting does not cure it"
    );
}

#[tokio::test]
async fn an_observer_that_panics_sees_no_more() {
    let warnings = Warnings::default();
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let agent = Agent::builder(ScriptedProvider::new([]).then_always(Turn::say("done")))
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            if matches!(event, Event::TurnStart { .. }) {
                *count.lock().unwrap() += 1;
                panic!("out of rum");
            }
        })
        .observer(warnings.observer())
        .build()
        .unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(session.run("go").await.unwrap().text, "done");
    }
    assert_eq!(*seen.lock().unwrap(), 1);
    let told = warnings.all();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("out of rum"), "{told:?}");
}

// What holds for one run.

#[tokio::test]
async fn dynamic_context_can_be_taken_back() {
    for own in [None, Some("the agent's own")] {
        let provider = ScriptedProvider::new([]).then_always(Turn::say("ok"));
        let mut agent = Agent::builder(provider.clone());
        if let Some(own) = own {
            agent = agent.configure(|it| it.dynamic_context = Some(own.into()));
        }
        let mut session = agent.build().unwrap().session(id("s")).await.unwrap();
        session.state_mut().dynamic_context = Some("wind: north".into());
        session.run("one").await.unwrap();
        session.state_mut().dynamic_context = None;
        session.run("two").await.unwrap();
        let requests: Vec<String> = provider.requests().iter().map(Value::to_string).collect();
        assert!(requests[0].contains("wind: north"));
        assert!(!requests[1].contains("wind: north"), "{}", requests[1]);
        assert_eq!(requests[1].contains("the agent's own"), own.is_some());
    }
}

/// An agent that summarises what its tool has returned.
fn summarizes(provider: &ScriptedProvider) -> AgentBuilder {
    let fetch = |_: Number| async { Ok::<_, ToolError>("all is well here\n".repeat(250)) };
    Agent::builder(provider.clone())
        .tool(tool("fetch", "Fetches.", fetch).idempotent())
        .context_strategy(ContextStrategy::named("summarize", Some(Tokens(6_000))).unwrap())
        .window(Window::Known(Tokens(32_000)))
}

fn fetches(times: usize) -> Vec<Turn> {
    let fetch = |n| Turn::call("fetch", json!({ "n": n }));
    (0..times).map(fetch).collect()
}

#[tokio::test]
async fn another_model_for_a_run_writes_its_summaries_too() {
    let before = ScriptedProvider::new([]).then_always(Turn::say("ok"));
    let agent = summarizes(&before).build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let now = ScriptedProvider::new(fetches(10)).then_always(Turn::say("done"));
    let config = AgentLoopConfig {
        provider_override: Some(Arc::new(now.clone())),
        ..AgentLoopConfig::default()
    };
    let output = agent_loop(&mut session, "go", &config).await.unwrap();
    assert!(now.requests().len() > 10, "{output:?}");
    assert_eq!(before.requests().len(), 0);
    session.run("again").await.unwrap();
    assert!(!before.requests().is_empty());
    // One of its own goes on writing them.
    let (before, short) = (
        before,
        ScriptedProvider::new([]).then_always(Turn::say("short")),
    );
    let agent = summarizes(&before).summarizer(Arc::new(short.clone()));
    let mut session = agent.build().unwrap().session(id("t")).await.unwrap();
    let now = ScriptedProvider::new(fetches(10)).then_always(Turn::say("done"));
    let config = AgentLoopConfig {
        provider_override: Some(Arc::new(now)),
        ..AgentLoopConfig::default()
    };
    agent_loop(&mut session, "go", &config).await.unwrap();
    assert!(!short.requests().is_empty());
}

#[tokio::test]
async fn whoever_writes_summaries_must_have_a_price_under_a_limit_of_money() {
    let says = || ScriptedProvider::new([]).then_always(Turn::say("ok"));
    let scout = |priced: Option<PriceSheet>| {
        let scout = summarizes(&says())
            .prices(price_sheet(2.0))
            .summarizer(Arc::new(says()));
        match priced {
            Some(sheet) => scout.summarizer_prices(sheet).build().unwrap(),
            None => scout.build().unwrap(),
        }
    };
    let limits = || ExecutionLimits {
        max_cost: Money::from_dollars(1.0).ok(),
        ..ExecutionLimits::turns(9)
    };
    for priced in [None, Some(price_sheet(2.0))] {
        let known = priced.is_some();
        let calls = Turn::call("scout", json!({"task": "x"}));
        let model = ScriptedProvider::new([calls]).then_always(Turn::say("done"));
        let captain = Agent::builder(model.clone())
            .tool(scout(priced).as_tool("scout", ""))
            .prices(price_sheet(2.0))
            .execution_limits(limits())
            .build()
            .unwrap();
        captain.run("go").await.unwrap();
        let told = model.requests()[1].to_string();
        let refused = "the prices of `";
        assert_eq!(told.contains(refused), !known, "{told}");
        // As a branch.
        let mut session = captain.session(id("s")).await.unwrap();
        let options = ParallelOptions {
            limits: Some(limits()),
        };
        let branches = vec![Branch::new(scout(priced)), Branch::new(scout(priced))];
        let first = PickFirst;
        let outcome = agent_loop_parallel(&mut session, "?", branches, &first, options);
        let outcome = outcome.await.unwrap();
        assert_eq!(outcome.answered, known, "{}", outcome.text);
        assert_eq!(outcome.text.contains(refused), !known, "{}", outcome.text);
        // For one run.
        let mut session = scout(priced).session(id("t")).await.unwrap();
        let config = AgentLoopConfig {
            execution_limits: ExecutionLimits {
                max_cost: limits().max_cost,
                ..ExecutionLimits::default()
            },
            ..AgentLoopConfig::default()
        };
        let output = agent_loop(&mut session, "go", &config).await;
        assert_eq!(output.is_ok(), known, "{output:?}");
    }
}

// What was reserved.

#[tokio::test]
async fn agents_at_once_leave_the_caller_its_last_answer() {
    for rows in [20, 50, 100] {
        let fetch =
            move |_: Number| async move { Ok::<_, ToolError>("all is well here\n".repeat(rows)) };
        let below = ScriptedProvider::new(fetches(100));
        let scout = Agent::builder(below)
            .tool(tool("fetch", "Fetches.", fetch).idempotent())
            .build()
            .unwrap();
        let both = [
            ("scout", json!({"task": "east"})),
            ("scout", json!({"task": "west"})),
        ];
        let model = ScriptedProvider::new([Turn::calls(both)]).then_always(Turn::say("done"));
        let store = MemoryStore::default();
        let captain = Agent::builder(model.clone())
            .tool(scout.as_tool("scout", ""))
            .execution_limits(ExecutionLimits {
                max_total_tokens: Some(Tokens(60_000)),
                ..ExecutionLimits::turns(9)
            })
            .max_parallel_tools(2)
            .store(Arc::new(store.clone()))
            .build()
            .unwrap();
        let output = captain.run("go").await.unwrap();
        println!(
            "{rows}: {} {:?}",
            output.tokens_used.total_tokens(),
            output.reason
        );
        assert_eq!(output.text, "done", "{rows}: {output:?}");
        assert!(
            output.tokens_used.total_tokens() <= Tokens(60_000),
            "{rows}"
        );
        assert_eq!(store.list().await.unwrap().len(), 3);
    }
}

// What is undone.

#[tokio::test]
async fn what_the_host_has_pinned_since_stays_when_a_run_is_undone() {
    let provider = ScriptedProvider::new([]).then_always(Turn::say("ok"));
    let store = MemoryStore::default();
    let agent = Agent::builder(provider.clone()).store(Arc::new(store.clone()));
    let agent = agent.build().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    session.pin_text("Keep to the left.").await.unwrap();
    session.run("one").await.unwrap();
    let before = items(&session);
    session.run("two").await.unwrap();
    session
        .pin_text("Ask before you land.\nAlways.")
        .await
        .unwrap();
    drop(session);
    let mut session = agent.session(id("s")).await.unwrap();
    session.run("three").await.unwrap();
    let all = pinned(&session);
    assert_eq!(all.len(), 2);
    for run in [3, 2] {
        assert_eq!(session.undo().await.unwrap(), run);
        assert_eq!(pinned(&session), all, "{run}");
    }
    // The view is what it was, and what was pinned is behind it.
    let now = items(&session);
    assert_eq!(now[..before.len()], before);
    assert_eq!(now.len(), before.len() + 1);
    // The same once it is read again.
    drop(session);
    let session = agent.session(id("s")).await.unwrap();
    assert_eq!(items(&session), now);
}

/// Otherwise the run only says afterwards that it did nothing.
#[tokio::test]
async fn a_tool_that_nobody_can_approve_is_reported_before_the_run() {
    let deploy = |_: Nothing| async { Ok::<_, ToolError>("deployed".to_owned()) };
    for has_gate in [false, true] {
        let told = Warnings::default();
        let model = ScriptedProvider::new([Turn::say("hello")]);
        let mut builder = Agent::builder(model)
            .tool(tool("deploy", "Deploys.", deploy).asks())
            .observer(told.observer());
        if has_gate {
            builder = builder.gate(plimsoll_core::AllowAll);
        }
        builder.build().unwrap().run("hi").await.unwrap();
        let warning = "calls of `deploy` require approval, and there is nobody to ask, so they are \
                       refused; set a gate or permissions";
        let is_told = told.all().iter().any(|text| text == warning);
        assert_eq!(is_told, !has_gate, "{:?}", told.all());
    }
}
