//! Usage of attempts without a reply: it counts against limits, in the bill and in the log, whether
//! the call is retried, given up or interrupted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{AtLimit, EndReason, Entry, ExecutionLimits, Failure, LimitKind, Request};
use plimsoll_context::{Delta, Money, Part, PriceSheet, Rates, Reply, StopReason, Tokens, Usage};
use plimsoll_core::{
    Agent, AgentBuilder, AgentOutput, Error, MemoryStore, Provider, RetryConfig, Session,
    SessionStore,
};
use tokio::sync::Notify;

use crate::id;

/// What one call does.
enum Then {
    /// The provider says what it used, and the connection breaks.
    Breaks(Usage),
    /// The same, and silence.
    Hangs(Usage),
    Answers(Usage),
    /// Part of an answer arrives without a word about its usage, and the connection breaks.
    BreaksUnreported(&'static str),
    /// The same, and silence.
    HangsUnreported(&'static str),
}

#[derive(Clone)]
struct BrokenProvider {
    script: Arc<Mutex<VecDeque<Then>>>,
    calls: Arc<Mutex<u32>>,
    /// The limit of each answer.
    limits: Arc<Mutex<Vec<Option<Tokens>>>>,
    /// The texts of the newest request.
    sent: Arc<Mutex<Vec<String>>>,
    /// It hangs now.
    hangs: Arc<Notify>,
}

impl BrokenProvider {
    fn new(script: impl IntoIterator<Item = Then>) -> Self {
        Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            calls: Arc::default(),
            limits: Arc::default(),
            sent: Arc::default(),
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
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        *self.calls.lock().unwrap() += 1;
        let then = self.script.lock().unwrap().pop_front().unwrap();
        self.limits.lock().unwrap().push(request.max_output);
        let texts = request.messages.iter().map(|message| message.text());
        *self.sent.lock().unwrap() = texts.collect();
        let usage = match then {
            Then::Breaks(usage) | Then::Hangs(usage) | Then::Answers(usage) => usage,
            Then::BreaksUnreported(text) | Then::HangsUnreported(text) => {
                deltas(Delta::Text { text: text.into() });
                if matches!(then, Then::BreaksUnreported(_)) {
                    return Err(cut());
                }
                self.hangs.notify_one();
                return std::future::pending().await;
            }
        };
        // First a little, as at the beginning of a stream; the newest holds.
        deltas(Delta::Used {
            usage: used(usage.input.0, 0),
        });
        deltas(Delta::Text { text: "Ah".into() });
        deltas(Delta::Used { usage });
        match then {
            Then::Breaks(_) => Err(cut()),
            Then::Hangs(_) => {
                self.hangs.notify_one();
                std::future::pending().await
            }
            _ => Ok(Reply {
                parts: vec![Part::text("Ahoy.")],
                stop: StopReason::Stop,
                usage: Some(usage),
                model: None,
            }),
        }
    }
}

fn cut() -> Failure {
    Failure::Transient {
        status: None,
        retry_after_ms: None,
        message: "cut".into(),
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
        input: Money(1_000_000),
        output: Money(1_000_000),
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
            Entry::PartialReply { usage, .. } => Some(*usage),
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
        matches!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxTokens,
                used: 1_202,
                ..
            }
        ),
        "{:?}",
        output.reason
    );
    assert_eq!(provider.calls(), 2);
    assert_eq!(output.tokens_used, used(1_200, 2));
}

/// Runs until the model hangs, and is interrupted then.
async fn interrupted(provider: &BrokenProvider, session: &mut Session, task: &str) -> AgentOutput {
    let remote = session.remote();
    let stop = async {
        provider.hangs.notified().await;
        remote.interrupt().await;
    };
    let output = tokio::join!(session.run(task), stop).0.unwrap();
    assert_eq!(output.reason, EndReason::Interrupted);
    output
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_is_paid_as_far_as_it_was_told() {
    let provider = BrokenProvider::new([Then::Breaks(used(100, 1)), Then::Hangs(used(100, 2))]);
    let agent = agent(&provider).build().unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = interrupted(&provider, &mut session, "hi").await;
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

/// Returns the texts of the view, the newest last.
fn texts(session: &Session) -> Vec<String> {
    let messages = session.view().transcript().messages();
    messages.iter().map(|message| message.text()).collect()
}

const CUT_OFF: &str = "[The answer was cut off before its end.]";

#[tokio::test(start_paused = true)]
async fn an_interrupted_answer_is_kept_charged_and_sent_back() {
    let half = "Port one is open. Port two is";
    let script = [Then::HangsUnreported(half), Then::Answers(used(100, 2))];
    let provider = BrokenProvider::new(script);
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::default());
    let builder = agent(&provider).store(Arc::clone(&store));
    let agent = builder.build().unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = interrupted(&provider, &mut session, "find ports").await;
    assert!(output.text.starts_with(half), "{}", output.text);
    assert_eq!(output.tokens_used, Usage::default());
    assert_eq!(output.estimated.output, Tokens(8));
    assert!(output.estimated.input > Tokens::ZERO);
    assert_eq!(output.cost.known.0, output.estimated.total_tokens().0);
    assert_eq!(session.cost(), output.cost);
    assert_eq!(texts(&session), ["find ports", half, CUT_OFF]);
    drop(session);
    // A session that is opened again knows all of it, and the model reads it.
    let mut session = agent.session(id()).await.unwrap();
    assert_eq!(session.cost(), output.cost);
    session.run("and port two?").await.unwrap();
    let sent = provider.sent.lock().unwrap().clone();
    assert_eq!(sent, ["find ports", half, CUT_OFF, "and port two?"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_runs_out_of_time_is_kept_and_charged() {
    for at_limit in [AtLimit::Stop, AtLimit::Finalize] {
        let half = "Port one is open.";
        let script = [Then::HangsUnreported(half), Then::Answers(used(100, 2))];
        let provider = BrokenProvider::new(script);
        let limits = ExecutionLimits {
            max_duration: Some(Duration::from_secs(20)),
            at_limit: Some(at_limit),
            ..ExecutionLimits::turns(9)
        };
        let builder = agent(&provider).execution_limits(limits);
        let agent = builder.build().unwrap();
        let mut session = agent.session(id()).await.unwrap();
        let output = session.run("find ports").await.unwrap();
        assert!(matches!(
            output.reason,
            EndReason::Limit {
                kind: LimitKind::MaxDuration,
                ..
            }
        ));
        assert_eq!(output.estimated.output, Tokens(5));
        assert!(output.cost.known > Money(5));
        assert_eq!(texts(&session)[..3], ["find ports", half, CUT_OFF]);
    }
}

/// The usage that was reported at the beginning of the stream does not contain the answer yet.
#[tokio::test(start_paused = true)]
async fn what_arrived_counts_even_if_the_report_is_older() {
    let provider = BrokenProvider::new([Then::Hangs(used(100, 0))]);
    let agent = agent(&provider).build().unwrap();
    let mut session = agent.session(id()).await.unwrap();
    let output = interrupted(&provider, &mut session, "hi").await;
    assert_eq!(output.tokens_used, used(100, 1));
}

#[tokio::test(start_paused = true)]
async fn broken_attempts_leave_less_money_for_the_next_one() {
    let script = [
        Then::BreaksUnreported("one two three four"),
        Then::BreaksUnreported("one two three four"),
        Then::Answers(used(10, 2)),
    ];
    let provider = BrokenProvider::new(script);
    let limit = Money(1_000);
    let agent = agent(&provider).max_cost(limit).build().unwrap();
    let output = agent.run("hi").await.unwrap();
    assert_eq!(output.reason, EndReason::Answered);
    assert_eq!(output.text, "Ahoy.");
    let input = output.estimated.input.0 / 2;
    assert_eq!(output.estimated.output, Tokens(8));
    assert_eq!(output.cost.known, Money(2 * (input + 4) + 12));
    let limits = provider.limits.lock().unwrap().clone();
    let limits: Vec<u64> = limits.into_iter().map(|limit| limit.unwrap().0).collect();
    for (attempt, answer) in limits.iter().enumerate() {
        let before = attempt as u64 * (input + 4);
        assert!(before + input + answer <= limit.0, "{limits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn broken_attempts_that_leave_no_money_for_another_end_the_run() {
    let long = "one two three four five six seven eight nine ten".repeat(40);
    let long: &'static str = long.leak();
    let provider = BrokenProvider::new([(); 3].map(|()| Then::BreaksUnreported(long)));
    let limit = Money(420);
    let agent = agent(&provider).max_cost(limit).build().unwrap();
    let output = agent.run("hi").await.unwrap();
    assert!(matches!(
        output.reason,
        EndReason::Limit {
            kind: LimitKind::MaxCost,
            ..
        }
    ));
    assert_eq!(provider.calls(), 1);
}

/// The last attempt's text is kept if the run ends with its failure.
#[tokio::test(start_paused = true)]
async fn the_text_of_a_call_that_is_given_up_is_kept() {
    let provider = BrokenProvider::new([(); 3].map(|()| Then::BreaksUnreported("Port one")));
    let agent = agent(&provider).build().unwrap();
    let mut session = agent.session(id()).await.unwrap();
    session.run("hi").await.unwrap_err();
    assert_eq!(texts(&session), ["hi", "Port one", CUT_OFF]);
}

#[tokio::test(start_paused = true)]
async fn an_impossible_usage_is_not_believed() {
    for tokens in [u64::MAX, 100_000_001] {
        let provider = BrokenProvider::new([
            Then::Breaks(used(tokens, 1)),
            Then::Answers(used(100, tokens)),
        ]);
        let agent = agent(&provider).max_total_tokens(Tokens(1_000));
        let output = agent.build().unwrap().run("hi").await.unwrap();
        assert_eq!(output.reason, EndReason::Answered);
        assert_eq!(output.tokens_used, Usage::default());
        assert!(output.estimated.total_tokens() < Tokens(200));
    }
}
