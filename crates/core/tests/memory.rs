//! The memory that a run reports, compared with a counting allocator. A single test, because the
//! allocator counts for the whole process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use peak_alloc::PeakAlloc;
use plimsoll_agent::{Entry, Failure, Request};
use plimsoll_context::{
    CallId, Chars4, ContextStrategy, Delta, Part, Reply, StopReason, Tokens, ToolCall,
};
use plimsoll_core::{
    Agent, Lease, LogEntry, Provider, Remote, SessionId, SessionInfo, SessionStore, StoreError,
    ToolError, Window, tool,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Keeps nothing: what a store holds is not the query's.
struct Forgetful;

#[async_trait]
impl SessionStore for Forgetful {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        Ok(Lease::new(session.clone(), Box::new(())))
    }
    async fn read(&self, _: &SessionId, _: u64, _: usize) -> Result<Vec<LogEntry>, StoreError> {
        Ok(Vec::new())
    }
    async fn append(&self, _: &Lease, _: &[Entry]) -> Result<(), StoreError> {
        Ok(())
    }
    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(Vec::new())
    }
}

/// What is live and what the run says that it holds, at each model call.
#[derive(Default)]
struct MemoryWatch {
    remote: Mutex<Option<Remote>>,
    live: AtomicUsize,
    said: AtomicUsize,
}

/// A model that asks for a tool so often, with so long arguments, then answers.
struct Watching {
    case: Case,
    made: AtomicUsize,
    watched: Arc<MemoryWatch>,
}

#[async_trait]
impl Provider for Watching {
    fn model(&self) -> &str {
        "test/watching"
    }
    async fn call(&self, _: &Request, _: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, Failure> {
        let remote = self.watched.remote.lock().unwrap().clone().unwrap();
        let said = remote.current_query_memory_usage();
        self.watched.said.store(said, Ordering::Relaxed);
        let live = ALLOCATOR.current_usage();
        self.watched.live.store(live, Ordering::Relaxed);
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        let (part, stop) = if n < self.case.calls {
            let call = ToolCall {
                id: CallId(format!("call_{n}")),
                name: "read".to_owned(),
                arguments: (self.case.make)(self.case.arguments),
                opaque: None,
            };
            (Part::ToolCall(call), StopReason::ToolCalls)
        } else {
            (Part::text("All pages are read."), StopReason::Stop)
        };
        Ok(Reply {
            parts: vec![part],
            stop,
            usage: None,
            model: None,
        })
    }
}

/// What the tool is called with.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Anything {
    #[serde(rename = "text")]
    _text: String,
}

/// A run of so many calls, with so many bytes of arguments and of results.
#[derive(Clone, Copy)]
struct Case {
    calls: usize,
    arguments: usize,
    result: usize,
    make: fn(usize) -> String,
    window: u64,
}

/// The window of a run in which nothing is evicted.
const WIDE: u64 = 8_000_000;

/// JSON as a serializer writes it: the string has grown, and has up to twice the memory it needs.
fn serialized(bytes: usize) -> String {
    serde_json::to_string(&serde_json::json!({ "text": "x".repeat(bytes) })).unwrap()
}

/// The same as a stream brings it.
fn streamed(bytes: usize) -> String {
    let whole = serialized(bytes);
    let mut text = String::new();
    for piece in whole.as_bytes().chunks(5) {
        text.push_str(std::str::from_utf8(piece).unwrap());
    }
    text
}

struct MemoryReading {
    /// Live bytes at the last call above those before the run.
    live: usize,
    /// What the run said that it held then.
    said: usize,
    /// Live bytes once its output is gone, above those before it.
    left: isize,
}

async fn run(case: Case) -> MemoryReading {
    let watched = Arc::new(MemoryWatch::default());
    let model = Watching {
        case,
        made: AtomicUsize::new(0),
        watched: Arc::clone(&watched),
    };
    let read = tool("read", "Reads a page.", move |_: Anything| async move {
        Ok::<_, ToolError>((case.make)(case.result))
    });
    let agent = Agent::builder(model)
        .tool(read)
        .counter(Arc::new(Chars4))
        .context_strategy(match case.window {
            WIDE => ContextStrategy::Unlimited {},
            _ => ContextStrategy::Evict { max_tokens: None },
        })
        .window(Window::Known(Tokens(case.window)))
        .configure(|it| it.max_result = Some(Tokens(case.window)))
        .max_turns(10_000)
        .store(Arc::new(Forgetful))
        .build()
        .unwrap();
    let id = SessionId::new("memory").unwrap();
    let mut session = agent.session(id).await.unwrap();
    *watched.remote.lock().unwrap() = Some(session.remote());
    assert_eq!(session.current_query_memory_usage(), 0);
    let before = ALLOCATOR.current_usage();
    let output = session.run("Read.").await.unwrap();
    assert_eq!(output.tool_calls, case.calls as u64);
    assert!(output.steps.iter().all(|step| step.result.len() <= 8_192));
    let said = watched.said.load(Ordering::Relaxed);
    assert!(output.peak_memory.0 >= said as u64, "{output:?}");
    drop(output);
    assert_eq!(session.current_query_memory_usage(), 0, "between runs");
    assert_eq!(session.remote().current_query_memory_usage(), 0);
    let live = watched.live.load(Ordering::Relaxed);
    let items = session.view().transcript().items().iter();
    let kept: usize = items.map(|item| item.message.allocated()).sum();
    MemoryReading {
        live: live.saturating_sub(before),
        said,
        left: ALLOCATOR.current_usage() as isize - before as isize - kept as isize,
    }
}

/// G3, S24: the growth that a payload causes, within a tenth.
#[tokio::test]
async fn what_a_run_holds_is_what_the_allocator_says() {
    let case = |calls, arguments, result, make| Case {
        calls,
        arguments,
        result,
        make,
        window: WIDE,
    };
    run(case(3, 1, 1, serialized)).await;
    for (what, with) in [
        ("1 result of 2 MB", case(1, 1, 2_000_000, serialized)),
        ("40 results of 64 KB", case(40, 1, 64_000, serialized)),
        (
            "the same, most of it evicted again",
            Case {
                window: 100_000,
                ..case(40, 1, 64_000, serialized)
            },
        ),
        ("400 results of 3 KB", case(400, 1, 3_000, serialized)),
        (
            "20 results of 90 KB as JSON",
            case(20, 1, 90_000, serialized),
        ),
        (
            "20 calls with 100 KB of arguments as JSON",
            case(20, 100_000, 1, serialized),
        ),
        (
            "20 calls with 100 KB of streamed arguments",
            case(20, 100_000, 1, streamed),
        ),
    ] {
        let without = run(Case {
            arguments: 1,
            result: 1,
            ..with
        })
        .await;
        let with = run(with).await;
        let live = with.live as f64 - without.live as f64;
        let said = with.said as f64 - without.said as f64;
        let kept = with.left - without.left;
        println!("{what}: {live} bytes by the allocator, {said} by the run, {kept} more after it");
        assert!((said / live - 1.0).abs() < 0.1, "{said} of {live}");
        assert!(kept.unsigned_abs() < 200_000, "{kept} bytes stay behind");
    }
    // Calls that say next to nothing.
    let (few, many) = (
        run(case(5, 1, 1, serialized)).await,
        run(case(5_000, 1, 1, serialized)).await,
    );
    let (live, said) = (many.live - few.live, many.said - few.said);
    println!("5,000 small calls: {live} bytes by the allocator, {said} by the run");
    // Lists have room to grow: up to twice what they hold.
    assert!(said < live && said * 5 > live * 4, "{said} of {live}");
}
