//! Limits of a run: the time limit interrupts any pending work, a cost limit requires known prices,
//! and all faults of the settings are reported together.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_agent::{
    Answer, AtLimit, EndReason, Entry, Event, ExecutionLimits, Failure, LimitKind, Permission,
    PermissionRule, Permissions, Question, SessionEvent, ToolExecutionStrategy,
};
use plimsoll_context::{Author, Bytes, CacheConfig, ContextStrategy, Money, SummaryConfig, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, AgentLoopConfig, AllowAll, Error, Gate, MemoryStore, SessionStore,
    ToolError, Window, agent_loop, tool,
};
use plimsoll_testkit::Warnings;
use serde_json::json;
use tokio::time::Instant;

use crate::{Nothing, go, id, limits_of, price_sheet, roles};

fn agent(provider: &ScriptedProvider) -> AgentBuilder {
    let look = |_: Nothing| async { Ok::<_, ToolError>("a line") };
    let hang = |_: Nothing| std::future::pending::<Result<String, ToolError>>();
    Agent::builder(provider.clone())
        .tool(tool("look", "Looks.", look))
        .tool(tool("hang", "Hangs.", hang).timeout(Duration::from_secs(86_400)))
        .tool(tool("ask", "Asks first.", look).asks())
}

/// Nobody ever answers.
struct Silent;

#[async_trait::async_trait]
impl Gate for Silent {
    async fn decide(&self, _question: &Question) -> Answer {
        std::future::pending().await
    }
}

/// What hangs, and how the model comes to it.
struct Hang {
    name: &'static str,
    script: Vec<Turn>,
    settings: fn(AgentBuilder) -> AgentBuilder,
}

fn hangs() -> Vec<Hang> {
    let as_it_is: fn(AgentBuilder) -> AgentBuilder = |builder| builder;
    let call = |name: &str| Turn::call(name, json!({}));
    let busy = Failure::RateLimited {
        retry_after_ms: Some(100_000),
        message: "slow down".into(),
    };
    let hang = |name, script, settings| Hang {
        name,
        script,
        settings,
    };
    vec![
        hang("model", vec![call("look"), Turn::Hang], as_it_is),
        hang("first call", vec![Turn::Hang], as_it_is),
        hang("retry", vec![call("look"), Turn::Fail(busy)], as_it_is),
        hang("tool", vec![call("hang")], as_it_is),
        hang(
            "one of several",
            vec![Turn::calls([("look", json!({})), ("hang", json!({}))])],
            |builder| builder.max_parallel_tools(4),
        ),
        hang("gate", vec![call("ask")], |builder| builder.gate(Silent)),
        hang("before_turn", vec![call("look")], |builder| {
            builder.before_turn(|_, turn| async move {
                if turn == 2 {
                    std::future::pending::<()>().await;
                }
                true
            })
        }),
        hang("before_loop", vec![], |builder| {
            builder.before_loop(|_, _| std::future::pending::<bool>())
        }),
        hang("before_tool", vec![call("look")], |builder| {
            builder.before_tool_execution(|_, _, _| std::future::pending::<bool>())
        }),
        hang("after_tool", vec![call("look")], |builder| {
            builder.after_tool_execution(|_, _, _| std::future::pending::<()>())
        }),
        // Hooks behind the end of the run are in a test of their own.
        hang("after_turn", vec![call("look")], |builder| {
            builder.after_turn(|messages, _| async move {
                if messages.len() == 3 {
                    std::future::pending::<()>().await;
                }
            })
        }),
        hang("steering", vec![call("look")], |builder| {
            builder.get_steering_messages(std::future::pending::<Vec<String>>)
        }),
    ]
}

const LIMIT: Duration = Duration::from_secs(20);
/// A tenth of it is kept for the last answer.
const LAST: Duration = Duration::from_secs(18);

/// Whatever hangs is cut off in time for a last answer, which the model gives; what it said stands.
#[tokio::test(start_paused = true)]
async fn time_cuts_into_whatever_hangs() {
    for hang in hangs() {
        let name = hang.name;
        let script = hang.script.into_iter();
        let provider = ScriptedProvider::new(script).then_always(Turn::say("That is all I have."));
        let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
        let builder = agent(&provider)
            .store(Arc::clone(&store))
            .hook_timeout(Duration::from_secs(86_400))
            .max_duration(LIMIT);
        let agent = (hang.settings)(builder).build().unwrap();
        let mut session = agent.session(id()).await.unwrap();
        let before = Instant::now();
        let output = session.run("go").await.unwrap();
        let took = before.elapsed();
        let millis = Duration::from_millis(10);
        assert!(took >= LAST && took <= LIMIT + millis, "{name}: {took:?}");
        let reason = &output.reason;
        let is_time = matches!(
            reason,
            EndReason::Limit {
                kind: LimitKind::MaxDuration,
                limit: 20_000,
                ..
            }
        );
        assert!(is_time, "{name}: {reason:?}");
        assert!(
            output.text.contains("That is all I have."),
            "{name}: {}",
            output.text
        );
        let last = provider.requests().pop().unwrap();
        assert_eq!(
            roles(&last).last(),
            Some(&"user"),
            "{name}: it is asked to finish"
        );
        assert_eq!(last["tool_choice"], "none", "{name}");
        // The session is whole: the next run is accepted as a strict server would.
        let agent = self::agent(&provider).store(store).build().unwrap();
        drop(session);
        let output = agent
            .session(id())
            .await
            .unwrap()
            .run("more")
            .await
            .unwrap();
        assert!(output.reason.is_answer(), "{name}: {:?}", output.reason);
    }
}

/// Hooks behind the end of a run end with its time; if that is used up, they have a moment.
#[tokio::test(start_paused = true)]
async fn hooks_behind_the_end_are_cut_off_too() {
    let answers = || ScriptedProvider::new([]).then_always(Turn::say("Land!"));
    let hangs = || ScriptedProvider::new([]).then_always(Turn::Hang);
    let both = |builder: AgentBuilder| {
        builder
            .after_loop(|_, _| std::future::pending::<()>())
            .after_task(|_, _| std::future::pending::<()>())
    };
    let moment = Duration::from_secs(1);
    for (provider, builder, ends) in [
        (
            answers(),
            both as fn(AgentBuilder) -> AgentBuilder,
            LIMIT + moment,
        ),
        (
            answers(),
            |builder| builder.after_task(|_, _| std::future::pending::<()>()),
            LIMIT,
        ),
        (hangs(), both, LIMIT + 2 * moment),
    ] {
        let warnings = Warnings::default();
        let builder = builder(agent(&provider))
            .hook_timeout(Duration::from_secs(86_400))
            .max_duration(LIMIT)
            .observer(warnings.observer());
        let agent = builder.build().unwrap();
        let before = Instant::now();
        let output = agent.run("go").await.unwrap();
        let took = before.elapsed();
        assert!(
            took >= ends && took < ends + Duration::from_millis(10),
            "{took:?}"
        );
        assert!(!output.text.is_empty());
        let warnings = warnings.all();
        assert!(
            warnings
                .iter()
                .any(|text| text.starts_with("after_task was cut off")),
            "{warnings:?}"
        );
    }
}

/// A hook that takes the time of the next turn leaves it for a last answer.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_hook_counts_before_the_next_turn() {
    let provider =
        ScriptedProvider::new([Turn::say("")]).then_always(Turn::say("That is all I have."));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let output = go(agent(&provider)
        .hook_timeout(Duration::from_secs(86_400))
        .max_duration(LIMIT)
        .after_turn(|_, _| std::future::pending::<()>())
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            sink.lock().unwrap().push(match event {
                Event::TurnStart { .. } => "turn",
                Event::LimitReached { .. } => "limit",
                _ => return,
            });
        }))
    .await;
    assert!(matches!(
        output.reason,
        EndReason::Limit {
            kind: LimitKind::MaxDuration,
            limit: 20_000,
            ..
        }
    ));
    assert_eq!(*seen.lock().unwrap(), ["turn", "limit", "turn"]);
}

/// A hook that deadlocks on a thread does not hold up the end of the process.
#[test]
fn a_deadlocked_hook_does_not_delay_the_runtime() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let provider = ScriptedProvider::new([]).then_always(Turn::say("Land!"));
    let agent = agent(&provider)
        .max_duration(Duration::from_millis(50))
        .before_turn(move |_, _| wait.lock().unwrap().recv().is_ok())
        .build()
        .unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let before = std::time::Instant::now();
    let output = runtime.block_on(agent.run("go")).unwrap();
    assert!(
        matches!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxDuration,
                ..
            }
        ),
        "{:?}",
        output.reason
    );
    drop(runtime);
    // By itself it would be given up after `hook_timeout`, which is 30 s.
    assert!(
        before.elapsed() < Duration::from_secs(20),
        "{:?}",
        before.elapsed()
    );
    drop(release);
}

/// Where the last answer hangs too, or none is wanted, the run stops with a text that says so.
#[tokio::test(start_paused = true)]
async fn the_end_of_the_time_is_hard() {
    for at_limit in [AtLimit::Finalize, AtLimit::Stop, AtLimit::Rollback] {
        let provider =
            ScriptedProvider::new([Turn::call("look", json!({}))]).then_always(Turn::Hang);
        let agent = agent(&provider)
            .max_duration(LIMIT)
            .at_limit(at_limit)
            .build()
            .unwrap();
        let mut session = agent.session(id()).await.unwrap();
        let before = Instant::now();
        let output = session.run("go").await.unwrap();
        let took = before.elapsed();
        assert!(
            took >= LIMIT && took < LIMIT + Duration::from_millis(10),
            "{at_limit:?}: {took:?}"
        );
        assert!(matches!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxDuration,
                limit: 20_000,
                ..
            }
        ));
        assert!(output.text.contains("[Agent stopped: "), "{}", output.text);
        assert_eq!(output.rolled_back, at_limit == AtLimit::Rollback);
        let items = session.view().transcript().items().len();
        assert_eq!(items == 0, output.rolled_back, "{at_limit:?}");
    }
}

/// A summary that hangs does not outlive the run's time either.
#[tokio::test(start_paused = true)]
async fn a_summary_that_hangs_is_cut_off() {
    let calls = (0..12).map(|_| Turn::call("words", json!({})));
    let provider = ScriptedProvider::new(calls).then_always(Turn::say("That is all I have."));
    let summarizer = ScriptedProvider::new([]).then_always(Turn::Hang);
    let words = |_: Nothing| async { Ok::<_, ToolError>("lorem ipsum ".repeat(200)) };
    let agent = agent(&provider)
        .tool(tool("words", "Gives words.", words))
        .window(Window::Known(Tokens(3_000)))
        .context_strategy(ContextStrategy::Summarize {
            max_tokens: Some(Tokens(1_500)),
        })
        .summarizer(Arc::new(summarizer.clone()))
        .configure(|it| it.driver.summary_timeout = Some(Duration::from_secs(86_400)))
        .max_duration(LIMIT)
        .build()
        .unwrap();
    let before = Instant::now();
    let output = agent.run("go").await.unwrap();
    assert!(before.elapsed() <= LIMIT + Duration::from_millis(10));
    assert!(matches!(
        output.reason,
        EndReason::Limit {
            kind: LimitKind::MaxDuration,
            limit: 20_000,
            ..
        }
    ));
    assert!(!summarizer.requests().is_empty());
}

/// R21, with the driver: three calls are three calls.
#[tokio::test]
async fn three_turns_are_three_calls() {
    let looks = || ScriptedProvider::new([]).then_always(Turn::call("look", json!({})));
    for (at_limit, tool_calls) in [(AtLimit::Finalize, 2), (AtLimit::Stop, 2)] {
        let provider = looks();
        let output = go(agent(&provider).max_turns(3).at_limit(at_limit)).await;
        assert_eq!(provider.requests().len(), 3, "{at_limit:?}");
        assert_eq!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxTurns,
                used: 3,
                limit: 3
            }
        );
        assert!(
            output
                .text
                .contains("[Agent stopped: Max turns reached (3/3)]"),
            "{}",
            output.text
        );
        assert_eq!(output.tool_calls, tool_calls, "{at_limit:?}");
    }
}

#[tokio::test]
async fn money_is_counted_and_ends_a_run() {
    let provider = ScriptedProvider::new([]).then_always(Turn::call("look", json!({})));
    let limit = Money::from_dollars(0.001).unwrap();
    let agent = agent(&provider)
        .prices(price_sheet(10.0))
        .max_cost(limit)
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run("go").await.unwrap();
    let spent = output.cost.whole().unwrap();
    assert!(
        matches!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxCost,
                ..
            }
        ),
        "{:?}",
        output.reason
    );
    assert!(output.turns > 1 && spent > Money(0));
    assert_eq!(session.cost(), output.cost);
    assert_eq!(session.tracker().cost_accumulated, output.cost);
    assert_eq!(
        price_sheet(10.0).rates.input.of(output.tokens_used.input)
            + price_sheet(10.0).rates.output.of(output.tokens_used.output),
        spent
    );
}

fn faults(builder: AgentBuilder) -> Vec<String> {
    match builder.build() {
        Err(Error::Build(faults)) => faults.into_iter().map(|fault| fault.text).collect(),
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn every_fault_is_said_in_one_go() {
    let provider = ScriptedProvider::new([]);
    let found = faults(
        agent(&provider)
            .max_turns(0)
            .max_total_tokens(Tokens(0))
            .max_duration(Duration::ZERO)
            .max_cost(Money(0))
            .configure(|it| it.limits.max_memory = Some(Bytes(0)))
            .configure(|it| it.driver.max_step_result = Bytes(0))
            .max_identical_tool_calls(0)
            .max_parallel_tools(0)
            .configure(|it| it.driver.tool_retries = 1_000)
            .temperature(f64::NAN)
            .max_tokens(Tokens(0))
            .config_id("")
            .configure(|it| it.driver.gate_timeout = Some(Duration::ZERO))
            .hook_timeout(Duration::ZERO)
            .tool_execution(ToolExecutionStrategy::Batched(0))
            .permissions(Permissions::new([PermissionRule::new(
                "lok",
                Permission::Allow,
            )]))
            .tool(tool("look", "Again.", |_: Nothing| async {
                Ok::<_, ToolError>("")
            })),
    );
    for wanted in [
        "max_turns is 0",
        "max_total_tokens is 0",
        "max_duration is 0",
        "max_cost is 0",
        "max_cost requires the prices of `scripted/model`",
        "max_memory is 0",
        "max_step_result_size is 0",
        "max_identical_tool_calls is 0",
        "max_parallel_tools is 0",
        "tool_retries is 1000",
        "temperature is NaN",
        "max_tokens is 0",
        "config_id is empty",
        "gate_timeout is 0",
        "hook_timeout is 0",
        "batched(0)",
        "a permission rule is for `lok`",
        "two tools are named `look`",
    ] {
        let there = found.iter().filter(|fault| fault.contains(wanted)).count();
        assert_eq!(there, 1, "{wanted}: {found:#?}");
    }
}

#[test]
fn a_fault_names_its_settings() {
    let provider = ScriptedProvider::new([]);
    let Err(Error::Build(faults)) = agent(&provider).max_turns(0).max_tool_calls(3).build() else {
        panic!("it was built")
    };
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].settings, ["max_turns"]);
}

#[test]
fn money_that_nobody_knows_is_a_fault() {
    let provider = ScriptedProvider::new([]);
    let other = || Arc::new(ScriptedProvider::new([]));
    let cost = || agent(&provider).max_cost(Money(1));
    assert_eq!(faults(cost()).len(), 1);
    assert!(cost().prices(price_sheet(10.0)).build().is_ok());
    let two = faults(cost().summarizer(other()));
    assert_eq!(two.len(), 2, "{two:?}");
    let one = faults(cost().prices(price_sheet(10.0)).summarizer(other()));
    assert!(one[0].contains("summarizer_prices"), "{one:?}");
    assert!(
        cost()
            .prices(price_sheet(10.0))
            .summarizer(other())
            .summarizer_prices(price_sheet(10.0))
            .build()
            .is_ok()
    );
    // Nobody writes summaries: nothing to know.
    let extract = SummaryConfig {
        author: Author::Extract,
        ..SummaryConfig::default()
    };
    assert!(
        cost()
            .prices(price_sheet(10.0))
            .summarizer(other())
            .configure(|it| it.summary = extract)
            .build()
            .is_ok()
    );
}

#[test]
fn two_names_of_one_thing_must_agree() {
    use ToolExecutionStrategy::{Batched, Parallel, Sequential};
    let provider = ScriptedProvider::new([]);
    for (strategy, at_once, agree) in [
        (Sequential, 1, true),
        (Sequential, 2, false),
        (Parallel, 64, true),
        (Parallel, 4, false),
        (Batched(4), 4, true),
        (Batched(4), 5, false),
    ] {
        let built = agent(&provider)
            .tool_execution(strategy)
            .max_parallel_tools(at_once)
            .build();
        assert_eq!(built.is_ok(), agree, "{strategy:?} {at_once}");
    }
    assert!(agent(&provider).tool_execution(Parallel).build().is_ok());
}

/// What the log says a run was configured as is what was set.
#[tokio::test]
async fn settings_reach_the_log() {
    let provider = ScriptedProvider::new([Turn::say("Land!")]);
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
    let snapshots: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&snapshots);
    let limits = ExecutionLimits {
        max_turns: Some(7),
        ..ExecutionLimits::default()
    };
    let agent = agent(&provider)
        .store(Arc::clone(&store))
        .execution_limits(limits)
        .tool_execution(ToolExecutionStrategy::Batched(3))
        .config_id("careful.v1")
        .cache_config(CacheConfig::default())
        .gate(AllowAll)
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            if let Event::AgentStart { run_id, .. } = event {
                sink.lock()
                    .unwrap()
                    .push(run_id.as_ref().unwrap().to_string());
            }
        })
        .build()
        .unwrap();
    agent.session(id()).await.unwrap().run("go").await.unwrap();
    assert_eq!(*snapshots.lock().unwrap(), ["s.careful%2Ev1.1"]);
    let log = store.load(&id()).await.unwrap();
    let config = log.iter().find_map(|entry| match entry {
        Entry::RunStarted { config, .. } => config.clone(),
        _ => None,
    });
    let config = config.unwrap();
    assert_eq!(
        (config.config_id.as_str(), config.max_parallel_tools),
        ("careful.v1", 3)
    );
    assert_eq!(config.limits, limits.filled());
}

#[tokio::test]
async fn limits_fall_back_one_by_one_in_any_order() {
    let turns = || ExecutionLimits {
        max_turns: Some(15),
        max_tool_calls: Some(90),
        ..ExecutionLimits::default()
    };
    let single = |builder: AgentBuilder| {
        builder
            .max_identical_tool_calls(3)
            .max_tool_calls(4)
            .at_limit(AtLimit::Stop)
    };
    // Of two calls that set the same limit, the later one counts.
    for (all_first, max_tool_calls) in [(true, 4), (false, 90)] {
        let wanted = ExecutionLimits {
            max_identical_tool_calls: Some(3),
            max_tool_calls: Some(max_tool_calls),
            at_limit: Some(AtLimit::Stop),
            ..turns()
        };
        let wanted = wanted.filled();
        let provider = ScriptedProvider::new([]).then_always(Turn::say("Land!"));
        let store = MemoryStore::default();
        let builder = agent(&provider).store(Arc::new(store.clone()));
        let builder = if all_first {
            single(builder.execution_limits(turns()))
        } else {
            single(builder).execution_limits(turns())
        };
        let agent = builder.build().unwrap();
        let mut session = agent.session(id()).await.unwrap();
        session.run("go").await.unwrap();
        assert_eq!(limits_of(&store, "s").await, wanted);
        // A run of its own replaces what it sets, and nothing else.
        let config = AgentLoopConfig {
            execution_limits: ExecutionLimits {
                max_turns: Some(7),
                max_tool_calls: Some(u64::MAX),
                ..ExecutionLimits::default()
            },
            ..AgentLoopConfig::default()
        };
        agent_loop(&mut session, "go", &config).await.unwrap();
        let own = ExecutionLimits {
            max_turns: Some(7),
            max_tool_calls: Some(u64::MAX),
            ..wanted
        };
        assert_eq!(limits_of(&store, "s").await, own);
        session.run("go").await.unwrap();
        assert_eq!(limits_of(&store, "s").await, wanted, "it was for that run");
    }
}

/// What the reviewers saw: 14 identical calls under a limit of 3.
#[tokio::test]
async fn loop_detection_survives_other_limits() {
    let looks = || ScriptedProvider::new([]).then_always(Turn::call("look", json!({})));
    let limits = ExecutionLimits {
        max_turns: Some(15),
        ..ExecutionLimits::default()
    };
    let build = |builder: AgentBuilder| builder.build().unwrap();
    let cases = [
        build(
            agent(&looks())
                .max_identical_tool_calls(3)
                .execution_limits(limits),
        ),
        build(
            agent(&looks())
                .execution_limits(limits)
                .max_identical_tool_calls(3),
        ),
        // The size of the history alone turns it on.
        build(agent(&looks()).configure(|it| it.limits.tool_call_history_size = Some(10))),
    ];
    for (case, at_most) in cases.iter().zip([2, 2, 3]) {
        let output = case.run("go").await.unwrap();
        assert!(
            matches!(output.reason, EndReason::DoomLoop { .. }),
            "{:?}",
            output.reason
        );
        assert_eq!(output.tool_calls, at_most);
    }
    let agent = build(agent(&looks()).max_tool_calls(40));
    let mut session = agent.session(id()).await.unwrap();
    let config = AgentLoopConfig {
        execution_limits: ExecutionLimits {
            tool_call_history_size: Some(12),
            ..ExecutionLimits::default()
        },
        ..AgentLoopConfig::default()
    };
    let output = agent_loop(&mut session, "go", &config).await.unwrap();
    assert!(matches!(output.reason, EndReason::DoomLoop { .. }));
}
