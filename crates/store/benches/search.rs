//! The time of a search by a model in a long session, in the file and in memory. Rows for the table of
//! `cargo xtask bench`.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use std::sync::{Arc, Mutex};

use plimsoll_agent::Entry;
use plimsoll_context::{Edit, Message, Plan, Recall, Rendition, Seq, Tokens, Trigger};
use plimsoll_core::recall::{LogMessages, SearchQuery};
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
    sections(&[("search", search), ("million", million)]);
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

/// Searches of a session of a million short entries, after the first, which indexes them. Takes minutes,
/// so it runs only if `million` is the argument.
fn million() {
    if !std::env::args().any(|argument| argument == "million") {
        return;
    }
    const ENTRIES: u64 = 1_000_000;
    let runtime = Runtime::new().expect("a runtime");
    let options = Options {
        durability: Durability::Normal,
        ..Options::default()
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let store = runtime
        .block_on(SqliteStore::open_with(folder.path(), options))
        .expect("a store");
    let session = SessionId::new("long").expect("a name");
    let lease = runtime.block_on(store.acquire(&session)).expect("a lease");
    for first in (0..ENTRIES).step_by(10_000) {
        let entries = (first..first + 10_000).map(|n| Entry::Message {
            message: Arc::new(Message::user(format!(
                "FACT-{n} of the harbour ledger, page {}: all is well on deck {}",
                n % 977,
                n % 31
            ))),
            queued: None,
        });
        let entries: Vec<Entry> = entries.collect();
        runtime
            .block_on(store.append(&lease, &entries))
            .expect("they are appended");
    }
    let search = |text: &str| {
        let query = SearchQuery::parse(text).expect("a query");
        let found = runtime.block_on(store.search(&session, &query));
        found.expect("it is searched")
    };
    let first = time(|| search("FACT-1")).as_secs_f64();
    println!("the first search, which indexes a million entries: {first:.1} s");
    for (name, query) in [
        ("of one name", "FACT-500001"),
        ("of words of all entries", "harbour ledger"),
        ("of words that are nowhere", "no such words"),
    ] {
        let times = (0..ROUNDS).map(|_| time(|| search(query)).as_secs_f64() * 1e3);
        row(
            &format!("a search of a million entries in the file, {name}"),
            Amount(median(times.collect()), Unit::Millis),
            Requirement::Nothing,
        );
    }
}
