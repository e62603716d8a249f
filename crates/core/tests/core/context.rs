//! Context configurations, checked by the requests that the provider receives: the start of a
//! compaction, the remaining messages, the effects of related settings, and rejected settings.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_agent::{Event, Permission, PermissionRule, Permissions, SessionEvent};
use plimsoll_context::{
    ArgumentDigest, Author, Budget, Bytes, CallId, Chars4, CompactionConfig, CompactionScope,
    ContextConfig, ContextStrategy, Draft, Gap, Money, Part, Policy, Ppm, PriceSheet, Rates, Reply,
    SessionPruneConfig, Stage, StopReason, SummaryConfig, Threshold, Tokens, ToolCall, Trigger,
};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, AgentBuilder, Error, Observer, SessionId, ToolError, Window, tool};
use plimsoll_testkit::Warnings;
use serde_json::{Value, json};

/// 104 tokens by `Chars4`, frame included.
const SYSTEM: u64 = 104;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Give {
    /// How many characters to give.
    chars: usize,
    /// A note, which nobody reads.
    #[serde(default, rename = "note")]
    _note: String,
}

#[derive(Default)]
struct Starts(Mutex<Vec<u64>>);

impl Observer for Starts {
    fn see(&self, SessionEvent { event, .. }: &SessionEvent) {
        let mut weights = self.0.lock().unwrap();
        match event {
            Event::TurnStart { tokens, .. } => weights.push(tokens.0),
            // A plan is applied after the turn has begun and before its request is made.
            Event::PlanApplied(applied) => {
                *weights.last_mut().unwrap() = applied.tokens_after.0;
            }
            _ => {}
        }
    }
}

/// Calls `give`, and reports no usage: nothing is calibrated, every weight is the counter's.
fn give(number: usize, arguments: Value) -> Turn {
    Turn::Reply(Reply {
        parts: vec![Part::ToolCall(ToolCall {
            id: CallId(format!("c{number}")),
            name: "give".to_owned(),
            arguments: arguments.to_string(),
            opaque: None,
        })],
        stop: StopReason::ToolCalls,
        usage: None,
        model: None,
    })
}

fn say(text: &str) -> Turn {
    Turn::Reply(Reply {
        parts: vec![Part::text(text)],
        stop: StopReason::Stop,
        usage: None,
        model: None,
    })
}

fn agent(provider: &ScriptedProvider) -> AgentBuilder {
    let give = |input: Give| async move {
        Ok::<_, ToolError>(
            "word "
                .chars()
                .cycle()
                .take(input.chars)
                .collect::<String>(),
        )
    };
    Agent::builder(provider.clone())
        .counter(Arc::new(Chars4))
        .system("s".repeat(400))
        .tool(tool("give", "Gives text.", give).idempotent())
        .configure(|it| {
            it.summary = SummaryConfig {
                author: Author::Extract,
                ..SummaryConfig::default()
            }
        })
}

fn script(sizes: &[usize]) -> ScriptedProvider {
    let calls = sizes.iter().enumerate();
    let calls = calls.map(|(number, chars)| {
        let note = format!("for src/part_{number}.rs, as name_{number} says");
        give(number, json!({ "chars": chars, "note": note }))
    });
    ScriptedProvider::new(calls.chain([say("done")]))
}

/// Runs the script and gives the requests with their weights.
async fn requests(
    sizes: &[usize],
    settings: impl FnOnce(AgentBuilder) -> AgentBuilder,
) -> Vec<(Value, u64)> {
    let provider = script(sizes);
    let starts = Arc::new(Starts::default());
    let agent = settings(agent(&provider))
        .shared_observer(Arc::clone(&starts) as Arc<dyn Observer>)
        .build()
        .unwrap();
    let output = agent.run("the task").await.unwrap();
    assert_eq!(output.text, "done", "{:?}", output.reason);
    let weights = starts.0.lock().unwrap().clone();
    let requests = provider.requests();
    assert_eq!(requests.len(), weights.len());
    requests.into_iter().zip(weights).collect()
}

fn texts(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().unwrap();
    let texts = messages.iter().map(|message| message["content"].as_str());
    texts.map(Option::unwrap_or_default).collect()
}

/// Whether a summary stands in a request.
fn is_compacted(request: &Value) -> bool {
    texts(request)
        .iter()
        .any(|text| text.contains("[handover "))
}

/// What a request's messages weigh by `Chars4`, without frames.
fn weigh(request: &Value) -> u64 {
    let messages = request["messages"].as_array().unwrap();
    let chars = |value: &Value| match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Null => 0,
        other => other.to_string().chars().count() as u64,
    };
    let all = messages.iter().map(|message| {
        chars(&message["content"]).div_ceil(4) + chars(&message["tool_calls"]).div_ceil(4)
    });
    all.sum()
}

#[tokio::test]
async fn what_is_sent_decides_and_the_boundary_is_exact() {
    let config = |builder: AgentBuilder| {
        let compaction = CompactionConfig {
            // Lines alone would free enough.
            tool_output_max_lines: 500,
            ..CompactionConfig::default()
        };
        builder.configure(|it| it.context_config.get_or_insert_default().compaction = compaction)
    };
    // Eleven turns of about 7,000 tokens, and a last one that fills what is left.
    let mut sizes = vec![28_000; 11];
    sizes.push(10_000);
    let (_, short) = requests(&sizes, config).await.pop().unwrap();
    let missing = usize::try_from(81_000 + SYSTEM - short).unwrap();
    // A number of as many digits, and no result that is too large for its own sake.
    assert!((2_500..7_900).contains(&(2_500 + missing)), "{missing}");
    for (over, fires) in [(0, false), (1, true)] {
        sizes[11] = 10_000 + 4 * (missing + over);
        let requests = requests(&sizes, config).await;
        let (last, before) = requests.split_last().unwrap();
        assert!(before.iter().all(|(request, _)| !is_compacted(request)));
        assert_eq!(is_compacted(&last.0), fires, "{over}");
        if fires {
            assert!(last.1 <= 56_700 + SYSTEM, "{}", last.1);
            assert!(weigh(&last.0) <= 56_700 + SYSTEM);
        } else {
            assert_eq!(last.1, 81_000 + SYSTEM);
            assert!(weigh(&last.0) > 79_000, "all of it was sent");
        }
        assert_eq!(texts(&last.0)[1], "the task");
    }
}

#[tokio::test]
async fn a_larger_system_prompt_and_a_smaller_window_fire_earlier() {
    // Tokens at which the first compacted request's predecessor stood, at most.
    for (settings, fires_above) in [
        (json!({"max": 20_000, "system": 4_000}), 13_000),
        (json!({"max": 40_000, "system": 0}), 34_000 - SYSTEM),
        (
            json!({"max": 40_000, "system": 4_000, "window": 20_000}),
            13_000,
        ),
    ] {
        let config = ContextConfig {
            max_context_tokens: Tokens(settings["max"].as_u64().unwrap()),
            system_prompt_tokens: Tokens(settings["system"].as_u64().unwrap()),
            ..ContextConfig::default()
        };
        let requests = requests(&[2_000; 100], |mut builder| {
            if let Some(window) = settings["window"].as_u64() {
                builder = builder.window(Window::Known(Tokens(window)));
            }
            builder.context_config(config).max_turns(200)
        })
        .await;
        let first = requests
            .iter()
            .position(|(request, _)| is_compacted(request));
        let first = first.unwrap();
        let used = requests[first - 1].1 - SYSTEM;
        // One turn weighs 560 tokens at most, so the trigger lies within that above it.
        assert!(
            used <= fires_above && used + 560 > fires_above,
            "{used} {settings}"
        );
        assert!(
            requests
                .iter()
                .all(|(_, tokens)| *tokens <= fires_above + SYSTEM)
        );
    }
}

#[tokio::test]
async fn every_setting_of_how_shows_in_the_request() {
    let base = ContextConfig {
        max_context_tokens: Tokens(20_000),
        ..ContextConfig::default()
    };
    let last = |compaction: CompactionConfig| async move {
        let config = ContextConfig { compaction, ..base };
        // Lines of five characters, so that lines do not bound them here.
        let requests = requests(&[4_000; 16], |builder| builder.context_config(config)).await;
        let compacted = requests.iter().find(|(request, _)| is_compacted(request));
        compacted.map(|(request, _)| request.clone())
    };
    let calls = |request: &Value| -> Vec<String> {
        let messages = request["messages"].as_array().unwrap();
        let ids = messages
            .iter()
            .filter_map(|message| message["tool_call_id"].as_str());
        ids.map(str::to_owned).collect()
    };
    let default = CompactionConfig::default();
    let as_default = last(default).await.unwrap();
    let kept = calls(&as_default);
    assert_eq!(
        kept[..2],
        ["c0", "c1"],
        "the first two turns stay: {kept:?}"
    );
    let none_of_the_first = last(CompactionConfig {
        keep_first_turns: 0,
        ..default
    });
    assert!(!calls(&none_of_the_first.await.unwrap()).contains(&"c0".to_owned()));
    let one_recent = last(CompactionConfig {
        keep_recent_turns: 1,
        ..default
    });
    assert_eq!(calls(&one_recent.await.unwrap()).len(), 3);
    let few_lines = last(CompactionConfig {
        keep_recent_turns: 3,
        tool_output_max_lines: 4,
        ..default
    });
    let few_lines = few_lines.await.unwrap();
    let cut = texts(&few_lines)
        .iter()
        .filter(|text| text.contains("[pruned: "))
        .count();
    assert_eq!(cut, 2, "those that were read; the newest was not");
    let small = last(CompactionConfig {
        max_summary_tokens: Tokens(200),
        ..default
    });
    let summary = |request: &Value| {
        let texts = texts(request);
        let summary = texts
            .iter()
            .find(|text| text.contains("[handover "))
            .unwrap();
        summary.len()
    };
    let small = small.await.unwrap();
    assert!(
        summary(&small) <= 200 * 4 && summary(&small) < summary(&as_default),
        "{} {}",
        summary(&small),
        summary(&as_default)
    );
    let none = last(CompactionConfig {
        summarization: false,
        ..default
    });
    assert_eq!(none.await, None);
    let late = last(CompactionConfig {
        compact_at_pct: Ppm(950_000),
        compact_budget_threshold_pct: Ppm(0),
        ..default
    });
    let newest = |kept: &[String]| kept.last().cloned();
    assert_eq!(newest(&kept), Some("c12".to_owned()));
    assert_eq!(newest(&calls(&late.await.unwrap())), Some("c14".to_owned()));
    let explicit = last(CompactionConfig {
        trigger: Some(Tokens(6_000)),
        target: Some(Tokens(3_000)),
        ..default
    });
    assert!(weigh(&explicit.await.unwrap()) <= 3_000);
}

#[tokio::test]
async fn the_scope_counts_earlier_runs_of_the_session() {
    for (scope, said) in [
        (CompactionScope::FixedCount(0), [false, false]),
        (CompactionScope::FixedCount(1), [false, true]),
        (CompactionScope::FixedCount(3), [true, true]),
        (CompactionScope::TokenBudget, [true, true]),
    ] {
        let mut turns = vec![say("well"), say("good"), say("fine")];
        turns.extend((0..20).map(|number| give(number, json!({ "chars": 4_000 }))));
        let provider = ScriptedProvider::new(turns).then_always(say("done"));
        let config = ContextConfig {
            max_context_tokens: Tokens(20_000),
            compaction: CompactionConfig {
                compaction_scope: scope,
                ..CompactionConfig::default()
            },
            ..ContextConfig::default()
        };
        let agent = agent(&provider).context_config(config).build().unwrap();
        let mut session = agent
            .session(SessionId::new("scope").unwrap())
            .await
            .unwrap();
        for task in ["the task", "first harbour", "second harbour", "sail"] {
            session.run(task).await.unwrap();
        }
        let requests = provider.requests();
        let request = requests
            .iter()
            .find(|request| is_compacted(request))
            .unwrap();
        let texts = texts(request);
        let summary = texts
            .iter()
            .find(|text| text.contains("[handover "))
            .unwrap();
        let found = ["first harbour", "second harbour"].map(|said| summary.contains(said));
        assert_eq!(found, said, "{scope:?}: {summary}");
        assert!(texts.contains(&"the task") && texts.contains(&"sail"));
    }
}

#[tokio::test]
async fn one_line_of_400_kb_leaves_task_call_and_both_its_ends() {
    let config = ContextConfig {
        max_context_tokens: Tokens(50_000),
        ..ContextConfig::default()
    };
    let requests = requests(&[400_000], |builder| builder.context_config(config)).await;
    let (last, tokens) = requests.last().unwrap();
    assert!(*tokens <= 50_000);
    let texts = texts(last);
    assert_eq!(texts[1], "the task");
    assert_eq!(last["messages"][2]["tool_calls"][0]["id"], "c0");
    let result = texts[3];
    assert!(result.starts_with("word word ") && result.ends_with("word "));
    assert!(result.contains("[pruned: ") && result.len() <= 32_000);
}

#[tokio::test]
async fn none_is_unlimited_and_nothing_said_is_our_default() {
    // 60,000 tokens: more than the line of a window of 40,000.
    let sizes = [28_000; 9];
    let window = |builder: AgentBuilder| builder.window(Window::Known(Tokens(40_000)));
    let unlimited = requests(&sizes, |builder| window(builder).context_config(None)).await;
    assert!(unlimited.last().unwrap().1 > 60_000);
    let default = requests(&sizes, window).await;
    assert!(default.iter().all(|(_, tokens)| *tokens <= 40_000));
}

#[tokio::test]
async fn without_summaries_their_trigger_is_not_heeded() {
    let strategy = ContextStrategy::Summarize {
        max_tokens: Some(Tokens(5_000)),
    };
    let sizes = [4_000; 12];
    let on = requests(&sizes, |builder| builder.context_strategy(strategy)).await;
    assert!(is_compacted(&on.last().unwrap().0));
    let off = requests(&sizes, |builder| {
        builder
            .context_strategy(strategy)
            .configure(|it| it.summarization = false)
    })
    .await;
    let (last, tokens) = off.last().unwrap();
    assert!(*tokens > 12_000 && !is_compacted(last));
}

#[tokio::test]
async fn old_arguments_become_digests_where_somebody_opts_in() {
    let note = format!("head{}tail", " x y".repeat(1_500));
    let run = |digest: Option<ArgumentDigest>| {
        let calls = (0..8).map(|number| give(number, json!({"chars": 40, "note": note})));
        let provider = ScriptedProvider::new(calls.chain([say("done")]));
        let mut builder = agent(&provider).context_strategy(ContextStrategy::Evict {
            max_tokens: Some(Tokens(12_000)),
        });
        if let Some(digest) = digest {
            builder = builder.configure(|it| it.argument_digest = Some(digest));
        }
        async move {
            builder.build().unwrap().run("the task").await.unwrap();
            let last = provider.requests().pop().unwrap();
            let messages = last["messages"].as_array().unwrap().clone();
            let calls = messages
                .into_iter()
                .filter(|message| message["tool_calls"].is_array());
            calls
                .map(|message| {
                    let arguments = message["tool_calls"][0]["function"]["arguments"].as_str();
                    let arguments: Value = serde_json::from_str(arguments.unwrap()).unwrap();
                    assert_eq!(arguments["chars"], 40);
                    arguments["note"].as_str().unwrap().to_owned()
                })
                .collect::<Vec<_>>()
        }
    };
    let off = run(None).await;
    assert!(off.len() < 8 && off.iter().all(|kept| *kept == note));
    let on = run(Some(ArgumentDigest::default())).await;
    assert_eq!(on.len(), 8, "nothing had to leave");
    assert!(on.last() == Some(&note), "the newest batch stays");
    let digested = on.iter().filter(|kept| kept.contains("[pruned: ")).count();
    assert!(digested >= 5, "{digested}");
    assert!(on[0].starts_with("head") && on[0].ends_with("tail") && on[0].len() <= 400);
}

/// H7: whatever keeps a context small, or nothing.
#[tokio::test]
async fn results_are_pruned_under_every_strategy() {
    let eager = SessionPruneConfig {
        eager: true,
        ..SessionPruneConfig::default()
    };
    let pruned = |request: &Value| -> Vec<bool> {
        let messages = request["messages"].as_array().unwrap().iter();
        let results = messages.filter(|message| message["role"] == "tool");
        let texts = results.filter_map(|message| message["content"].as_str());
        texts.map(|text| text.contains("[pruned: ")).collect()
    };
    let names = ContextStrategy::NAMES.map(Some).into_iter();
    for name in names.chain([None]) {
        let requests = requests(&[2_700; 6], |builder| {
            let builder = builder.configure(|it| it.session_prune = Some(eager));
            match name {
                Some(name) => builder.context_strategy(ContextStrategy::named(name, None).unwrap()),
                None => builder.context_config(ContextConfig::default()),
            }
        })
        .await;
        let (last, _) = requests.last().unwrap();
        assert_eq!(
            pruned(last),
            [true, true, true, true, false, false],
            "{name:?}"
        );
    }
    // Without a trigger a rewrite has to free a quarter of the view, and is made every other turn at
    // most.
    let requests = requests(&[2_700; 6], |builder| {
        builder
            .context_strategy(ContextStrategy::Unlimited {})
            .configure(|it| it.session_prune = Some(SessionPruneConfig::default()))
    })
    .await;
    let pruned = requests.iter().map(|(request, _)| pruned(request));
    let counts: Vec<usize> = pruned
        .map(|pruned| pruned.iter().filter(|pruned| **pruned).count())
        .collect();
    assert_eq!(counts, [0, 0, 0, 1, 1, 3, 3]);
}

#[tokio::test]
async fn a_history_has_so_many_messages() {
    let requests = requests(&[40; 12], |builder| {
        builder.configure(|it| it.max_history_messages = Some(7))
    })
    .await;
    for (request, _) in &requests {
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(messages[1]["content"], "the task");
        let marked = texts(request)
            .get(2)
            .is_some_and(|text| Gap::parse(text).is_some());
        // Neither the system prompt nor the marker belongs to the history.
        assert!(messages.len() - 1 - usize::from(marked) <= 7);
        let behind = messages.get(2 + usize::from(marked));
        assert!(behind.is_none_or(|message| message["role"] == "assistant"));
    }
    let kept = |request: &Value| request["messages"].as_array().unwrap().len();
    let shrinks = requests
        .windows(2)
        .filter(|pair| kept(&pair[1].0) < kept(&pair[0].0));
    assert!(shrinks.count() <= 6, "not one message every turn");
}

#[tokio::test]
async fn a_history_limit_that_cannot_be_kept_is_reported_once() {
    for (limit, reports) in [(2, 1), (5, 0)] {
        let warnings = Warnings::default();
        let agent = agent(&script(&[40; 8])).observer(warnings.observer());
        let agent = agent
            .configure(|it| it.max_history_messages = Some(limit))
            .build()
            .unwrap();
        agent.run("Read all.").await.unwrap();
        let warnings = warnings.all();
        let said = |text: &&String| text.contains("max_history_messages is 2, but");
        let said = warnings.iter().filter(said).count();
        assert_eq!(said, reports, "{warnings:?}");
    }
}

/// Calls `give` several times in one message, and reports no usage.
fn give_many(turn: usize, calls: usize) -> Turn {
    let Turn::Reply(mut reply) = give(turn, json!({ "chars": 40, "note": format!("{turn}") }))
    else {
        unreachable!("it gives a reply");
    };
    let Some(Part::ToolCall(first)) = reply.parts.pop() else {
        unreachable!("it calls");
    };
    let call = |number| ToolCall {
        id: CallId(format!("c{turn}-{number}")),
        ..first.clone()
    };
    reply.parts = (0..calls)
        .map(|number| Part::ToolCall(call(number)))
        .collect();
    Turn::Reply(reply)
}

#[tokio::test]
async fn no_request_has_more_messages_than_the_limit() {
    // The task, and one message with its results: so many are protected.
    for (limit, calls, most) in [(8, 5, 8), (4, 1, 4), (10, 4, 10), (8, 6, 8), (8, 9, 11)] {
        let turns = (0..12).map(|turn| give_many(turn, calls));
        let provider = ScriptedProvider::new(turns.chain([say("done")]));
        let warnings = Warnings::default();
        let agent = agent(&provider)
            .configure(|it| it.max_history_messages = Some(limit))
            .observer(warnings.observer())
            .build()
            .unwrap();
        let output = agent.run("the task").await.unwrap();
        assert_eq!(output.text, "done");
        let sent: Vec<usize> = provider
            .requests()
            .iter()
            .map(|request| {
                let messages = request["messages"].as_array().unwrap();
                let text = |message: &Value| message["content"].as_str().map(str::to_owned);
                let is_marker = |message: &&Value| {
                    text(message).is_some_and(|text| Gap::parse(&text).is_some())
                };
                messages.len() - 1 - messages.iter().filter(is_marker).count()
            })
            .collect();
        assert!(sent.iter().all(|sent| *sent <= most), "{limit}: {sent:?}");
        let warned = warnings.all();
        let warned = warned
            .iter()
            .filter(|text| text.contains("max_history_messages"));
        let warned: Vec<&String> = warned.collect();
        if most <= limit {
            assert!(warned.is_empty(), "{warned:?}");
        } else {
            assert_eq!(warned.len(), 1);
            assert!(
                warned[0].contains(&format!("{most} messages are sent")),
                "{warned:?}"
            );
            assert!(sent.contains(&most));
        }
    }
}

#[tokio::test]
async fn hooks_are_asked_and_told() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::new(Mutex::new(Vec::new()));
    let config = ContextConfig {
        max_context_tokens: Tokens(20_000),
        ..ContextConfig::default()
    };
    let (a, t) = (Arc::clone(&asked), Arc::clone(&told));
    requests(&[4_000; 14], |builder| {
        builder
            .context_config(config)
            .before_compaction_start(move |tokens, messages| {
                a.lock().unwrap().push((tokens, messages));
                true
            })
            .after_compaction_end(move |before, after, tokens, left| {
                t.lock().unwrap().push((before, after, tokens, left));
            })
    })
    .await;
    let (asked, told) = (asked.lock().unwrap(), told.lock().unwrap());
    assert_eq!(asked.len(), told.len());
    let (tokens, messages) = asked[0];
    assert_eq!((told[0].0, told[0].2), (messages, tokens));
    assert!(tokens > Tokens(13_000) && told[0].3 <= Tokens(9_100 + SYSTEM));
    assert!(told[0].1 < messages);
}

#[test]
fn settings_that_do_not_agree_are_refused_at_once() {
    #[derive(Debug)]
    struct Mine;
    impl Stage for Mine {
        fn name(&self) -> &str {
            "mine"
        }
        fn propose(&self, _: &mut Draft<'_>, _: &Budget, _: Trigger) {}
    }
    let config = ContextConfig::default();
    let compaction = |change: fn(&mut CompactionConfig)| {
        let mut compaction = CompactionConfig::default();
        change(&mut compaction);
        compaction
    };
    let window = |tokens| Window::Known(Tokens(tokens));
    type Change = Box<dyn FnOnce(AgentBuilder) -> AgentBuilder>;
    let rows: Vec<(Change, Vec<&str>)> = vec![
        (
            Box::new(move |b| {
                b.context_config(config)
                    .context_strategy(ContextStrategy::Unlimited {})
            }),
            vec!["context_config and context_strategy"],
        ),
        (
            Box::new(move |b| b.context_config(config).policy(Policy::unlimited())),
            vec!["context_config and policy"],
        ),
        (
            Box::new(move |b| {
                b.context_config(config)
                    .configure(|it| it.trigger = Threshold::Sent(Tokens(9)))
            }),
            vec!["context_config and trigger"],
        ),
        (
            Box::new(move |b| {
                b.context_config(None).configure(|it| {
                    it.context_config.get_or_insert_default().compaction =
                        CompactionConfig::default()
                })
            }),
            vec!["unlimited", "context_config"],
        ),
        (
            Box::new(move |b| {
                b.configure(|it| {
                    it.context_config.get_or_insert_default().compaction = compaction(|c| {
                        c.compact_at_pct = Ppm(1_500_000);
                        c.keep_recent_turns = 0;
                        c.trigger = Some(Tokens(20_000));
                        c.target = Some(Tokens(30_000));
                    })
                })
                .configure(|it| it.max_history_messages = Some(0))
                .configure(|it| it.argument_digest = Some(ArgumentDigest { over_chars: 3 }))
            }),
            vec![
                "5 settings are faulty",
                "1.5",
                "keep_recent_turns is 0",
                "the trigger (20000) is not above the target (30000)",
                "max_history_messages is 0",
                "3 characters",
            ],
        ),
        (
            Box::new(move |b| b.context_config(config).window(window(4_096))),
            vec!["the system prompt takes 4000 of the 4096 tokens of context"],
        ),
        (
            Box::new(move |b| {
                b.context_config(None)
                    .configure(|it| it.max_history_messages = Some(9))
            }),
            vec!["max_history_messages", "unlimited"],
        ),
        (
            Box::new(move |b| {
                b.context_config(None)
                    .in_memory_strategy(Arc::new(Mine))
                    .block_strategy(Arc::new(Mine))
            }),
            vec!["unlimited"],
        ),
    ];
    for (change, wanted) in rows {
        let built = change(agent(&script(&[]))).build();
        let Err(Error::Build(faults)) = built else {
            panic!("{wanted:?} was built");
        };
        let text = Error::Build(faults).to_string();
        for part in wanted {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[tokio::test]
async fn a_system_prompt_that_leaves_nothing_is_refused_when_it_is_weighed() {
    let config = ContextConfig {
        max_context_tokens: Tokens(1_000),
        system_prompt_tokens: Tokens(0),
        ..ContextConfig::default()
    };
    let agent = agent(&script(&[]))
        .system("s".repeat(4_000))
        .context_config(config)
        .build()
        .unwrap();
    let error = agent.run("the task").await.unwrap_err().to_string();
    assert!(
        error.contains("the system prompt takes 1004 of the 1000 tokens of context"),
        "{error}"
    );
}

/// A bound without room for the marker would never prune anything.
#[test]
fn a_bound_that_could_not_prune_is_refused_with_the_least_one() {
    let built = |bytes| {
        let prune = SessionPruneConfig {
            pruned_tool_result_max_bytes: Bytes(bytes),
            ..SessionPruneConfig::default()
        };
        agent(&script(&[]))
            .configure(|it| it.session_prune = Some(prune))
            .build()
    };
    let Err(Error::Build(faults)) = built(79) else {
        panic!("must be refused")
    };
    assert_eq!(
        faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "pruned_tool_result_max_bytes is 79; allow at least 80: the marker in a pruned result takes up to 48 of them"
        ]
    );
    assert!(built(80).is_ok());
}

/// A program reads the same refusals as a file.
#[test]
fn limits_without_a_meaning_are_refused_by_the_builder() {
    type Change = fn(AgentBuilder) -> AgentBuilder;
    let rows: [(Change, &str); 9] = [
        (
            |b| b.configure(|it| it.trigger = Threshold::Sent(Tokens(0))),
            "trigger is 0; choose more, or leave it out",
        ),
        (
            |b| b.configure(|it| it.max_result = Some(Tokens(0))),
            "max_result is 0; choose more, or leave it out",
        ),
        (
            |b| b.configure(|it| it.keep_recent = 0),
            "keep_recent is 0; choose more, or leave it out",
        ),
        (
            |b| b.configure(|it| it.driver.summary_timeout = Some(Duration::ZERO)),
            "summary.timeout is 0; choose more, or leave it out",
        ),
        (
            |b| b.max_cost(Money(0)).prices(PriceSheet::of(Rates::FREE)),
            "max_cost is 0; choose more, or leave it out",
        ),
        (
            |b| {
                b.context_strategy(ContextStrategy::Unlimited {})
                    .configure(|it| it.trigger = Threshold::Sent(Tokens(9_000)))
            },
            "context_strategy \"unlimited\" never compacts, so `trigger` and `target` have no \
             effect; remove them or choose another context_strategy",
        ),
        (
            |b| {
                b.context_strategy(ContextStrategy::Unlimited {})
                    .configure(|it| it.target = Some(Threshold::Sent(Tokens(9_000))))
            },
            "context_strategy \"unlimited\" never compacts, so `trigger` and `target` have no \
             effect; remove them or choose another context_strategy",
        ),
        (
            |b| {
                b.configure(|it| it.trigger = Threshold::Sent(Tokens(9_000)))
                    .context_strategy(ContextStrategy::Evict {
                        max_tokens: Some(Tokens(5_000)),
                    })
            },
            "context_strategy's max_tokens and trigger are two settings of one thing; keep the one \
             you mean",
        ),
        (
            |b| {
                let rule = PermissionRule::new("give", Permission::Deny);
                b.permissions(Permissions::new([rule.with_argument("cahrs=9")]))
            },
            "a permission rule is for the argument `cahrs` of `give`, which has none of this name",
        ),
    ];
    for (change, fault) in rows {
        let Err(Error::Build(faults)) = change(agent(&script(&[]))).build() else {
            panic!("it was built: {fault}");
        };
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].text, fault);
    }
}
