//! What an archive costs: taking in a result of 100 KB with and without waiting for the disk, and,
//! with a thousand of them held, opening, one item back, a page of a tool, and a search.
//! Figures only; nothing is asserted.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use plimsoll_context::{CallId, Message, Seq};
use plimsoll_core::{ArchivedItem, Lease, RecallId, SessionId, SessionStore};
use plimsoll_store::{Durability, Options, SqliteStore};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The length of one item's text.
const ITEM: usize = 100_000;
/// Items that are held where something is looked for.
const HELD: u64 = 1_000;

fn main() {
    divan::main();
}

/// An open session, and the folder that it lives in: on a disk, not in memory.
struct Bench {
    runtime: Runtime,
    store: SqliteStore,
    lease: Lease,
    session: SessionId,
    next: AtomicU64,
    folder: TempDir,
}

impl Bench {
    fn new(durability: Durability) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let runtime = Runtime::new().unwrap();
        let options = Options {
            durability,
            ..Options::default()
        };
        let session = SessionId::new("s").unwrap();
        let store = SqliteStore::open_with(folder.path(), options);
        let store = runtime.block_on(store).unwrap();
        let lease = runtime.block_on(store.acquire(&session)).unwrap();
        Self {
            runtime,
            store,
            lease,
            session,
            next: AtomicU64::new(0),
            folder,
        }
    }

    fn filled(items: u64) -> Self {
        let bench = Self::new(Durability::Normal);
        for _ in 0..items {
            let item = bench.item();
            bench.archive(&[item]);
        }
        bench
    }

    fn item(&self) -> ArchivedItem {
        let seq = self.next.fetch_add(1, Ordering::Relaxed);
        ArchivedItem {
            seq: Seq(seq),
            message: Arc::new(Message::result(CallId(format!("call_{seq}")), text(seq))),
            tool: Some("read".to_owned()),
            why: "request: prune".to_owned(),
        }
    }

    fn archive(&self, items: &[ArchivedItem]) {
        let archive = self.store.archive(&self.lease, items);
        self.runtime.block_on(archive).unwrap();
    }

    fn search(&self, query: &str) -> usize {
        let search = self.store.search(&self.session, query, 5);
        self.runtime.block_on(search).unwrap().len()
    }
}

/// Something like a log with names, numbers and paths; no two are alike.
fn text(seed: u64) -> String {
    let mut text = String::with_capacity(ITEM + 200);
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut line = 0;
    while text.len() < ITEM {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let (file, number) = (state % 977, state % 65_537);
        let _ = writeln!(
            text,
            "{line:05} src/module_{file}/handler.rs: parseRequest returned {number} in item {seed}"
        );
        line += 1;
    }
    text.truncate(ITEM);
    text
}

#[divan::bench(args = [Durability::Full, Durability::Normal], sample_count = 100)]
fn take_one_in(bencher: Bencher, durability: Durability) {
    let bench = Bench::new(durability);
    bencher
        .counter(BytesCount::new(ITEM))
        .with_inputs(|| [bench.item()])
        .bench_refs(|items| bench.archive(items));
}

#[divan::bench(args = [Durability::Full], sample_count = 10)]
fn take_twenty_in(bencher: Bencher, durability: Durability) {
    let bench = Bench::new(durability);
    bencher
        .counter(ItemsCount::new(20_usize))
        .with_inputs(|| (0..20).map(|_| bench.item()).collect::<Vec<_>>())
        .bench_refs(|items| bench.archive(items));
}

#[divan::bench(sample_count = 100)]
fn recall_one_of_a_thousand(bencher: Bencher) {
    let bench = Bench::filled(HELD);
    let next = AtomicU64::new(0);
    bencher.bench(|| {
        let seq = next.fetch_add(379, Ordering::Relaxed) % HELD;
        let key = RecallId(Seq(seq)).into();
        let recalled = bench.store.recall(&bench.session, &key);
        black_box(bench.runtime.block_on(recalled).unwrap())
    });
}

/// A word of one item, words of all of them, the beginning of a name, and words of none.
#[divan::bench(
    args = ["500 item", "parseRequest returned", "modul", "src/module_7/handler.rs", "nowhere"],
    sample_count = 20
)]
fn search_a_thousand(bencher: Bencher, query: &str) {
    let bench = Bench::filled(HELD);
    bencher.bench(|| black_box(bench.search(query)));
}

/// A small file is checked whole, a large one is not.
#[divan::bench(args = [10, 300, HELD], sample_count = 10)]
fn open_and_check(bencher: Bencher, items: u64) {
    let Bench { folder, .. } = Bench::filled(items);
    let runtime = Runtime::new().unwrap();
    bencher.bench(|| {
        runtime.block_on(async {
            let store = SqliteStore::open(folder.path()).await.unwrap();
            store.archives().await.unwrap();
        });
    });
}
