//! Steers, follow-ups and interrupts: each message ends in exactly one way, and after any stop a
//! strict server accepts the next request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use plimsoll_agent::{
    EndReason, Event, FilterResult, InputFilter, MessagePhase, SessionEvent, ToolPhase, TurnTrigger,
};
use plimsoll_context::{Part, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, AgentLoopConfig, Error, MemoryStore, SessionStore, ToolError, agent_loop,
    agent_loop_continue, tool,
};
use plimsoll_testkit::Warnings;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{Nothing, id, texts};

/// A tool that has begun, and ends when it is told to.
#[derive(Clone, Default)]
struct HeldTool {
    begun: Arc<Notify>,
    go: Arc<Notify>,
}

impl HeldTool {
    fn agent(&self, provider: &ScriptedProvider) -> AgentBuilder {
        let held = self.clone();
        let hold = move |_: Nothing| {
            let held = held.clone();
            async move {
                held.begun.notify_one();
                held.go.notified().await;
                Ok::<_, ToolError>("held")
            }
        };
        let look = |_: Nothing| async { Ok::<_, ToolError>("a line") };
        Agent::builder(provider.clone())
            .tool(tool("hold", "Holds.", hold))
            .tool(tool("look", "Looks.", look).idempotent())
    }
}

/// What became of each message, by its number.
#[derive(Clone, Default)]
struct Ends(Arc<Mutex<Vec<(u64, MessagePhase)>>>);

impl Ends {
    fn observer(&self) -> impl Fn(&SessionEvent) + Send + Sync + 'static {
        let ends = Arc::clone(&self.0);
        move |SessionEvent { event, .. }: &SessionEvent| {
            if let Event::Message { id, phase, .. } = event {
                ends.lock().unwrap().push((*id, *phase));
            }
        }
    }

    fn all(&self) -> Vec<(u64, MessagePhase)> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self, phase: MessagePhase) -> usize {
        self.all().iter().filter(|(_, of)| *of == phase).count()
    }
}

/// R24: a steer during a batch: what runs ends, what has not begun gets a result that says so.
#[tokio::test]
async fn a_steer_overtakes_what_has_not_begun() {
    let provider = ScriptedProvider::new([
        Turn::calls([
            ("hold", json!({})),
            ("look", json!({})),
            ("look", json!({})),
        ]),
        Turn::say("Left it is."),
    ]);
    let held = HeldTool::default();
    let ends = Ends::default();
    let skipped = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&skipped);
    let agent = held
        .agent(&provider)
        .observer(ends.observer())
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            let phase = ToolPhase::Skipped;
            if matches!(event, Event::ToolCall { phase: of, .. } if *of == phase) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        })
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let remote = session.remote();
    assert!(!remote.steer("nobody listens").await);
    assert!(!remote.follow_up("nobody listens").await);
    assert!(!remote.interrupt().await);
    let (output, ()) = tokio::join!(session.run("go"), async {
        held.begun.notified().await;
        assert!(remote.steer("look left").await);
        held.go.notify_one();
    });
    assert_eq!(output.unwrap().text, "Left it is.");
    assert!(!remote.steer("too late").await);
    let said = texts(&provider.requests()[1]);
    assert_eq!(said[2], "tool: held");
    for skipped in [&said[3], &said[4]] {
        assert!(
            skipped.starts_with("tool: skipped: a new message"),
            "{said:?}"
        );
    }
    assert_eq!(said[5], "user: look left");
    assert_eq!(skipped.load(Ordering::SeqCst), 2);
    let phases = [(1, MessagePhase::Queued), (1, MessagePhase::Delivered)];
    assert_eq!(ends.all(), phases);
}

/// All that wait are delivered at once; a follow-up waits for the answer.
#[tokio::test]
async fn all_waiting_messages_are_delivered_together() {
    let expected = [
        vec![
            "user: go",
            "assistant: ",
            "tool: held",
            "user: one",
            "user: two",
        ],
        vec!["assistant: All right.", "user: three", "user: four"],
    ];
    let provider =
        ScriptedProvider::new([Turn::call("hold", json!({}))]).then_always(Turn::say("All right."));
    let held = HeldTool::default();
    let agent = held.agent(&provider).build().unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let remote = session.remote();
    let (output, ()) = tokio::join!(session.run("go"), async {
        held.begun.notified().await;
        assert!(remote.follow_up("three").await);
        assert!(remote.steer("one").await);
        assert!(remote.follow_up("four").await);
        assert!(remote.steer("two").await);
        held.go.notify_one();
    });
    let output = output.unwrap();
    assert_eq!(
        (output.text.as_str(), output.undelivered.len()),
        ("All right.", 0)
    );
    let mut before = 0;
    let mut new = Vec::new();
    for request in &provider.requests()[1..] {
        let said = texts(request);
        new.push(said[before..].to_vec());
        before = said.len();
    }
    assert_eq!(new, expected);
}

/// Complaint 11: whatever ends the run, each message has exactly one end.
#[tokio::test]
async fn what_comes_too_late_comes_back() {
    let provider = ScriptedProvider::new([Turn::call("hold", json!({}))]);
    let held = HeldTool::default();
    let ends = Ends::default();
    let agent = held
        .agent(&provider)
        .observer(ends.observer())
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let remote = session.remote();
    let (output, ()) = tokio::join!(session.run("go"), async {
        held.begun.notified().await;
        assert!(remote.steer("one").await);
        assert!(remote.follow_up(vec![Part::text("two")]).await);
        // It goes before both.
        assert!(remote.interrupt().await);
    });
    let output = output.unwrap();
    assert_eq!(output.reason, EndReason::Interrupted);
    let back: Vec<&str> = output
        .undelivered
        .iter()
        .filter_map(|parts| parts[0].as_text())
        .collect();
    assert_eq!(back, ["one", "two"]);
    assert_eq!(ends.count(MessagePhase::Delivered), 0);
    assert_eq!(
        ends.count(MessagePhase::Queued),
        ends.count(MessagePhase::Undelivered)
    );
}

/// A run that is dropped half-way has taken messages; they end as undelivered, in the log too.
#[tokio::test]
async fn what_a_dropped_run_has_taken_is_undelivered() {
    let provider = ScriptedProvider::new([Turn::call("hold", json!({})), Turn::say("back")]);
    let held = HeldTool::default();
    let ends = Ends::default();
    let agent = held
        .agent(&provider)
        .observer(ends.observer())
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let remote = session.remote();
    tokio::select! {
        _ = session.run("go") => panic!("it hangs"),
        () = async {
            held.begun.notified().await;
            assert!(remote.steer("one").await);
            assert!(remote.steer("two").await);
        } => {}
    }
    assert!(!remote.steer("three").await, "nobody listens any more");
    assert_eq!(session.run("again").await.unwrap().text, "back");
    assert_eq!(ends.count(MessagePhase::Undelivered), 2);
    assert_eq!(ends.count(MessagePhase::Delivered), 0);
    let last = texts(&provider.requests()[1]);
    assert!(
        last.iter()
            .all(|text| !text.contains("one") && !text.contains("two"))
    );
}

/// However many are sent at once, each is taken once and read once.
#[tokio::test]
async fn a_flood_is_read_exactly_once() {
    const MANY: usize = 150;
    let provider =
        ScriptedProvider::new([Turn::call("hold", json!({}))]).then_always(Turn::say("All right."));
    let held = HeldTool::default();
    let ends = Ends::default();
    let agent = held
        .agent(&provider)
        .observer(ends.observer())
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let remote = session.remote();
    let refused: Mutex<Vec<Vec<Part>>> = Mutex::default();
    let senders = (0..MANY).map(|number| {
        let (remote, held, refused) = (remote.clone(), held.clone(), &refused);
        async move {
            if number == 0 {
                held.begun.notified().await;
                // It goes on while they are still sending.
                held.go.notify_one();
            }
            let text = format!("message {number};");
            if !remote.steer(text.as_str()).await {
                refused.lock().unwrap().push(vec![Part::text(text)]);
            }
        }
    });
    let (output, _) = tokio::join!(session.run("go"), futures_util::future::join_all(senders));
    let undelivered = output.unwrap().outcome.undelivered;
    let refused = refused.into_inner().unwrap();
    // What was not taken, or came back, goes into the next runs, as a host would have it.
    for parts in undelivered.into_iter().chain(refused) {
        session.run_parts(parts).await.unwrap();
    }
    let last = texts(provider.requests().last().unwrap()).join("\n");
    for number in 0..MANY {
        let times = last.matches(&format!("message {number};")).count();
        assert_eq!(times, 1, "{number}");
    }
}

/// Where a run can be stopped.
#[derive(Debug, Clone, Copy)]
enum At {
    Model,
    Tool,
    Second,
    Gate,
    Hook,
}

/// R24: an interrupt or a drop at any point leaves a view that the provider takes with the next prompt.
#[tokio::test]
async fn an_interrupt_at_any_point_leaves_a_whole_view() {
    for at in [At::Model, At::Tool, At::Second, At::Gate, At::Hook] {
        for drops in [false, true] {
            let script = match at {
                At::Model => vec![Turn::Hang],
                At::Second => vec![Turn::call("look", json!({})), Turn::Hang],
                At::Tool => vec![Turn::calls([("look", json!({})), ("hold", json!({}))])],
                At::Gate => vec![Turn::calls([("look", json!({})), ("asks", json!({}))])],
                At::Hook => vec![Turn::calls([("look", json!({})), ("look", json!({}))])],
            };
            let provider = ScriptedProvider::new(script).then_always(Turn::say("back"));
            let held = HeldTool::default();
            let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
            let begun = Arc::clone(&held.begun);
            let hangs = Arc::new(std::sync::atomic::AtomicBool::new(true));
            let hook = Arc::clone(&hangs);
            let builder = held
                .agent(&provider)
                .store(store)
                .tool(
                    tool("asks", "Asks.", |_: Nothing| async {
                        Ok::<_, ToolError>("")
                    })
                    .asks(),
                )
                .gate(Never(Arc::clone(&held.begun)));
            let agent = match at {
                At::Hook => builder.before_tool_execution(move |_, _, _| {
                    begun.notify_one();
                    let hangs = hook.load(Ordering::SeqCst);
                    async move {
                        if hangs {
                            std::future::pending::<()>().await;
                        }
                        true
                    }
                }),
                _ => builder,
            };
            let agent = agent.build().unwrap();
            let mut session = agent.session(id()).await.unwrap();
            let remote = session.remote();
            let reached = async {
                match at {
                    At::Model | At::Second => {
                        let calls = if matches!(at, At::Model) { 1 } else { 2 };
                        while provider.requests().len() < calls {
                            tokio::task::yield_now().await;
                        }
                    }
                    _ => held.begun.notified().await,
                }
            };
            if drops {
                tokio::select! {
                    _ = session.run("go") => panic!("{at:?}"),
                    () = reached => {}
                }
            } else {
                let (output, ()) = tokio::join!(session.run("go"), async {
                    reached.await;
                    assert!(remote.interrupt().await);
                });
                assert_eq!(output.unwrap().reason, EndReason::Interrupted, "{at:?}");
            }
            hangs.store(false, Ordering::SeqCst);
            let output = session.run("again").await.unwrap();
            assert_eq!(output.text, "back", "{at:?} {drops}: {:?}", output.reason);
            let last = texts(provider.requests().last().unwrap());
            assert_eq!(last.last().unwrap(), "user: again");
        }
    }
}

struct Never(Arc<Notify>);

#[async_trait::async_trait]
impl plimsoll_core::Gate for Never {
    async fn decide(&self, _: &plimsoll_agent::Question) -> plimsoll_agent::Answer {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// P8: filters see prompts, steers and follow-ups alike.
#[tokio::test]
async fn filters_see_all_that_is_said() {
    let provider =
        ScriptedProvider::new([Turn::call("hold", json!({}))]).then_always(Turn::say("All right."));
    let held = HeldTool::default();
    let filter = |text: &str| match text {
        text if text.contains("secret") => FilterResult::Reject("no secrets".into()),
        text if text.contains("maybe") => FilterResult::Warn("be careful".into()),
        _ => FilterResult::Pass,
    };
    let rejected = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rejected);
    let agent = held
        .agent(&provider)
        .input_filter(filter)
        .input_filters([Arc::new(|_: &str| FilterResult::Pass) as Arc<dyn InputFilter>])
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            counted.fetch_add(
                usize::from(matches!(event, Event::InputRejected { .. })),
                Ordering::SeqCst,
            );
        })
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run("a secret").await.unwrap();
    assert!(matches!(&output.reason, EndReason::Refused { by, .. } if by == "input_filter"));
    let remote = session.remote();
    let (output, ()) = tokio::join!(session.run("go, maybe"), async {
        held.begun.notified().await;
        assert!(remote.steer("a secret").await);
        assert!(remote.steer("maybe left").await);
        assert!(remote.follow_up("secret").await);
        held.go.notify_one();
    });
    assert_eq!(output.unwrap().text, "All right.");
    assert_eq!(rejected.load(Ordering::SeqCst), 3);
    let last = serde_json::to_string(provider.requests().last().unwrap()).unwrap();
    assert!(
        !last.contains("secret") && last.matches("[Warning: be careful]").count() == 2,
        "{last}"
    );
}

/// P6: what one run does otherwise holds for that run, and falls back to the agent's for the next.
#[tokio::test]
async fn a_loop_has_settings_of_its_own() {
    let provider = ScriptedProvider::new([]).then_always(Turn::say("Agent's."));
    let other = ScriptedProvider::new([]).then_always(Turn::say("Other's."));
    let held = HeldTool::default();
    let starts: Arc<Mutex<Vec<(String, TurnTrigger)>>> = Arc::default();
    let sink = Arc::clone(&starts);
    let named = Mutex::new(String::new());
    let agent = held
        .agent(&provider)
        .temperature(0.5)
        .max_tokens(Tokens(100))
        .observer(
            move |SessionEvent { event, .. }: &SessionEvent| match event {
                Event::AgentStart { run_id, .. } => {
                    *named.lock().unwrap() = run_id.as_ref().unwrap().to_string();
                }
                Event::TurnStart { cause, .. } => {
                    sink.lock()
                        .unwrap()
                        .push((named.lock().unwrap().clone(), *cause));
                }
                _ => {}
            },
        )
        .build()
        .unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let config = AgentLoopConfig {
        provider_override: Some(Arc::new(other.clone())),
        max_tokens: Some(Tokens(7)),
        config_id: Some("fast".into()),
        first_turn_trigger: Some(TurnTrigger::SubAgent),
        ..AgentLoopConfig::default()
    };
    let output = agent_loop(&mut session, "one", &config).await.unwrap();
    assert_eq!(output.text, "Other's.");
    assert_eq!(session.run("two").await.unwrap().text, "Agent's.");
    let output = agent_loop_continue(&mut session, &AgentLoopConfig::default())
        .await
        .unwrap();
    assert_eq!(output.text, "Agent's.");
    let limits = |request: &Value| {
        request["max_completion_tokens"]
            .as_u64()
            .or(request["max_tokens"].as_u64())
    };
    assert_eq!(limits(&other.requests()[0]), Some(7));
    assert_eq!(limits(&provider.requests()[0]), Some(100));
    let starts = starts.lock().unwrap().clone();
    let starts: Vec<(&str, TurnTrigger)> = starts
        .iter()
        .map(|(id, cause)| (id.as_str(), *cause))
        .collect();
    assert_eq!(
        starts,
        [
            ("s.fast.1", TurnTrigger::SubAgent),
            ("s.default.2", TurnTrigger::User),
            ("s.default.3", TurnTrigger::Continue)
        ]
    );
    let error = agent_loop(&mut session, "  ", &AgentLoopConfig::default())
        .await
        .unwrap_err();
    assert_eq!(error, Error::EmptyTask);
    // A run that is dropped half-way leaves nothing of its settings either.
    let hangs = AgentLoopConfig {
        provider_override: Some(Arc::new(ScriptedProvider::new([]).then_always(Turn::Hang))),
        ..AgentLoopConfig::default()
    };
    let dropped = agent_loop(&mut session, "go", &hangs);
    assert!(
        tokio::time::timeout(Duration::from_millis(20), dropped)
            .await
            .is_err()
    );
    assert_eq!(session.run("three").await.unwrap().text, "Agent's.");
}

/// A session goes on with another agent, and a run can be undone, its messages and all.
#[tokio::test]
async fn a_session_switches_its_agent_and_undoes_its_runs() {
    let one = ScriptedProvider::new([]).then_always(Turn::say("One's."));
    let two = ScriptedProvider::new([]).then_always(Turn::say("Two's."));
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
    let held = HeldTool::default();
    let first = held.agent(&one).store(Arc::clone(&store)).build().unwrap();
    // It would keep its own sessions elsewhere.
    let second = Agent::builder(two.clone())
        .system("You are two.")
        .pin("Be brief.")
        .build()
        .unwrap();
    let mut session = first.session(id()).await.unwrap();
    session.run("a").await.unwrap();
    session.switch(&second).await.unwrap();
    assert_eq!(session.run("b").await.unwrap().text, "Two's.");
    let said = texts(&two.requests()[0]);
    assert_eq!(
        said[..3],
        ["system: You are two.", "user: a", "assistant: One's."]
    );
    assert!(
        said.iter().any(|text| text.contains("Be brief.")),
        "{said:?}"
    );
    assert_eq!(said.last().unwrap(), "user: b");
    let items = session.view().transcript().items().len();
    session.switch(&first).await.unwrap();
    session.run("c").await.unwrap();
    assert_eq!(session.undo().await.unwrap(), 3);
    assert_eq!(session.view().transcript().items().len(), items);
    assert_eq!(session.undo().await.unwrap(), 2);
    assert_eq!(session.undo().await.unwrap(), 1);
    assert!(matches!(session.undo().await, Err(Error::Undo(_))));
    session.run("d").await.unwrap();
    let said = texts(one.requests().last().unwrap());
    assert!(
        said.iter()
            .all(|text| !text.ends_with(" a") && !text.ends_with(" c")),
        "{said:?}"
    );
    drop(session);
    // What was undone is undone for whoever opens it again, and the log has all of it.
    let session = first.session(id()).await.unwrap();
    assert_eq!(session.view().runs(), 4);
    let log = serde_json::to_string(&store.load(&id()).await.unwrap()).unwrap();
    assert!(log.contains("Two's."));
}

/// R24 at every point at which a run waits: it is dropped or interrupted there, and the next prompt is
/// answered by a server that refuses what a real one would.
#[tokio::test]
async fn stopped_at_every_await_the_view_is_whole() {
    for drops in [true, false] {
        // How often a run is looked at depends on what happens between two looks; this is beyond its end.
        let mut cut = 0;
        for polls in 0..60 {
            let calls = || {
                let look = |words: u64| ("words", json!({ "words": words }));
                Turn::calls([look(150), look(20), look(150)])
            };
            let provider = ScriptedProvider::new([calls(), calls(), Turn::say("one"), calls()])
                .then_always(Turn::say("two"));
            let agent = busy(&provider);
            let mut session = agent.session(id()).await.unwrap();
            let remote = session.remote();
            let ended = {
                let mut run = Box::pin(session.run("go"));
                let mut left = polls;
                let ended = std::future::poll_fn(|cx| match run.as_mut().poll(cx) {
                    Poll::Ready(output) => Poll::Ready(Some(output)),
                    Poll::Pending if left == 0 => Poll::Ready(None),
                    Poll::Pending => {
                        left -= 1;
                        Poll::Pending
                    }
                });
                let ended = ended.await;
                if ended.is_none() && !drops {
                    remote.interrupt().await;
                    let reason = run.await.unwrap().outcome.reason;
                    let expected = reason == EndReason::Interrupted || reason.is_answer();
                    assert!(expected, "{polls}: {reason:?}");
                }
                ended.is_some()
            };
            let output = session.run("again").await.unwrap();
            assert!(
                output.reason.is_answer(),
                "{drops} {polls}: {:?}",
                output.reason
            );
            drop(session);
            // And the log folds to the very view, with nothing left open.
            let session = agent.session(id()).await.unwrap();
            let items = session.view().transcript().items();
            assert!(
                items.last().unwrap().message.text().starts_with(['o', 't']),
                "{drops} {polls}"
            );
            cut += usize::from(!ended);
        }
        assert!(cut >= 5, "{cut}: it waits at many points");
    }
}

/// An agent with everything that a run may wait for.
fn busy(provider: &ScriptedProvider) -> Agent {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Words {
        words: usize,
    }
    let words = |input: Words| async move {
        tokio::task::yield_now().await;
        Ok::<_, ToolError>("lorem ipsum ".repeat(input.words))
    };
    let asked = AtomicUsize::new(0);
    Agent::builder(provider.clone())
        .tool(tool("words", "Gives words.", words).asks().idempotent())
        .gate(plimsoll_core::AllowAll)
        .max_parallel_tools(2)
        .window(plimsoll_core::Window::Known(Tokens(1_500)))
        .context_strategy(plimsoll_context::ContextStrategy::SlidingWindow {
            max_tokens: Some(Tokens(700)),
        })
        .before_turn(|_, _| async {
            tokio::task::yield_now().await;
            true
        })
        .after_turn(|_, _| async { tokio::task::yield_now().await })
        .before_tool_execution(|_, _, _| async {
            tokio::task::yield_now().await;
            true
        })
        .on_evict(|_, _| async { tokio::task::yield_now().await })
        .get_steering_messages(move || match asked.fetch_add(1, Ordering::SeqCst) {
            3 => vec!["faster"],
            _ => Vec::new(),
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn an_answer_that_the_check_refuses_is_given_again() {
    let number = |answer: String| match answer.parse::<u64>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("`{answer}` is not a number.")),
    };
    let provider = ScriptedProvider::new([
        Turn::say("about four"),
        Turn::say("4"),
        Turn::say("many"),
        Turn::say("5"),
    ]);
    let agent = Agent::builder(provider.clone()).check_answer(number);
    let mut session = agent.build().unwrap().session(id()).await.unwrap();
    assert_eq!(session.run("How many seasons?").await.unwrap().text, "4");
    assert_eq!(session.run("And continents?").await.unwrap().text, "5");
    let asked = texts(&provider.requests()[1]);
    assert_eq!(
        asked.last().unwrap(),
        "user: Your answer was not accepted: `about four` is not a number.\n\nAnswer again, in full."
    );
}

#[tokio::test]
async fn a_model_that_never_gives_an_acceptable_answer_is_not_asked_for_ever() {
    let provider = ScriptedProvider::new([]).then_always(Turn::say("no"));
    let agent = Agent::builder(provider.clone())
        .check_answer(|_: String| Err::<(), _>("it is wrong.".to_owned()))
        .build()
        .unwrap();
    let output = agent.run("Guess.").await.unwrap();
    assert!(!output.reason.is_answer());
    assert_eq!(output.reason, not_accepted("it is wrong."));
    assert!(output.text.starts_with("no\n\n[Agent stopped: "));
    let calls = 1 + plimsoll_core::ANSWER_RETRIES;
    assert_eq!(output.turns, u64::from(calls));
}

fn not_accepted(why: &str) -> EndReason {
    EndReason::Refused {
        by: "check_answer".to_owned(),
        why: why.to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_not_accepted_by_a_check_that_hangs() {
    let provider = ScriptedProvider::new([Turn::say("4")]);
    let agent = Agent::builder(provider)
        .check_answer(|_: String| std::future::pending::<Result<(), String>>())
        .build()
        .unwrap();
    let output = agent.run("Guess.").await.unwrap();
    let why = "check_answer did not come back within 30 s";
    assert_eq!(output.reason, not_accepted(why));
}

#[tokio::test]
async fn an_answer_is_not_accepted_by_a_check_that_breaks() {
    let provider = ScriptedProvider::new([Turn::say("4")]);
    let told = Warnings::default();
    let agent = Agent::builder(provider)
        .check_answer(|_: String| -> Result<(), String> { panic!("no such file") })
        .observer(told.observer())
        .build()
        .unwrap();
    let output = agent.run("Guess.").await.unwrap();
    assert_eq!(
        output.reason,
        not_accepted("check_answer broke down: no such file")
    );
    assert!(output.text.starts_with("4\n\n[Agent stopped: "));
    let told = told.all();
    assert!(
        told[0].starts_with("check_answer") && told[0].contains("no such file"),
        "{told:?}"
    );
}
