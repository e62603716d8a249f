//! What sessions in PostgreSQL cost beside the file on the same disk, a commit waiting for the disk in
//! both. Rows for the table of `cargo xtask bench`; none if PostgreSQL is not installed.
#![allow(clippy::expect_used)]

#[path = "../../context/benches/figure/mod.rs"]
mod figure;
#[path = "../tests/script/server.rs"]
#[allow(dead_code, clippy::unwrap_used, clippy::print_stderr)]
mod server;

use std::sync::Arc;

use plimsoll_agent::Entry;
use plimsoll_context::{CallId, Message};
use plimsoll_core::{Lease, SessionId, SessionStore};
use plimsoll_store::{PostgresStore, SqliteStore};
use tokio::runtime::Runtime;

use figure::{Amount, Required, Unit, median, ratio, row, sections, time};

const ROUNDS: usize = 500;
/// Entries of the log that is resumed.
const ENTRIES: usize = 50_000;

fn main() {
    sections(&[("postgres", beside_the_file)]);
}

fn beside_the_file() {
    let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let Some(server) = server::Server::start_in(folder(), true) else {
        return;
    };
    let runtime = Runtime::new().expect("a runtime");
    let place = folder();
    let file = runtime.block_on(SqliteStore::open(place.path()));
    let store = runtime.block_on(PostgresStore::connect(&server.url()));
    let (file, store) = (file.expect("a store"), store.expect("a store"));
    let of_file = lease(&runtime, &file, "s");
    let of_server = lease(&runtime, &store, "s");
    let entry = [entry()];
    let append = |store: &dyn SessionStore, lease: &Lease| {
        let append = || runtime.block_on(store.append(lease, &entry));
        time(|| append().expect("room"))
    };
    let times = ratio(
        ROUNDS,
        || append(&store, &of_server),
        || append(&file, &of_file),
    );
    row(
        "appending an entry of 1 KB in PostgreSQL, beside the file with full sync",
        Amount(times, Unit::Times),
        Required::AtMost(3.0),
    );
    let log = vec![entry[0].clone(); ENTRIES];
    let long = lease(&runtime, &store, "long");
    runtime.block_on(store.append(&long, &log)).expect("room");
    let load = || runtime.block_on(store.load(long.session()));
    let spent = (0..5).map(|_| time(|| load().expect("a log")).as_secs_f64() * 1e3);
    row(
        "loading a log of 50,000 entries of 1 KB from PostgreSQL",
        Amount(median(spent.collect()), Unit::Millis),
        Required::Nothing,
    );
}

fn lease(runtime: &Runtime, store: &dyn SessionStore, name: &str) -> Lease {
    let session = SessionId::new(name).expect("a name");
    runtime.block_on(store.acquire(&session)).expect("a lease")
}

/// A tool result of 1 KB.
fn entry() -> Entry {
    let text = "The quick brown fox jumps over the lazy dog.\n".repeat(23);
    Entry::Returned {
        message: Arc::new(Message::result(CallId("call_0123456789".to_owned()), text)),
        pins: Vec::new(),
        spent: Default::default(),
    }
}
