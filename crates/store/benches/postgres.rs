//! What sessions cost in the file and in PostgreSQL on the same disk, a commit waiting for the disk in both,
//! and what of it checksums take. Rows for the table of `cargo xtask bench`; those of PostgreSQL are missing if
//! it is not installed.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use std::sync::Arc;
use std::time::Instant;

use plimsoll_agent::{Entry, Outcome};
use plimsoll_context::{
    CallId, Edit, Gap, Message, Part, Plan, Recall, Rendition, Seq, StopReason, Tokens, Trigger,
    Usage,
};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, Lease, SessionId, SessionStore, Window};
use plimsoll_store::{PostgresStore, SqliteStore};
use tokio::runtime::Runtime;

use figure::{Amount, Requirement, Unit, median, ratio, row, sections, time};

const ROUNDS: usize = 500;
/// How often a log is loaded from each store, in turns.
const LOADS: usize = 9;
/// Entries of the log that is resumed.
const ENTRIES: usize = 50_000;
/// The window of the session that is opened, and the messages in its view.
const WINDOW: Tokens = Tokens(64_000);
const VIEW: u64 = 100;

fn main() {
    sections(&[("postgres", both)]);
}

fn both() {
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let runtime = Runtime::new().expect("a runtime");
    let place = folder();
    let file = runtime.block_on(SqliteStore::open(place.path()));
    let file = file.expect("a store");
    let server = plimsoll_testkit::postgres::PostgresServer::start_in(folder(), true);
    let store = server.as_ref().map(|server| {
        let store = runtime.block_on(PostgresStore::connect(&server.url()));
        store.expect("a store")
    });
    appends(&runtime, &file, store.as_ref());
    loads(&runtime, &file, store.as_ref());
    opens(&runtime, &file, store.as_ref());
}

fn appends(runtime: &Runtime, file: &SqliteStore, store: Option<&PostgresStore>) {
    let entry = [entry()];
    let append = |store: &dyn SessionStore, lease: &Lease| {
        let append = || runtime.block_on(store.append(lease, &entry));
        time(|| append().expect("room"))
    };
    let of_file = lease(runtime, file, "s");
    let spent = (0..ROUNDS).map(|_| append(file, &of_file).as_secs_f64() * 1e6);
    let spent = median(spent.collect());
    row(
        "appending an entry of 1 KB to the file with full sync",
        Amount(spent, Unit::Micros),
        Requirement::Nothing,
    );
    let json = serde_json::to_string(&entry[0]).expect("JSON");
    let sums = (0..ROUNDS).map(|_| time(|| checksum(&json)).as_secs_f64() * 1e6);
    row(
        "its checksum, a part of that",
        Amount(median(sums.collect()) / spent * 100.0, Unit::Percent),
        Requirement::Nothing,
    );
    let Some(store) = store else {
        return;
    };
    let of_server = lease(runtime, store, "s");
    let times = ratio(
        ROUNDS,
        || append(store, &of_server),
        || append(file, &of_file),
    );
    row(
        "appending an entry of 1 KB in PostgreSQL, beside the file with full sync",
        Amount(times, Unit::Times),
        Requirement::AtMost(3.0),
    );
}

/// The quickest of some: what else the machine does only makes them slower.
fn loads(runtime: &Runtime, file: &SqliteStore, store: Option<&PostgresStore>) {
    let json = serde_json::to_string(&entry()).expect("JSON");
    let log = vec![entry(); ENTRIES];
    let stores: Vec<(&str, &dyn SessionStore)> = [Some(("the file", file as &dyn SessionStore))]
        .into_iter()
        .chain([store.map(|store| ("PostgreSQL", store as &dyn SessionStore))])
        .flatten()
        .collect();
    for (_, store) in &stores {
        let long = lease(runtime, *store, "long");
        runtime.block_on(store.append(&long, &log)).expect("room");
    }
    let session = SessionId::new("long").expect("a name");
    let mut quickest = vec![f64::INFINITY; stores.len()];
    let mut sums = f64::INFINITY;
    for _ in 0..LOADS {
        for ((_, store), quickest) in stores.iter().zip(&mut quickest) {
            let load = || runtime.block_on(store.load(&session)).expect("a log");
            *quickest = quickest.min(time(load).as_secs_f64() * 1e3);
        }
        let all = || {
            for _ in 0..ENTRIES {
                std::hint::black_box(checksum(&json));
            }
        };
        sums = sums.min(time(all).as_secs_f64() * 1e3);
    }
    for ((name, _), quickest) in stores.iter().zip(quickest) {
        row(
            &format!(
                "loading a log of 50,000 entries of 1 KB from {name}, the quickest of {LOADS}"
            ),
            Amount(quickest, Unit::Millis),
            Requirement::AtMost(600.0),
        );
    }
    row(
        "the checksums of such a log, a part of that, on one core",
        Amount(sums, Unit::Millis),
        Requirement::Nothing,
    );
}

/// Opening a session to run in it, whose log is long and whose view is not.
fn opens(runtime: &Runtime, file: &SqliteStore, store: Option<&PostgresStore>) {
    let session = SessionId::new("talk").expect("a name");
    let log = long_talk();
    let mut rows = vec![(
        "the file",
        Arc::new(file.clone()) as Arc<dyn SessionStore>,
        600.0,
    )];
    rows.extend(store.map(|store| {
        let store = Arc::new(store.clone()) as Arc<dyn SessionStore>;
        ("PostgreSQL", store, 600.0)
    }));
    for (name, store, most) in rows {
        let lease = runtime.block_on(store.acquire(&session)).expect("a lease");
        runtime.block_on(store.append(&lease, &log)).expect("room");
        drop(lease);
        let agent = Agent::builder(ScriptedProvider::new([Turn::say("Yes.")]))
            .window(Window::Known(WINDOW))
            .store(Arc::clone(&store))
            .build()
            .expect("an agent");
        let open = || {
            let opened = runtime.block_on(agent.session(session.clone()));
            opened.expect("a session")
        };
        let items = open().view().transcript().items().len() as u64;
        assert_eq!(items, VIEW + 1, "messages in view, and a marker");
        let mut quickest = f64::INFINITY;
        for _ in 0..LOADS {
            let start = Instant::now();
            let opened = open();
            quickest = quickest.min(start.elapsed().as_secs_f64() * 1e3);
            drop(opened);
        }
        row(
            &format!(
                "opening a session of 50,000 entries of 1 KB in {name}, the quickest of {LOADS}"
            ),
            Amount(quickest, Unit::Millis),
            Requirement::AtMost(most),
        );
    }
}

/// A session of many short runs with texts of 1 KB. Plans keep the view short.
fn long_talk() -> Vec<Entry> {
    let text = "The quick brown fox jumps over the lazy dog.\n".repeat(20);
    let mut log = Vec::new();
    let (mut first, mut next) = (0, 0);
    for run in 1.. {
        log.push(Entry::RunStarted {
            run,
            model: "scripted/model".to_owned(),
            system: format!("Be brief. {text}").into(),
            tools: Vec::new(),
            config: None,
        });
        log.push(Entry::Message {
            message: Arc::new(Message::user(format!("{run} {text}"))),
            queued: None,
        });
        log.push(Entry::Reply {
            message: Arc::new(Message::Assistant {
                parts: vec![Part::text(format!("answer {run} {text}"))],
            }),
            stop: StopReason::Stop,
            usage: None,
            estimated: Usage::default(),
            counted: Tokens(1_000),
            cost: None,
        });
        log.push(Entry::RunEnded {
            outcome: Outcome::answered(text.clone()),
        });
        next += 2;
        if next - first == VIEW && log.len() >= ENTRIES {
            break;
        }
        if next - first == VIEW * 2 {
            log.push(Entry::PlanApplied {
                plan: drops(next - VIEW + 10),
            });
            first = next - VIEW + 10;
        }
    }
    log
}

/// The plan that drops the messages up to this one, with the marker of the plan before.
fn drops(to: u64) -> Plan {
    Plan {
        why: Trigger::Request,
        stages: vec!["evict".to_owned()],
        edits: vec![Edit::Drop {
            first: Seq(0),
            last: Seq(to - 1),
            marker: Rendition {
                message: Arc::new(
                    Gap {
                        messages: 1,
                        recall: None,
                    }
                    .message(),
                ),
                tokens: Tokens::ZERO,
            },
        }],
        before: Tokens::ZERO,
        frees: Tokens::ZERO,
        rewrites_from: Some(Seq(0)),
        recall: Recall::None,
        price: None,
    }
}

/// As the store makes it.
fn checksum(json: &str) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&1_i64.to_be_bytes());
    hasher.update(&1_i64.to_be_bytes());
    hasher.update(json.as_bytes());
    let mut sum = [0; 8];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

fn lease(runtime: &Runtime, store: &dyn SessionStore, name: &str) -> Lease {
    let session = SessionId::new(name).expect("a name");
    runtime.block_on(store.acquire(&session)).expect("a lease")
}

/// A tool result of 1 KB.
fn entry() -> Entry {
    let text = "The quick brown fox jumps over the lazy dog.\n".repeat(23);
    Entry::ToolResult {
        message: Arc::new(Message::result(CallId("call_0123456789".to_owned()), text)),
        spent: Default::default(),
    }
}
