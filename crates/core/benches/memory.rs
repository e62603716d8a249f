//! What a run holds: 1,000 turns whose tool returns 100 KB each, all different, and a store that
//! keeps nothing. Peaks of live bytes as the allocator counts them; the same on every machine.
//! Rows for the table of `cargo xtask bench`.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;
mod instant;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use peak_alloc::PeakAlloc;
use plimsoll_agent::Entry;
use plimsoll_context::{ContextStrategy, Tokens};
use plimsoll_core::{
    Agent, Lease, LogEntry, SessionId, SessionInfo, SessionStore, StoreError, ToolError, Window,
    tool,
};

use figure::{Amount, Requirement, Unit, row, sections};
use instant::{Instantly, Nothing};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const TURNS: usize = 1_000;
const RESULT: usize = 100 * 1_000;
/// Peaks are taken over this many turns.
const SPAN: usize = 100;
/// Constant, but for what a counter with a named bound still has room to remember.
const BOUND: Requirement = Requirement::AtMost(1.1);

fn main() {
    sections(&[("memory", memory)]);
}

fn memory() {
    let strategies = [
        ContextStrategy::Evict { max_tokens: None },
        ContextStrategy::SlidingWindow { max_tokens: None },
    ];
    for strategy in strategies {
        let (peaks, live, logged) = run(strategy);
        let name = strategy.name();
        let span = |at: usize| peaks.get(at).copied().unwrap_or(f64::NAN);
        let last = peaks.len().saturating_sub(1);
        let what = format!(
            "`{name}`: peak of live bytes in turns 901 to 1,000 beside turns 101 to 200, 100 KB a result"
        );
        row(&what, Amount(span(last) / span(1), Unit::Times), BOUND);
        let what = format!("`{name}`: that peak, the vocabulary included");
        row(
            &what,
            Amount(span(last), Unit::Megabytes),
            Requirement::Nothing,
        );
        let what = format!("`{name}`: live bytes after turn 1,000 above those before turn 1");
        row(&what, Amount(live, Unit::Megabytes), Requirement::Nothing);
        let what = format!("`{name}`: what the log of that run holds");
        row(&what, Amount(logged, Unit::Megabytes), Requirement::Nothing);
    }
}

/// The peaks of each span, what is live at the end and what was written, in megabytes.
fn run(strategy: ContextStrategy) -> (Vec<f64>, f64, f64) {
    let peaks = Arc::new(Mutex::new(Vec::with_capacity(TURNS / SPAN)));
    let seen = Arc::clone(&peaks);
    let turn = Arc::new(AtomicU64::new(0));
    let read = tool("read", "Reads a page.", move |_: Nothing| {
        let n = turn.fetch_add(1, Ordering::Relaxed);
        if n > 0 && n.is_multiple_of(SPAN as u64) {
            let peak = megabytes(ALLOCATOR.peak_usage());
            seen.lock().expect("nobody panics").push(peak);
            ALLOCATOR.reset_peak_usage();
        }
        async move { Ok::<_, ToolError>(page(n)) }
    });
    let provider = Instantly::new();
    // One call more, at whose start the last span ends.
    provider.calls(TURNS + 1);
    let store = Arc::new(Forgetful::default());
    let agent = Agent::builder_shared(Arc::<Instantly>::clone(&provider))
        .tool(read)
        .context_strategy(strategy)
        .window(Window::Known(Tokens(128_000)))
        .max_turns(u64::MAX)
        .store(Arc::<Forgetful>::clone(&store))
        .build()
        .expect("good settings");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let id = SessionId::new("bench").expect("a good name");
    let mut session = runtime.block_on(agent.session(id)).expect("it opens");
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let output = runtime
        .block_on(session.run("Read all pages."))
        .expect("it runs");
    assert_eq!(output.tool_calls, TURNS as u64 + 1);
    assert!(output.plans > 0, "the view was full many times");
    let live = ALLOCATOR.current_usage().saturating_sub(before);
    let peaks = peaks.lock().expect("nobody panics").clone();
    assert_eq!(peaks.len(), TURNS / SPAN);
    let logged = store.bytes.load(Ordering::Relaxed) as f64 / 1e6;
    (peaks, megabytes(live), logged)
}

/// A text of 100 KB that no other page is equal to.
fn page(n: u64) -> String {
    let mut text = String::with_capacity(RESULT);
    let mut line = 0_u64;
    while text.len() + 64 < RESULT {
        line += 1;
        let barrels = (n * 7_919 + line * 104_729) % 1_000_003;
        text.push_str(&format!(
            "ship {n}, line {line}: {barrels} barrels, all signed for\n"
        ));
    }
    text
}

fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// Counts what it is given and keeps none of it.
#[derive(Default)]
struct Forgetful {
    bytes: AtomicU64,
}

#[async_trait]
impl SessionStore for Forgetful {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        Ok(Lease::new(session.clone(), Box::new(())))
    }

    async fn read(&self, _: &SessionId, _: u64, _: usize) -> Result<Vec<LogEntry>, StoreError> {
        Ok(Vec::new())
    }

    async fn append(&self, _lease: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        for entry in entries {
            let json = serde_json::to_string(entry).expect("entries are JSON");
            self.bytes.fetch_add(json.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(Vec::new())
    }
}
