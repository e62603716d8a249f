//! What a store costs: appends of one entry and of a turn's few, with and without waiting for the
//! disk, loading a log, and the list. Figures only; nothing is asserted.

use std::sync::Arc;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use plimsoll_agent::Entry;
use plimsoll_context::{CallId, Message};
use plimsoll_core::{Lease, SessionId, SessionStore};
use plimsoll_store::{Durability, Options, SqliteStore};
use tempfile::TempDir;
use tokio::runtime::Runtime;

fn main() {
    divan::main();
}

/// An open session, and the folder that it lives in. The folder is under the target directory: a
/// system's folder for passing things is often memory, where waiting for the disk costs nothing.
struct Bench {
    runtime: Runtime,
    store: SqliteStore,
    lease: Lease,
    _folder: TempDir,
}

impl Bench {
    fn new(durability: Durability) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let runtime = Runtime::new().unwrap();
        let options = Options {
            durability,
            ..Options::default()
        };
        let store = runtime
            .block_on(SqliteStore::open_with(folder.path(), options))
            .unwrap();
        let lease = runtime.block_on(store.acquire(&id(0))).unwrap();
        Self {
            runtime,
            store,
            lease,
            _folder: folder,
        }
    }

    fn append(&self, entries: &[Entry]) {
        let append = self.store.append(&self.lease, entries);
        self.runtime.block_on(append).unwrap();
    }
}

fn id(k: usize) -> SessionId {
    SessionId::new(format!("session-{k}")).unwrap()
}

/// A tool result of so many bytes.
fn entry(bytes: usize) -> Entry {
    let call = CallId("call_0123456789".to_owned());
    let text = "The quick brown fox jumps over the lazy dog.\n".repeat(bytes / 45 + 1);
    let text = text.get(..bytes).unwrap_or_default();
    Entry::ToolResult {
        message: Arc::new(Message::result(call, text)),
        spent: Default::default(),
    }
}

fn appends(bencher: Bencher<'_, '_>, durability: Durability, entries: &[Entry]) {
    let bench = Bench::new(durability);
    let bytes: usize = entries
        .iter()
        .map(|entry| serde_json::to_string(entry).unwrap().len())
        .sum();
    bencher
        .counter(ItemsCount::new(entries.len()))
        .counter(BytesCount::new(bytes))
        .bench_local(|| bench.append(entries));
}

#[divan::bench(sample_count = 100, sample_size = 100, args = [1 << 10, 100 << 10])]
fn append_one_normal(bencher: Bencher<'_, '_>, bytes: usize) {
    appends(bencher, Durability::Normal, &[entry(bytes)]);
}

#[divan::bench(sample_count = 100, sample_size = 10, args = [1 << 10, 100 << 10])]
fn append_one_full(bencher: Bencher<'_, '_>, bytes: usize) {
    appends(bencher, Durability::Full, &[entry(bytes)]);
}

/// The same row, written by SQLite alone with the same index and the same sync.
#[divan::bench(sample_count = 100, sample_size = 10, args = [1 << 10, 100 << 10])]
fn append_one_full_raw(bencher: Bencher<'_, '_>, bytes: usize) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let connection = rusqlite::Connection::open(folder.path().join("raw.db")).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode = wal; PRAGMA synchronous = FULL;
             CREATE TABLE entries (row INTEGER PRIMARY KEY, session INTEGER, n INTEGER, json TEXT);
             CREATE UNIQUE INDEX log ON entries (session, n);",
        )
        .unwrap();
    let json = serde_json::to_string(&entry(bytes)).unwrap();
    let mut n = 0;
    bencher
        .counter(BytesCount::new(json.len()))
        .bench_local(|| {
            n += 1;
            connection
                .prepare_cached("INSERT INTO entries (session, n, json) VALUES (1, ?1, ?2)")
                .and_then(|mut insert| insert.execute(rusqlite::params![n, json]))
                .unwrap()
        });
}

#[divan::bench(sample_count = 100, sample_size = 10)]
fn append_ten_full(bencher: Bencher<'_, '_>) {
    appends(bencher, Durability::Full, &vec![entry(1 << 10); 10]);
}

#[divan::bench(sample_count = 20, args = [10_000, 50_000])]
fn load(bencher: Bencher<'_, '_>, entries: usize) {
    let bench = Bench::new(Durability::Normal);
    bench.append(&vec![entry(1 << 10); entries]);
    bencher.counter(ItemsCount::new(entries)).bench_local(|| {
        let log = bench.runtime.block_on(bench.store.load(&id(0))).unwrap();
        black_box(log.len())
    });
}

#[divan::bench(sample_count = 20)]
fn list_1_000_sessions(bencher: Bencher<'_, '_>) {
    let bench = Bench::new(Durability::Normal);
    let entries = [entry(1 << 10)];
    for k in 1..=1_000 {
        let lease = bench.runtime.block_on(bench.store.acquire(&id(k))).unwrap();
        let append = bench.store.append(&lease, &entries);
        bench.runtime.block_on(append).unwrap();
    }
    bencher
        .counter(ItemsCount::new(1_000_usize))
        .bench_local(|| bench.runtime.block_on(bench.store.list()).unwrap().len());
}

#[divan::bench(sample_count = 20)]
fn open_and_close(bencher: Bencher<'_, '_>) {
    let bench = Bench::new(Durability::Full);
    bench.append(&vec![entry(1 << 10); 1_000]);
    let folder = bench.store.path().parent().unwrap().to_path_buf();
    let Bench {
        runtime,
        store,
        lease,
        _folder,
    } = bench;
    drop((store, lease));
    bencher.bench_local(|| runtime.block_on(SqliteStore::open(&folder)).unwrap());
}
