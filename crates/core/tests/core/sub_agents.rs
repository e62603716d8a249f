//! Agents as tools of other agents: the result that the caller's model reads, the reservations, and
//! the contents of the logs.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{
    EndReason, Entry, Event, ExecutionLimits, LimitKind, Permission, PermissionMode,
    PermissionRule, Permissions, SessionEvent, Spend, TurnTrigger,
};
use plimsoll_context::{Money, PriceSheet, Tokens, ToolSpec, Usage};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, AllowAll, DenyAll, MAX_DEPTH, MemoryStore, SessionStore, StoreError, Tool,
    ToolContext, ToolError, ToolOutput, sub_agent, tool,
};
use plimsoll_testkit::session_id as id;
use serde_json::{Value, json};

use crate::{Breaks, go, limits_of, price_sheet};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

fn with_echo(provider: &ScriptedProvider) -> AgentBuilder {
    let echo = |input: Echo| async move { Ok::<_, ToolError>(input.text) };
    Agent::builder(provider.clone()).tool(tool("echo", "Says it back.", echo).idempotent())
}

fn task(text: &str) -> Value {
    json!({ "task": text })
}

/// The text of the newest message of a request.
fn last(provider: &ScriptedProvider) -> String {
    let requests = provider.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The one child's session in a store.
async fn child_of(store: &MemoryStore, parent: &str) -> String {
    let children = children_of(store, parent).await;
    assert_eq!(children.len(), 1, "{children:?}");
    children[0].clone()
}

async fn children_of(store: &MemoryStore, parent: &str) -> Vec<String> {
    let all = store.list().await.unwrap();
    let names = all.iter().map(|info| info.id.as_str().to_owned());
    let below = format!("{parent}.");
    names.filter(|name| name.starts_with(&below)).collect()
}

/// What JSON holds of an event: all but the whole arguments.
fn told(event: &Event) -> Event {
    let mut event = event.clone();
    let mut innermost = &mut event;
    while let Event::SubAgent { event, .. } = innermost {
        innermost = &mut event.event;
    }
    if let Event::ToolCall { whole, .. } = innermost {
        *whole = "".into();
    }
    event
}

#[tokio::test]
async fn a_task_goes_out_and_an_answer_comes_back() {
    let scout_model = ScriptedProvider::new([
        Turn::call("echo", json!({"text": "fuel"})),
        Turn::say("Three harbours have fuel."),
    ]);
    let scout = with_echo(&scout_model)
        .system("You look things up.")
        .build()
        .unwrap();
    let model = ScriptedProvider::new([
        Turn::call("scout", task("Which harbours have fuel?")),
        Turn::say("Three."),
    ]);
    let store = MemoryStore::default();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let captain = Agent::builder(model.clone())
        .tool(scout.as_tool("scout", "Looks something up."))
        .store(Arc::new(store.clone()))
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            seen.lock().unwrap().push(event.clone())
        })
        .build()
        .unwrap();
    let mut session = captain.session(id("s")).await.unwrap();
    let output = session.run("Where can we refuel?").await.unwrap();
    assert_eq!(output.text, "Three.");
    assert_eq!(last(&model), "Three harbours have fuel.");
    // The child knows its task and nothing else of what was said.
    let first = &scout_model.requests()[0]["messages"];
    assert_eq!(first.as_array().unwrap().len(), 2);
    assert_eq!(first[0]["content"], "You look things up.");
    assert_eq!(first[1]["content"], "Which harbours have fuel?");
    // Its log is beside the caller's.
    let child = child_of(&store, "s").await;
    let log = store.load(&id(&child)).await.unwrap();
    let Some(Entry::RunEnded { outcome: below }) = log.last() else {
        panic!("the child's run has not ended");
    };
    // What it has used is the caller's: in the result, in the sum of the run, in the session.
    let mine = store.load(&id("s")).await.unwrap();
    let spent = mine.iter().find_map(|entry| match entry {
        Entry::ToolResult { spent, .. } => Some(*spent),
        _ => None,
    });
    let spent = spent.unwrap();
    assert_eq!(spent.usage, below.tokens_used);
    assert_eq!((spent.turns, spent.tool_calls), (2, 1));
    let own: Tokens = model
        .requests()
        .iter()
        .map(|request| model.weigh(request))
        .sum();
    assert_eq!(
        output.tokens_used.processed(),
        own + below.tokens_used.processed()
    );
    assert_eq!(session.view().usage(), output.tokens_used);
    // People see what it does, while it does it.
    let events = events.lock().unwrap();
    let below = events.iter().filter_map(|event| match event {
        Event::SubAgent { name, event, .. } => {
            assert_eq!(
                (name.as_str(), &*event.session, event.run),
                ("scout", child.as_str(), 1)
            );
            Some(&event.event)
        }
        _ => None,
    });
    let below: Vec<&Event> = below.collect();
    assert!(matches!(below.first(), Some(Event::AgentStart { .. })));
    assert!(matches!(below.last(), Some(Event::AgentEnd { .. })));
    let cause = below.iter().find_map(|event| match event {
        Event::TurnStart { cause, .. } => Some(*cause),
        _ => None,
    });
    assert_eq!(cause, Some(TurnTrigger::SubAgent));
    // As JSON it is read back, but for the whole arguments, which only observers of this process get.
    for event in events.iter() {
        let json = serde_json::to_string(event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), told(event));
    }
}

#[tokio::test]
async fn a_long_answer_keeps_head_and_tail() {
    let words: Vec<String> = (0..20_000).map(|n| format!("w{n}")).collect();
    let scout = Agent::builder(ScriptedProvider::new([Turn::say(words.join(" "))]))
        .build()
        .unwrap();
    let model = ScriptedProvider::new([Turn::call("scout", task("all")), Turn::say("ok")]);
    let captain = Agent::builder(model.clone())
        .tool(scout.as_tool("scout", "").max_result(Tokens(300)))
        .build()
        .unwrap();
    captain.run("go").await.unwrap();
    let result = last(&model);
    assert!(
        result.starts_with("w0 w1 ") && result.ends_with("w19999"),
        "{result}"
    );
    let counter = plimsoll_context::Bpe::o200k();
    let weight = plimsoll_context::TokenCounter::text(&counter, &result);
    assert!(weight <= Tokens(300), "{weight}");
}

#[tokio::test]
async fn a_limit_ends_it_with_what_it_has() {
    let scout_model = ScriptedProvider::new([
        Turn::call("echo", json!({"text": "one"})),
        Turn::say("One is done, two is not."),
    ]);
    let scout = with_echo(&scout_model).build().unwrap();
    let model = ScriptedProvider::new([Turn::call("scout", task("both")), Turn::say("ok")]);
    let captain = Agent::builder(model.clone())
        .tool(scout.as_tool("scout", "").limits(ExecutionLimits::turns(2)))
        .build()
        .unwrap();
    captain.run("go").await.unwrap();
    assert_eq!(
        last(&model),
        "One is done, two is not.\n\n[`scout` has not finished: it was stopped by its limit (max_turns). This is what it had by then.]"
    );
    // It was asked for it, without tools.
    assert_eq!(scout_model.requests()[1]["tool_choice"], "none");
}

#[tokio::test]
async fn it_gets_what_it_asks_for_or_what_is_left() {
    let scout = |tokens| {
        let model = ScriptedProvider::new([]).then_always(Turn::say("ok"));
        let scout = Agent::builder(model).build().unwrap();
        scout.as_tool("scout", "").limits(ExecutionLimits {
            max_total_tokens: Some(Tokens(tokens)),
            ..ExecutionLimits::turns(7)
        })
    };
    for (asks, has, gets) in [
        (5_000, Some(100_000), 5_000),
        (5_000, None, 5_000),
        (90_000, Some(50_000), 48_000),
    ] {
        let model = ScriptedProvider::new([Turn::call("scout", task("x")), Turn::say("ok")]);
        let store = MemoryStore::default();
        let limits = ExecutionLimits {
            max_total_tokens: has.map(Tokens),
            ..ExecutionLimits::turns(9)
        };
        let captain = Agent::builder(model)
            .tool(scout(asks))
            .execution_limits(limits)
            .store(Arc::new(store.clone()))
            .build()
            .unwrap();
        let mut session = captain.session(id("s")).await.unwrap();
        session.run("go").await.unwrap();
        let limits = limits_of(&store, &child_of(&store, "s").await).await;
        let got = limits.max_total_tokens.unwrap().0;
        // What is kept for the caller's next call is not given away.
        assert!(got <= gets && got + 500 > gets, "{asks} of {has:?}: {got}");
        assert_eq!(limits.max_turns, Some(7));
        assert!(limits.max_duration.is_some());
    }
}

#[tokio::test]
async fn where_nothing_is_left_the_caller_is_told_and_goes_on() {
    let scout = Agent::builder(ScriptedProvider::new([])).build().unwrap();
    let model = ScriptedProvider::new([Turn::call("scout", task("x")), Turn::say("Not done.")]);
    let captain = Agent::builder(model.clone())
        .tool(scout.as_tool("scout", ""))
        .execution_limits(ExecutionLimits {
            max_total_tokens: Some(Tokens(1_200)),
            ..ExecutionLimits::default()
        })
        .build()
        .unwrap();
    let output = captain.run("go").await.unwrap();
    assert_eq!(output.text, "Not done.");
    let told = last(&model);
    assert!(
        told.contains("`scout` was not started:")
            && told.contains("left of the limit on tokens for it"),
        "{told}"
    );
}

#[tokio::test]
async fn calls_at_once_share_what_is_left() {
    // Each waits until both have begun.
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    let wait = move |_: Echo| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok::<_, ToolError>("met")
        }
    };
    let scout_model = ScriptedProvider::new([
        Turn::call("meet", json!({"text": ""})),
        Turn::call("meet", json!({"text": ""})),
    ])
    .then_always(Turn::say("ok"));
    let scout = Agent::builder(scout_model)
        .tool(tool("meet", "", wait))
        .build()
        .unwrap();
    let calls = [("scout", task("a")), ("scout", task("b"))];
    let model = ScriptedProvider::new([Turn::calls(calls), Turn::say("ok")]);
    let store = MemoryStore::default();
    let captain = Agent::builder(model)
        .tool(scout.as_tool("scout", ""))
        .execution_limits(ExecutionLimits {
            max_total_tokens: Some(Tokens(102_000)),
            max_tool_calls: Some(8),
            ..ExecutionLimits::default()
        })
        .max_parallel_tools(2)
        .store(Arc::new(store.clone()))
        .build()
        .unwrap();
    let mut session = captain.session(id("s")).await.unwrap();
    let output = session.run("go").await.unwrap();
    assert!(output.reason.is_answer());
    let children = children_of(&store, "s").await;
    assert_eq!(children.len(), 2);
    let mut sum = Tokens::ZERO;
    for child in children {
        let limits = limits_of(&store, &child).await;
        let tokens = limits.max_total_tokens.unwrap();
        assert!(
            (Tokens(49_000)..Tokens(50_000)).contains(&tokens),
            "{tokens}"
        );
        assert_eq!(limits.max_tool_calls, Some(3));
        sum += tokens;
    }
    assert!(sum < Tokens(100_000));
}

#[tokio::test]
async fn its_tool_calls_are_the_callers() {
    let echo = Turn::call("echo", json!({"text": "x"}));
    let scout_model = ScriptedProvider::new([echo, Turn::say("half")]);
    let scout = with_echo(&scout_model).build().unwrap();
    // One for the agent, one for the call after it, so one is left.
    let calls = [("scout", task("a")), ("echo", json!({"text": "y"}))];
    let model = ScriptedProvider::new([Turn::calls(calls), Turn::say("done")]);
    let captain = with_echo(&model)
        .tool(scout.as_tool("scout", ""))
        .max_tool_calls(3)
        .build()
        .unwrap();
    let output = captain.run("go").await.unwrap();
    assert_eq!(output.text, "done");
    assert_eq!(
        output.reason,
        EndReason::Limit {
            kind: LimitKind::ToolLimit,
            used: 3,
            limit: 3
        }
    );
    assert_eq!(
        last(&model).lines().next(),
        Some(
            "[3 of the 3 tool calls of this run are used. No tool can be called any more. Answer now from what you know, and say plainly what is done and what is not.]"
        )
    );
    let results = &model.requests()[1]["messages"];
    let half = results[2]["content"].as_str().unwrap();
    assert!(
        half.starts_with(
            "half\n\n[`scout` has not finished: it was stopped by its limit (tool_limit)"
        ),
        "{half}"
    );
    assert_eq!(results[3]["content"], "y");
}

#[tokio::test]
async fn agents_that_call_themselves_end() {
    let itself: Arc<OnceLock<Agent>> = Arc::default();
    let found = Arc::clone(&itself);
    let again = sub_agent("divide", "Does a part.", move || found.get().cloned());
    let down = (0..=MAX_DEPTH).map(|_| Turn::call("divide", task("a part")));
    let model = ScriptedProvider::new(down).then_always(Turn::say("done"));
    let store = MemoryStore::default();
    let agent = Agent::builder(model.clone())
        .tool(again)
        .store(Arc::new(store.clone()))
        .build()
        .unwrap();
    itself.set(agent.clone()).ok().unwrap();
    let mut session = agent.session(id("s")).await.unwrap();
    let output = session.run("go").await.unwrap();
    assert_eq!(output.text, "done");
    assert_eq!(children_of(&store, "s").await.len(), MAX_DEPTH as usize);
    let refused = model.requests().iter().any(|request| {
        let text = request.to_string();
        text.contains("agents are 4 deep here already; do it yourself")
    });
    assert!(refused);
    // All of it is the first one's.
    assert_eq!(output.tokens_used.processed().0, {
        let requests = model.requests();
        requests
            .iter()
            .map(|request| model.weigh(request).0)
            .sum::<u64>()
    });
}

#[tokio::test]
async fn an_interrupt_reaches_it_and_what_it_had_used_counts() {
    let scout_model = ScriptedProvider::new([Turn::call("echo", json!({"text": "x"})), Turn::Hang]);
    let scout = with_echo(&scout_model).build().unwrap();
    let model = ScriptedProvider::new([Turn::call("scout", task("x"))]);
    let store = MemoryStore::default();
    let (asked, second) = tokio::sync::oneshot::channel();
    let asked = Mutex::new(Some(asked));
    let captain = Agent::builder(model.clone())
        .tool(scout.as_tool("scout", ""))
        .store(Arc::new(store.clone()))
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            if let Event::SubAgent { event, .. } = event
                && matches!(event.event, Event::TurnStart { turn: 2, .. })
                && let Some(asked) = asked.lock().unwrap().take()
            {
                let _ = asked.send(());
            }
        })
        .build()
        .unwrap();
    let mut session = captain.session(id("s")).await.unwrap();
    let remote = session.remote();
    let stop = async {
        second.await.unwrap();
        assert!(remote.interrupt().await);
    };
    let (output, ()) = tokio::join!(session.run("go"), stop);
    let output = output.unwrap();
    assert_eq!(output.reason, EndReason::Interrupted);
    let own = model.weigh(&model.requests()[0]);
    let below = scout_model.weigh(&scout_model.requests()[0]);
    assert_eq!(output.tokens_used.processed(), own + below);
    // It ends by itself, and its log is whole.
    let child = id(&child_of(&store, "s").await);
    let lease = loop {
        match store.acquire(&child).await {
            Ok(lease) => break lease,
            Err(StoreError::Busy { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    drop(lease);
    let log = store.load(&child).await.unwrap();
    assert!(
        matches!(log.last(), Some(Entry::RunEnded { outcome }) if outcome.reason == EndReason::Interrupted)
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_comes_back_in_time() {
    let scout_model = ScriptedProvider::new([Turn::Hang, Turn::say("I had only begun.")]);
    let scout = Agent::builder(scout_model).build().unwrap();
    let model = ScriptedProvider::new([Turn::call("scout", task("x")), Turn::say("ok")]);
    let captain = Agent::builder(model.clone())
        .tool(scout.as_tool("scout", "").timeout(Duration::from_secs(60)))
        .build()
        .unwrap();
    let began = tokio::time::Instant::now();
    captain.run("go").await.unwrap();
    assert!(began.elapsed() <= Duration::from_secs(60));
    let result = last(&model);
    assert!(
        result.starts_with("I had only begun.") && result.contains("(max_duration)"),
        "{result}"
    );
}

#[tokio::test(start_paused = true)]
async fn it_has_no_more_time_than_its_caller() {
    let hangs = || ScriptedProvider::new([]).then_always(Turn::Hang);
    let scout = Agent::builder(hangs()).build().unwrap();
    let model = ScriptedProvider::new([Turn::call("scout", task("x")), Turn::say("It was late.")]);
    let captain = Agent::builder(model)
        .tool(scout.as_tool("scout", ""))
        .execution_limits(ExecutionLimits {
            max_duration: Some(Duration::from_secs(100)),
            ..ExecutionLimits::turns(5)
        })
        .build()
        .unwrap();
    let began = tokio::time::Instant::now();
    let output = captain.run("go").await.unwrap();
    assert!(began.elapsed() <= Duration::from_secs(100));
    assert_eq!(output.text, "It was late.");
}

#[tokio::test]
async fn one_that_fails_or_breaks_down_is_an_error_result_and_leaves_nothing_reserved() {
    let broken = Agent::builder(Breaks).build().unwrap();
    // A script without a turn refuses the call.
    let failing = Agent::builder(ScriptedProvider::new([])).build().unwrap();
    let fine = Agent::builder(ScriptedProvider::new([Turn::say("fine")]))
        .build()
        .unwrap();
    let model = ScriptedProvider::new([
        Turn::call("broken", task("x")),
        Turn::call("failing", task("x")),
        Turn::call("fine", task("x")),
        Turn::say("ok"),
    ]);
    let store = MemoryStore::default();
    let limits = ExecutionLimits {
        max_total_tokens: Some(Tokens(100_000)),
        ..ExecutionLimits::default()
    };
    let captain = Agent::builder(model.clone())
        .tool(broken.as_tool("broken", ""))
        .tool(failing.as_tool("failing", ""))
        .tool(fine.as_tool("fine", ""))
        .execution_limits(limits)
        .store(Arc::new(store.clone()))
        .build()
        .unwrap();
    let mut session = captain.session(id("s")).await.unwrap();
    session.run("go").await.unwrap();
    let messages = model.requests().last().unwrap()["messages"].clone();
    let text = |index: usize| messages[index]["content"].as_str().unwrap();
    assert!(text(2).contains("`broken` broke down"), "{}", text(2));
    assert!(
        text(4).contains("`failing` (scripted/model) has not done it (failed)"),
        "{}",
        text(4)
    );
    assert!(text(4).contains("Its session is s.failing."), "{}", text(4));
    assert_eq!(text(6), "fine");
    let children = children_of(&store, "s").await;
    let fine = children.iter().find(|name| name.contains("fine")).unwrap();
    let got = limits_of(&store, fine).await.max_total_tokens.unwrap();
    assert!(got > Tokens(75_000), "{got}");
}

#[tokio::test]
async fn under_a_limit_of_money_its_price_must_be_known() {
    let sheet = price_sheet(2.0);
    let run = async |priced: Option<PriceSheet>| {
        let scout = Agent::builder(ScriptedProvider::new([Turn::say("fine")]));
        let scout = match priced {
            Some(sheet) => scout.prices(sheet),
            None => scout,
        };
        let model = ScriptedProvider::new([Turn::call("scout", task("x")), Turn::say("ok")]);
        let captain = Agent::builder(model.clone())
            .tool(scout.build().unwrap().as_tool("scout", ""))
            .prices(sheet)
            .execution_limits(ExecutionLimits {
                max_cost: Money::from_dollars(1.0).ok(),
                ..ExecutionLimits::default()
            })
            .build()
            .unwrap();
        let output = captain.run("go").await.unwrap();
        (last(&model), output)
    };
    let (told, _) = run(None).await;
    assert!(
        told.contains("the prices of `scripted/model` are unknown"),
        "{told}"
    );
    let (told, output) = run(Some(sheet)).await;
    assert_eq!(told, "fine");
    let cost = output.tokens_used.estimated_cost(&sheet.rates);
    assert_eq!(output.cost.whole(), cost);
}

/// A copy of a store in which a session's log ends early, as after a crash.
async fn crashed(store: &MemoryStore, cut: &[(&str, usize)]) -> MemoryStore {
    let copy = MemoryStore::default();
    for info in store.list().await.unwrap() {
        let log = store.load(&info.id).await.unwrap();
        let keep = cut.iter().find(|(name, _)| *name == info.id.as_str());
        let keep = keep.map_or(log.len(), |(_, keep)| *keep);
        let lease = copy.acquire(&info.id).await.unwrap();
        copy.append(&lease, &log[..keep]).await.unwrap();
    }
    copy
}

#[tokio::test]
async fn after_a_crash_it_is_carried_on_and_what_it_had_used_counts() {
    let captain = |store: &MemoryStore, model: &ScriptedProvider, scout: &ScriptedProvider| {
        let scout = with_echo(scout).build().unwrap();
        Agent::builder(model.clone())
            .tool(scout.as_tool("scout", ""))
            .store(Arc::new(store.clone()))
            .build()
            .unwrap()
    };
    let store = MemoryStore::default();
    let scout = ScriptedProvider::new([
        Turn::call("echo", json!({"text": "x"})),
        Turn::say("It says x."),
    ]);
    let model = ScriptedProvider::new([Turn::call("scout", task("x")), Turn::say("ok")]);
    let agent = captain(&store, &model, &scout);
    let mut session = agent.session(id("s")).await.unwrap();
    let whole = session.run("go").await.unwrap();
    let child = child_of(&store, "s").await;
    let log = store.load(&id("s")).await.unwrap();
    let returned = |entry: &Entry| matches!(entry, Entry::ToolResult { .. });
    let before = log.iter().position(returned).unwrap();
    let log = store.load(&id(&child)).await.unwrap();
    for keep in 0..=log.len() {
        let copy = crashed(&store, &[("s", before), (&child, keep)]).await;
        // Only what was not answered yet is asked again.
        let answered = log[..keep].iter();
        let answered = answered.filter(|entry| matches!(entry, Entry::Reply { .. }));
        let script = [
            Turn::call("echo", json!({"text": "x"})),
            Turn::say("It says x."),
        ];
        let scout = ScriptedProvider::new(script.into_iter().skip(answered.count()));
        let model = ScriptedProvider::new([Turn::say("ok")]);
        let agent = captain(&copy, &model, &scout);
        let mut session = agent.session(id("s")).await.unwrap();
        let output = session.carry_on().await.unwrap();
        assert_eq!(output.text, "ok", "{keep}");
        assert_eq!(last(&model), "It says x.", "{keep}");
        assert_eq!(output.tokens_used, whole.tokens_used, "{keep}");
        assert_eq!(children_of(&copy, "s").await, [child.as_str()]);
    }
}

/// A tree of agents that would go on for ever spends what the first may.
#[tokio::test]
async fn a_tree_of_agents_keeps_within_what_the_first_may_use() {
    for (limit, at_once) in [(8_000, 1), (30_000, 1), (30_000, 3), (100_000, 3)] {
        let itself: Arc<OnceLock<Agent>> = Arc::default();
        let found = Arc::clone(&itself);
        let again = sub_agent("divide", "Does a part.", move || found.get().cloned());
        let part = || {
            (
                "divide",
                task("Do this part of it, and that part, and the rest."),
            )
        };
        let model = ScriptedProvider::new([]).then_always(Turn::calls([part(), part(), part()]));
        let limits = ExecutionLimits {
            max_total_tokens: Some(Tokens(limit)),
            max_tool_calls: Some(40),
            ..ExecutionLimits::turns(6)
        };
        let agent = Agent::builder(model.clone())
            .tool(again)
            .execution_limits(limits)
            .max_parallel_tools(at_once)
            .build()
            .unwrap();
        itself.set(agent.clone()).ok().unwrap();
        let output = agent.run("Do all of it.").await.unwrap();
        assert!(output.reason.is_limit(), "{:?}", output.reason);
        let used = output.tokens_used.total_tokens();
        let requests = model.requests();
        let sent: Tokens = requests.iter().map(|request| model.weigh(request)).sum();
        assert_eq!(output.tokens_used.processed(), sent, "all of it is counted");
        // What a call weighs is known once it is answered: each agent on the way down may exceed its
        // part by its last one.
        let largest = requests.iter().map(|request| model.weigh(request)).max();
        let beyond = largest.unwrap().times(u64::from(MAX_DEPTH) + 1);
        println!("{used} of {limit}, {} calls", requests.len());
        assert!(used <= Tokens(limit) + beyond, "{used} of {limit}");
    }
}

#[tokio::test]
async fn who_has_no_gate_asks_its_callers() {
    let asked = |gate: fn(AgentBuilder) -> AgentBuilder| async move {
        let scout_model =
            ScriptedProvider::new([Turn::call("risky", json!({"text": "x"})), Turn::say("done")]);
        let risky = |input: Echo| async move { Ok::<_, ToolError>(input.text) };
        let scout = Agent::builder(scout_model.clone()).tool(tool("risky", "", risky).asks());
        let scout = gate(scout).build().unwrap();
        let model = ScriptedProvider::new([Turn::call("scout", task("x")), Turn::say("ok")]);
        let captain = Agent::builder(model)
            .tool(scout.as_tool("scout", ""))
            .gate(AllowAll)
            .build()
            .unwrap();
        captain.run("go").await.unwrap();
        last(&scout_model)
    };
    assert_eq!(asked(|builder| builder).await, "x");
    let denied = asked(|builder| builder.gate(DenyAll)).await;
    assert!(denied.contains("was not allowed"), "{denied}");
}

/// A tool of one's own that calls models: it reserves, spends and may break down.
struct Oracle {
    spec: ToolSpec,
    dies: bool,
}

#[async_trait]
impl Tool for Oracle {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let limits = ExecutionLimits {
            max_total_tokens: Some(Tokens(1_000)),
            ..ExecutionLimits::turns(1)
        };
        let before = cx.reservation.left().max_total_tokens;
        let grant = cx.reservation.reserve(&limits).map_err(ToolError::new)?;
        assert_eq!(
            cx.reservation.left().max_total_tokens,
            before.map(|left| left.minus(Tokens(1_000)))
        );
        grant.spend(&tokens(700));
        cx.reservation.spend(&tokens(50));
        assert!(!self.dies, "out of rum");
        drop(grant);
        assert_eq!(
            cx.reservation.left().max_total_tokens,
            before.map(|left| left.minus(Tokens(750)))
        );
        Ok("It is so.".into())
    }
}

/// Returns permissions with a rule that allows `mark`, if wanted.
fn permissions(mode: PermissionMode, allows: bool) -> Permissions {
    let rule = PermissionRule::new("mark", Permission::Allow);
    Permissions::new(allows.then_some(rule)).with_mode(mode)
}

/// Returns how often an agent below two others has written, if the first has these permissions and the
/// last has those.
async fn marks(first: Permissions, last: Permissions) -> usize {
    let marked = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&marked);
    let write = move |input: Echo| {
        said.lock().unwrap().push(input.text);
        async { Ok::<_, ToolError>("done") }
    };
    let model =
        ScriptedProvider::new([Turn::call("mark", json!({"text": "a"})), Turn::say("Done.")]);
    let writer = Agent::builder(model)
        .tool(tool("mark", "Writes.", write).asks())
        .gate(AllowAll)
        .permissions(last)
        .build()
        .unwrap();
    let calls = |name: &str| ScriptedProvider::new([Turn::call(name, task("Go.")), Turn::say(".")]);
    let of_others = |rules: Permissions| rules.with_other_tools(["mark".to_owned()]);
    let between = Agent::builder(calls("writer"))
        .tool(writer.as_tool("writer", "Writes."))
        .permissions(of_others(permissions(PermissionMode::Yes, true)))
        .build()
        .unwrap();
    let captain = Agent::builder(calls("between"))
        .tool(between.as_tool("between", "Lets another write."))
        .permissions(of_others(first))
        .build()
        .unwrap();
    captain.run("Go.").await.unwrap();
    let marked = marked.lock().unwrap();
    marked.len()
}

#[tokio::test]
async fn below_a_read_only_caller_nothing_is_written_that_the_caller_may_not_write() {
    use PermissionMode::{AutoEdit, ReadOnly, Yes};
    for (first, last, written) in [
        ((AutoEdit, false), (AutoEdit, true), 1),
        ((AutoEdit, false), (Yes, false), 1),
        ((ReadOnly, false), (AutoEdit, true), 0),
        ((ReadOnly, false), (Yes, false), 0),
        ((ReadOnly, true), (AutoEdit, true), 1),
        ((ReadOnly, true), (Yes, false), 0),
    ] {
        let (mode, allows) = first;
        let above = permissions(mode, allows);
        let (mode, allows) = last;
        let below = permissions(mode, allows);
        assert_eq!(marks(above, below).await, written, "{first:?} {last:?}");
    }
}

fn tokens(input: u64) -> Spend {
    Spend {
        usage: Usage {
            input: Tokens(input),
            ..Usage::default()
        },
        ..Spend::default()
    }
}

#[tokio::test]
async fn what_a_tool_of_ones_own_spends_counts_even_if_it_breaks_down() {
    for dies in [false, true] {
        let spec = ToolSpec {
            name: "oracle".to_owned(),
            description: String::new(),
            schema: json!({"type": "object", "properties": {}}),
        };
        let call = || Turn::call("oracle", json!({}));
        let model = ScriptedProvider::new([call(), call(), Turn::say("ok")]);
        let limits = ExecutionLimits {
            max_total_tokens: Some(Tokens(50_000)),
            ..ExecutionLimits::default()
        };
        let output = go(Agent::builder(model.clone())
            .tool(Oracle { spec, dies })
            .execution_limits(limits))
        .await;
        let requests = model.requests();
        let own: Tokens = requests.iter().map(|request| model.weigh(request)).sum();
        assert_eq!(output.tokens_used.processed(), own + Tokens(1_500));
    }
}
