//! What a search costs in a session of a million archived items, in the file and in memory. Rows for
//! the table of `cargo xtask bench`.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Seq};
use plimsoll_core::{ArchiveBounds, ArchivedItem, MemoryStore, SessionId, SessionStore};
use plimsoll_store::{Durability, Options, SqliteStore};
use tokio::runtime::Runtime;

use figure::{Amount, Requirement, Unit, median, row, sections, time};

const ITEMS: u64 = 1_000_000;
/// Items that are archived in one call.
const BATCH: u64 = 10_000;
const HITS: usize = 5;
const ROUNDS: usize = 9;
const BOUND: Requirement = Requirement::AtMost(50.0);

/// A name of one item, words of many and of all, beginnings of few and of many words, words that
/// never stand together, and some that are nowhere.
const QUERIES: [&str; 9] = [
    "FACT-500001",
    "harbour ledger",
    "parseRequest returned",
    "modul",
    "00",
    "500",
    "src/module_7/handler.rs returned harbour",
    "harbour module_7 module_8 module_9 item 500002 nowhere",
    "nowhere",
];

fn main() {
    sections(&[("search_a_million", search_a_million)]);
}

fn search_a_million() {
    let runtime = Runtime::new().expect("a runtime");
    let archive = ArchiveBounds {
        bytes: Bytes(u64::MAX),
        session_bytes: Bytes(u64::MAX),
        session_items: ITEMS,
        ..ArchiveBounds::default()
    };
    let options = Options {
        durability: Durability::Normal,
        archive,
        ..Options::default()
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let file = runtime.block_on(SqliteStore::open_with(folder.path(), options));
    slowest(&runtime, "in the file", &file.expect("a store"));
    slowest(&runtime, "in memory", &MemoryStore::with_archive(archive));
    #[cfg(all(unix, feature = "postgres"))]
    in_postgres(&runtime);
}

/// Ten sessions, each as large as one may be by default.
#[cfg(all(unix, feature = "postgres"))]
fn in_postgres(runtime: &Runtime) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Some(server) = plimsoll_testkit::postgres::PostgresServer::start_in(folder, true) else {
        return;
    };
    let store = runtime.block_on(plimsoll_store::PostgresStore::connect(&server.url()));
    let store = store.expect("a store");
    for other in 1..10 {
        let session = SessionId::new(format!("s{other}")).expect("a name");
        fill(runtime, &store, &session, ITEMS / 10);
    }
    slowest_of(runtime, "in PostgreSQL in ten sessions", &store, ITEMS / 10);
}

/// Prints the slowest query's time.
fn slowest(runtime: &Runtime, place: &str, store: &dyn SessionStore) {
    slowest_of(runtime, place, store, ITEMS);
}

fn fill(runtime: &Runtime, store: &dyn SessionStore, session: &SessionId, items: u64) {
    let lease = runtime.block_on(store.acquire(session)).expect("a lease");
    for batch in 0..items / BATCH {
        let items: Vec<ArchivedItem> = (batch * BATCH..(batch + 1) * BATCH).map(item).collect();
        let archived = runtime.block_on(store.archive(&lease, &items));
        archived.expect("room for all items");
    }
}

fn slowest_of(runtime: &Runtime, place: &str, store: &dyn SessionStore, items: u64) {
    let session = SessionId::new("s").expect("a name");
    fill(runtime, store, &session, items);
    let spent = |query: &str| {
        let one = |_| {
            let search = || runtime.block_on(store.search(&session, query, HITS));
            time(|| search().expect("an answer")).as_secs_f64() * 1e3
        };
        median((0..ROUNDS).map(one).collect())
    };
    let times = QUERIES.map(|query| (spent(query), query));
    let slowest = times
        .into_iter()
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let (spent, query) = slowest.expect("a query");
    let queries = QUERIES.len();
    let what = format!("a search of a million items {place}, the slowest of {queries}: `{query}`");
    row(&what, Amount(spent, Unit::Millis), BOUND);
}

/// A tool's result with names, numbers and paths; no two are alike.
fn item(seq: u64) -> ArchivedItem {
    let mut state = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    state ^= state >> 7;
    state ^= state << 17;
    let (module, number) = (state % 977, state % 65_537);
    let text = format!(
        "src/module_{module}/handler.rs: parseRequest returned {number} for item {seq} of the \
         harbour's ledger, FACT-{seq:06}, and {:016x}",
        state
    );
    ArchivedItem {
        seq: Seq(seq),
        message: Arc::new(Message::result(CallId(format!("call_{seq}")), text)),
        tool: Some("read".to_owned()),
        why: "request: prune".to_owned(),
    }
}
