//! Windows learned from a provider, and the handling of silently truncated requests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::{EndReason, Entry, Event, Failure, LimitKind, Request, SessionEvent};
use plimsoll_context::{Delta, Part, Reply, StopReason, Tokens, Usage};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, AgentOutput, MemoryStore, Provider, SessionId, SessionStore, ToolError,
    Window, tool,
};
use plimsoll_testkit::messages::tool_call;
use plimsoll_testkit::{ComputedProvider, reply};
use serde_json::json;

use crate::Nothing;

fn agent(provider: impl Provider + 'static) -> AgentBuilder {
    let long = |_: Nothing| async move { Ok::<_, ToolError>("all hands on deck ".repeat(60)) };
    Agent::builder(provider).tool(tool("watch", "", long).idempotent())
}

fn watches(provider: ScriptedProvider) -> ScriptedProvider {
    provider.then_always(Turn::call("watch", json!({})))
}

fn refused(agent: &Arc<Mutex<u32>>) -> impl Fn(&SessionEvent) + Send + Sync + 'static {
    let count = Arc::clone(agent);
    move |SessionEvent { event, .. }: &SessionEvent| {
        if matches!(event, Event::Overflow { .. }) {
            *count.lock().unwrap() += 1;
        }
    }
}

/// A run of 30 turns in a new session; how often it was refused.
async fn refusals(
    store: &Arc<dyn SessionStore>,
    provider: impl Provider + 'static,
    window: Window,
) -> u32 {
    let count = Arc::new(Mutex::new(0));
    let agent = agent(provider)
        .store(Arc::clone(store))
        .window(window)
        .max_turns(30)
        .observer(refused(&count))
        .build()
        .unwrap();
    let output = agent.run("keep watch").await.unwrap();
    assert!(
        matches!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxTurns,
                ..
            }
        ),
        "{output:?}"
    );
    *count.lock().unwrap()
}

fn model() -> ScriptedProvider {
    ScriptedProvider::new([])
}

/// It refuses with numbers, and reports no window beforehand.
fn small() -> Quiet {
    Quiet {
        model: watches(model().with_window(Tokens(4_000))),
        says_numbers: true,
    }
}

#[tokio::test]
async fn each_session_learns_the_window_from_one_refusal() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
    let known = Window::Known(Tokens(30_000));
    for window in [Window::Unknown, known, Window::Unknown] {
        let provider = watches(model().with_window(Tokens(4_000)));
        assert_eq!(refusals(&store, provider, window).await, 1);
    }
}

#[tokio::test]
async fn a_window_that_nobody_reports_is_assumed() {
    let agent = agent(small()).build().unwrap();
    let session = agent.session(SessionId::new("s").unwrap()).await.unwrap();
    assert_eq!(session.window(), Some(Tokens(200_000)));
}

#[tokio::test]
async fn a_refusal_without_numbers_makes_the_request_smaller() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
    let silent = Quiet {
        says_numbers: false,
        ..small()
    };
    assert!(refusals(&store, silent, Window::Unknown).await >= 1);

    // Bytes say nothing of tokens: the request is made smaller, and nothing is learned.
    let too_large = Failure::BodyTooLarge {
        message: "Request Entity Too Large".into(),
    };
    let script = (0..8).map(|_| Turn::call("watch", json!({})));
    let script = script.chain([Turn::Fail(too_large), Turn::say("done")]);
    let provider = ScriptedProvider::new(script);
    let agent = agent(provider.clone())
        .store(Arc::clone(&store))
        .build()
        .unwrap();
    let id = SessionId::new("bytes").unwrap();
    let mut session = agent.session(id.clone()).await.unwrap();
    let output = session.run("keep watch").await.unwrap();
    assert_eq!((output.text.as_str(), output.plans), ("done", 1));
    assert_eq!(session.window(), Some(Tokens(200_000)));
    let requests = provider.requests();
    let [.., large, small] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert!(provider.weigh(small).0 * 2 <= provider.weigh(large).0 + 100);
    let log = store.load(&id).await.unwrap();
    assert!(
        !log.iter()
            .any(|entry| matches!(entry, Entry::WindowLearned { .. }))
    );
}

/// A server that reads exactly its window of a longer request, and says nothing.
#[tokio::test]
async fn a_request_that_was_cut_at_the_known_window_is_made_again_and_smaller() {
    let window = Tokens(4_000);
    // Its tokenizer is far dearer for the content that comes late.
    let provider = reporting(move |counted| {
        let dear = Tokens(counted.0 + counted.minus(Tokens(2_000)).0 * 20);
        dear.min(window)
    });
    let store = Arc::new(MemoryStore::default());
    let (events, log, output) = watched(provider, window, &store).await;
    assert!(
        matches!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxTurns,
                ..
            }
        ),
        "{output:?}"
    );
    let overflows: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Overflow { message, .. } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        !overflows.is_empty() && overflows.len() < 14,
        "{overflows:?}"
    );
    assert!(overflows[0].contains("exactly its window"), "{overflows:?}");
    // No answer to a part of a request was taken, and all were paid.
    let taken = |entry: &&Entry| matches!(entry, Entry::Reply { usage: Some(usage), .. } if usage.input == window);
    assert_eq!(log.iter().filter(taken).count(), 0);
    let wasted = |entry: &&Entry| matches!(entry, Entry::PartialReply { .. });
    let wasted = log.iter().filter(wasted).count();
    assert_eq!(wasted, overflows.len());
    assert_eq!(output.tokens_used.output, Tokens((40 + wasted as u64) * 10));
    // The window stays as it is known.
    let smaller = |entry: &&Entry| matches!(entry, Entry::WindowLearned { window: learned, .. } if *learned < window);
    assert_eq!(log.iter().filter(smaller).count(), 0);
}

/// Servers that report far less than was sent: one that drops half of its window, like Ollama, one
/// whose frames of calls are lighter than ours, and one that always reports the same number.
#[tokio::test]
async fn a_low_report_is_a_warning_and_neither_an_end_nor_a_smaller_window() {
    type Report = fn(Tokens) -> Tokens;
    let servers: [Report; 3] = [
        |counted| {
            if counted <= Tokens(4_000) {
                counted
            } else {
                Tokens(2_002)
            }
        },
        |counted| Tokens(counted.0 * 45 / 100),
        |_| Tokens(5),
    ];
    for server in servers {
        let window = Tokens(64_000);
        let store = Arc::new(MemoryStore::default());
        let (events, log, output) = watched(reporting(server), window, &store).await;
        assert!(
            matches!(
                output.reason,
                EndReason::Limit {
                    kind: LimitKind::MaxTurns,
                    ..
                }
            ),
            "{output:?}"
        );
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, Event::Overflow { .. }))
        );
        let learned = |entry: &Entry| matches!(entry, Entry::WindowLearned { .. });
        assert!(!log.iter().any(learned));
        let warned = |event: &&Event| matches!(event, Event::Warning { text } if text.contains("the provider reports only"));
        assert_eq!(events.iter().filter(warned).count(), 1);
    }
}

/// Ninety tiny calls in one message: their frames are lighter on the server than in our count.
#[tokio::test]
async fn many_tiny_calls_in_one_message_end_no_run() {
    let calls = (0..128).map(|_| ("tiny".to_owned(), "{}".to_owned()));
    let script = [Turn::Call(calls.collect()), Turn::say("All is well.")];
    let provider = ScriptedProvider::new(script);
    let tiny = |_: Nothing| async move { Ok::<_, ToolError>(String::new()) };
    let agent = Agent::builder(provider)
        .tool(tool("tiny", "", tiny).idempotent())
        .build()
        .unwrap();
    let output = agent.run("look at them all").await.unwrap();
    assert_eq!((output.text.as_str(), output.plans), ("All is well.", 0));
}

/// The window ends inside an answer: what the next request asks is smaller.
#[tokio::test]
async fn an_answer_that_the_window_cut_is_no_answer() {
    for (stop, input) in [(StopReason::Window, 3_700), (StopReason::Stop, 4_000)] {
        let cut = Reply {
            parts: vec![Part::text("Half an ans")],
            stop,
            usage: Some(Usage {
                input: Tokens(input),
                output: Tokens(300),
                ..Usage::default()
            }),
            model: None,
        };
        let script = (0..6).map(|_| Turn::call("watch", json!({})));
        let script = script.chain([Turn::Reply(cut), Turn::say("All is well.")]);
        let provider = ScriptedProvider::new(script);
        let agent = agent(provider.clone())
            .window(Window::Known(Tokens(4_000)))
            .build()
            .unwrap();
        let output = agent.run("keep watch").await.unwrap();
        assert_eq!(output.text, "All is well.", "{stop:?}");
        assert!(output.plans >= 1);
        let requests = provider.requests();
        let [.., large, small] = requests.as_slice() else {
            panic!("{requests:?}");
        };
        assert!(provider.weigh(small) < provider.weigh(large));
    }
}

/// A scripted model that does not report its window.
struct Quiet {
    model: ScriptedProvider,
    says_numbers: bool,
}

#[async_trait]
impl Provider for Quiet {
    fn model(&self) -> &str {
        self.model.model()
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let reply = self.model.call(request, deltas).await;
        reply.map_err(|failure| match failure {
            Failure::Overflow { .. } if !self.says_numbers => Failure::Overflow {
                used: None,
                window: None,
                message: "Your input exceeds the context window of this model.".to_owned(),
            },
            failure => failure,
        })
    }
}

/// A run of 40 turns; its events, its log and its outcome.
async fn watched(
    provider: impl Provider + 'static,
    window: Tokens,
    store: &Arc<MemoryStore>,
) -> (Vec<Event>, Vec<Entry>, AgentOutput) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let agent = agent(provider)
        .store(Arc::clone(store) as Arc<dyn SessionStore>)
        .window(Window::Known(window))
        .max_turns(40)
        .observer(move |SessionEvent { event, .. }: &SessionEvent| {
            seen.lock().unwrap().push(event.clone())
        })
        .build()
        .unwrap();
    let id = SessionId::new("watched").unwrap();
    let mut session = agent.session(id.clone()).await.unwrap();
    let output = session.run("keep watch").await.unwrap();
    let events = std::mem::take(&mut *events.lock().unwrap());
    (events, store.load(&id).await.unwrap(), output)
}

/// A model that calls a tool each time, and reports so much for a request that we count.
fn reporting(report: impl Fn(Tokens) -> Tokens + Clone + Send + Sync + 'static) -> impl Provider {
    ComputedProvider::new("reporting/model", move |request, _| {
        let call = tool_call(&format!("c{}", request.messages.len()), "watch", "{}");
        Ok(Reply {
            stop: StopReason::ToolCalls,
            usage: Some(Usage {
                input: report(request.counted),
                output: Tokens(10),
                ..Usage::default()
            }),
            ..reply(vec![call])
        })
    })
}
