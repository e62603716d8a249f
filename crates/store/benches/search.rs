//! The time of a search by a model in a long session, in the file and in memory. Rows for the table of
//! `cargo xtask bench`.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use std::sync::{Arc, Mutex};

use plimsoll_agent::Entry;
use plimsoll_context::{Edit, Message, Plan, Recall, Rendition, Seq, Tokens, Trigger};
use plimsoll_core::recall::LogMessages;
use plimsoll_core::{MemoryStore, SessionId, SessionStore};
use plimsoll_store::{Durability, Options, SqliteStore};
use tokio::runtime::Runtime;

use figure::{Amount, Requirement, Unit, median, row, sections, time};

const MESSAGES: u64 = 6_000;
const HITS: usize = 5;
const ROUNDS: usize = 9;

/// A name of one message, words of all, and some that are nowhere.
const QUERIES: [&str; 3] = ["FACT-5001", "harbour ledger", "nowhere at all"];

fn main() {
    sections(&[("search", search)]);
}

fn search() {
    let runtime = Runtime::new().expect("a runtime");
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = runtime.block_on(SqliteStore::open_with(folder.path(), options));
    slowest(&runtime, "in the file", &file.expect("a store"));
    slowest(&runtime, "in memory", &MemoryStore::default());
}

fn slowest(runtime: &Runtime, place: &str, store: &dyn SessionStore) {
    let session = SessionId::new("long").expect("a name");
    runtime.block_on(async {
        let lease = store.acquire(&session).await.expect("a lease");
        store.append(&lease, &log()).await.expect("it is appended");
    });
    let messages = Mutex::new(LogMessages::default());
    let search = |query: &str| {
        let mut messages = messages.lock().expect("no panic");
        let hits = messages.search(store, &session, query, HITS);
        runtime.block_on(hits).expect("it is searched")
    };
    let millis = |query: &&str| {
        let times = (0..ROUNDS).map(|_| time(|| search(query)).as_secs_f64() * 1e3);
        median(times.collect())
    };
    let slowest = QUERIES.iter().map(millis).fold(0.0, f64::max);
    row(
        &format!("a search of {MESSAGES} evicted messages of 1 KB {place}, the slowest of 3"),
        Amount(slowest, Unit::Millis),
        Requirement::Nothing,
    );
}

/// Messages of 1 KB, and a plan that shortens all of them.
fn log() -> Vec<Entry> {
    let mut entries = vec![Entry::Opened { format: 1 }];
    let mut edits = Vec::new();
    for n in 0..MESSAGES {
        let text = format!(
            "FACT-{n} of the harbour ledger. {}",
            "All is well. ".repeat(75)
        );
        entries.push(Entry::Message {
            message: Arc::new(Message::user(text)),
            queued: None,
        });
        edits.push(Edit::Shrink {
            seq: Seq(n),
            to: Rendition {
                message: Arc::new(Message::user("-")),
                tokens: Tokens(1),
            },
        });
    }
    let plan = Plan {
        why: Trigger::Request,
        stages: vec!["prune".to_owned()],
        edits,
        before: Tokens(0),
        frees: Tokens(0),
        rewrites_from: None,
        recall: Recall::Offered,
        price: None,
    };
    entries.push(Entry::PlanApplied { plan });
    entries
}
