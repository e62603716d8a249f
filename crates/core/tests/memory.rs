//! What a run says that it holds, beside what a counting allocator says: one test, since it counts for
//! the whole process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[path = "../benches/instant/mod.rs"]
mod instant;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use peak_alloc::PeakAlloc;
use plimsoll_agent::{Entry, Failure, Request};
use plimsoll_context::{Chars4, ContextStrategy, Delta, Reply, Tokens};
use plimsoll_core::{
    Agent, Lease, Provider, Remote, SessionId, SessionInfo, SessionStore, StoreError, ToolError,
    Window, tool,
};

use instant::{Instantly, Nothing};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Keeps nothing: what a store holds is not the query's.
struct Forgetful;

#[async_trait]
impl SessionStore for Forgetful {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        Ok(Lease::new(session.clone(), Box::new(())))
    }
    async fn load(&self, _: &SessionId) -> Result<Vec<Entry>, StoreError> {
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
struct Watched {
    remote: Mutex<Option<Remote>>,
    live: AtomicUsize,
    said: AtomicUsize,
}

struct Watching(Arc<Instantly>, Arc<Watched>);

#[async_trait]
impl Provider for Watching {
    fn model(&self) -> &str {
        "test/watching"
    }
    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let remote = self.1.remote.lock().unwrap().clone().unwrap();
        let said = remote.current_query_memory_usage();
        self.1.said.store(said, Ordering::Relaxed);
        self.1
            .live
            .store(ALLOCATOR.current_usage(), Ordering::Relaxed);
        self.0.call(request, deltas).await
    }
}

struct Measured {
    /// Live bytes at the last call above those before the run.
    live: usize,
    /// What the run said that it held then.
    said: usize,
    /// Live bytes once its output is gone, above those before it.
    left: isize,
}

/// A run of `calls` calls whose tool returns `bytes` each, in a window of so many tokens.
async fn run(calls: usize, bytes: usize, window: u64) -> Measured {
    let model = Instantly::new();
    model.calls(calls);
    let watched = Arc::new(Watched::default());
    let read = tool("read", "Reads a page.", move |_: Nothing| async move {
        Ok::<_, ToolError>("x".repeat(bytes))
    });
    let agent = Agent::builder(Watching(model, Arc::clone(&watched)))
        .tool(read)
        .counter(Arc::new(Chars4))
        .context_strategy(ContextStrategy::Evict { max_tokens: None })
        .window(Window::Known(Tokens(window)))
        .max_result(Tokens(window))
        .max_turns(1_000)
        .store(Arc::new(Forgetful))
        .build()
        .unwrap();
    let id = SessionId::new("memory").unwrap();
    let mut session = agent.session(id).await.unwrap();
    *watched.remote.lock().unwrap() = Some(session.remote());
    assert_eq!(session.current_query_memory_usage(), 0);
    let before = ALLOCATOR.current_usage();
    let output = session.run("Read.").await.unwrap();
    assert_eq!(output.tool_calls, calls as u64);
    assert!(output.steps.iter().all(|step| step.result.len() <= 8_192));
    drop(output);
    assert_eq!(session.current_query_memory_usage(), 0, "between runs");
    assert_eq!(session.remote().current_query_memory_usage(), 0);
    let live = watched.live.load(Ordering::Relaxed);
    let kept: usize = session
        .view()
        .transcript()
        .items()
        .iter()
        .map(|item| item.message.text().len())
        .sum();
    Measured {
        live: live.saturating_sub(before),
        said: watched.said.load(Ordering::Relaxed),
        left: ALLOCATOR.current_usage() as isize - before as isize - kept as isize,
    }
}

/// G3, S24: the growth that a payload causes, within a tenth.
#[tokio::test]
async fn what_a_run_holds_is_what_the_allocator_says() {
    run(3, 1, 8_000_000).await;
    for (calls, bytes, window) in [
        (1, 2_000_000, 8_000_000),
        (40, 64_000, 8_000_000),
        // Most of it is evicted again.
        (40, 64_000, 100_000),
        (400, 3_000, 8_000_000),
    ] {
        let without = run(calls, 1, window).await;
        let with = run(calls, bytes, window).await;
        let live = with.live as f64 - without.live as f64;
        let said = with.said as f64 - without.said as f64;
        let kept = with.left - without.left;
        println!(
            "{calls} results of {bytes} bytes in {window} tokens: {live} bytes by the allocator, {said} by the run, {kept} more after it"
        );
        assert!((said / live - 1.0).abs() < 0.1, "{said} of {live}");
        assert!(kept.unsigned_abs() < 200_000, "{kept} bytes stay behind");
    }
}
