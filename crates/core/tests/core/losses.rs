//! Usage of attempts without a reply: it counts against limits, in the bill and in the log, whether
//! the call is retried, given up or interrupted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::{EndReason, Entry, ExecutionLimits, Failure, Request};
use plimsoll_context::{Delta, Money, Part, PriceSheet, Rates, Reply, StopReason, Tokens, Usage};
use plimsoll_core::{Agent, AgentBuilder, Error, MemoryStore, Provider, RetryConfig, SessionStore};
use tokio::sync::Notify;

use crate::id;

/// What one call does.
enum Then {
    /// The provider says what it used, and the connection breaks.
    Breaks(Usage),
    /// The same, and silence.
    Hangs(Usage),
    Answers(Usage),
}

#[derive(Clone)]
struct BrokenProvider {
    script: Arc<Mutex<VecDeque<Then>>>,
    calls: Arc<Mutex<u32>>,
    /// It hangs now.
    hangs: Arc<Notify>,
}

impl BrokenProvider {
    fn new(script: impl IntoIterator<Item = Then>) -> Self {
        Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            calls: Arc::default(),
            hangs: Arc::default(),
        }
    }

    fn calls(&self) -> u32 {
        *self.calls.lock().unwrap()
    }
}

#[async_trait]
impl Provider for BrokenProvider {
    fn model(&self) -> &str {
        "test/test"
    }

    async fn call(
        &self,
        _: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        *self.calls.lock().unwrap() += 1;
        let then = self.script.lock().unwrap().pop_front().unwrap();
        let (Then::Breaks(usage) | Then::Hangs(usage) | Then::Answers(usage)) = then;
        // First a little, as at the beginning of a stream; the newest holds.
        deltas(Delta::Used {
            usage: used(usage.input.0, 0),
        });
        deltas(Delta::Text { text: "Ah".into() });
        deltas(Delta::Used { usage });
        match then {
            Then::Breaks(_) => Err(Failure::Transient {
                status: None,
                retry_after_ms: None,
                message: "cut".into(),
            }),
            Then::Hangs(_) => {
                self.hangs.notify_one();
                std::future::pending().await
            }
            Then::Answers(_) => Ok(Reply {
                parts: vec![Part::text("Ahoy.")],
                stop: StopReason::Stop,
                usage: Some(usage),
                model: None,
            }),
        }
    }
}

fn used(input: u64, output: u64) -> Usage {
    Usage {
        input: Tokens(input),
        output: Tokens(output),
        ..Usage::default()
    }
}

/// A token is a billionth of a dollar.
fn agent(provider: &BrokenProvider) -> AgentBuilder {
    let rates = Rates {
        input: Money(1),
        output: Money(1),
        cache_read: None,
        cache_write: None,
    };
    Agent::builder(provider.clone())
        .prices(PriceSheet::of(rates))
        .retry_config(RetryConfig {
            max_attempts: 3,
            ..RetryConfig::default()
        })
}

#[tokio::test(start_paused = true)]
async fn tries_that_broke_are_in_the_bill_and_in_the_log() {
    let script = [
        Then::Breaks(used(100, 3)),
        Then::Breaks(used(100, 5)),
        Then::Answers(used(100, 7)),
    ];
    let provider = BrokenProvider::new(script);
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
    let builder = agent(&provider).store(Arc::clone(&store));
    let agent = builder.build().unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run("hi").await.unwrap();
    assert_eq!(output.tokens_used, used(300, 15));
    assert_eq!(output.turns, 1);
    let entries = store.load(&id()).await.unwrap();
    let wasted: Vec<Usage> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::ReplyDiscarded { usage, .. } => Some(*usage),
            _ => None,
        })
        .collect();
    assert_eq!(wasted, [used(100, 3), used(100, 5)]);
    assert_eq!(output.cost, session.cost());
    assert_eq!(session.view().usage(), used(300, 15));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_is_paid_too() {
    let script = [(); 3].map(|()| Then::Breaks(used(100, 1)));
    let provider = BrokenProvider::new(script);
    let output = agent(&provider).build().unwrap().run("hi").await;
    let output = output.or_else(Error::into_output).unwrap();
    assert!(matches!(output.reason, EndReason::Failed { .. }));
    assert_eq!(output.tokens_used, used(300, 3));
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_a_broken_try_reaches_ends_the_run_before_the_next() {
    let script = [(); 3].map(|()| Then::Breaks(used(600, 0)));
    let provider = BrokenProvider::new(script);
    let limits = ExecutionLimits {
        max_total_tokens: Some(Tokens(1_000)),
        ..ExecutionLimits::turns(9)
    };
    let output = agent(&provider)
        .execution_limits(limits)
        .build()
        .unwrap()
        .run("hi")
        .await
        .unwrap();
    assert!(
        matches!(output.reason, EndReason::MaxTokens { used, .. } if used == Tokens(1_200)),
        "{:?}",
        output.reason
    );
    assert_eq!(provider.calls(), 2);
    assert_eq!(output.tokens_used, used(1_200, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_is_paid_as_far_as_it_was_told() {
    let provider = BrokenProvider::new([Then::Breaks(used(100, 1)), Then::Hangs(used(100, 2))]);
    let agent = agent(&provider).build().unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let remote = session.remote();
    let stop = async {
        provider.hangs.notified().await;
        remote.interrupt().await;
    };
    let (output, ()) = tokio::join!(session.run("hi"), stop);
    let output = output.unwrap();
    assert_eq!(output.reason, EndReason::Interrupted);
    assert_eq!(output.tokens_used, used(200, 3));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_a_hook_has_not_let_in_yet_is_paid_once() {
    for interrupts in [true, false] {
        let script = [Then::Breaks(used(100, 1)), Then::Answers(used(100, 2))];
        let provider = BrokenProvider::new(script);
        let asked = Arc::new(Notify::new());
        let asks = Arc::clone(&asked);
        let hook = move || {
            asks.notify_one();
            async move {
                if interrupts {
                    std::future::pending::<()>().await;
                }
                Vec::<String>::new()
            }
        };
        let builder = agent(&provider).get_steering_messages(hook);
        let agent = builder.build().unwrap();
        let mut session = agent.session(id()).await.unwrap();
        let remote = session.remote();
        let stop = async {
            asked.notified().await;
            if interrupts {
                remote.interrupt().await;
            }
        };
        let (output, ()) = tokio::join!(session.run("hi"), stop);
        let output = output.unwrap();
        assert_eq!(output.reason == EndReason::Interrupted, interrupts);
        assert_eq!(output.tokens_used, used(200, 3));
        assert_eq!(session.view().usage(), used(200, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_is_paid_once_the_session_goes_on() {
    let provider = BrokenProvider::new([Then::Hangs(used(100, 2)), Then::Answers(used(50, 1))]);
    let agent = agent(&provider).build().unwrap();
    let mut session = agent.session(id()).await.unwrap();
    tokio::select! {
        _ = session.run("hi") => panic!("it hangs"),
        () = provider.hangs.notified() => {}
    }
    let output = session.run("again").await.unwrap();
    assert_eq!(output.tokens_used, used(50, 1));
    assert_eq!(session.view().usage(), used(150, 3));
}
