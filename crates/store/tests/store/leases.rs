//! The right to write to a session: one process at a time, and never one that was stopped and
//! replaced. The processes are this test program, started again.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_agent::Entry;
use plimsoll_context::Message;
use plimsoll_core::{Fork, Lease, SessionStore, StoreError};
use plimsoll_store::{Durability, FILE, Options, SessionReader, SqliteStore};
use rusqlite::Connection;
use rustix::process::Signal;

use crate::script::other::{LOST, Other, PLACE};
use crate::script::{entry, id, log};

/// Long enough that a process on a busy machine is not thought dead, short enough for a test.
const PATIENCE: Duration = Duration::from_secs(2);

async fn open(folder: &Path) -> SqliteStore {
    let options = Options {
        durability: Durability::Normal,
        patience: PATIENCE,
        ..Options::default()
    };
    SqliteStore::open_with(folder, options).await.unwrap()
}

/// What the other process does: every way of writing to a session, as it is asked.
async fn obey(folder: &Path) {
    let store = open(folder).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    eprintln!("held");
    for line in std::io::stdin().lines() {
        let done = write(&store, &lease, &line.unwrap()).await;
        match done {
            Ok(()) => eprintln!("done"),
            Err(error) => eprintln!("{error}"),
        }
    }
}

async fn write(store: &SqliteStore, lease: &Lease, what: &str) -> Result<(), StoreError> {
    let of = Fork {
        from: id("parent"),
        entries: 2,
    };
    match what {
        "append" => {
            let have = store.load(&id("s")).await?.len() as u64;
            store.append(lease, &[entry(have)]).await
        }
        "fork" => store.fork(lease, &of, &[]).await,
        "delete" => store.delete(lease).await.map(|_| ()),
        _ => panic!("{what}"),
    }
}

#[tokio::test]
async fn a_process_that_was_stopped_and_replaced_writes_nothing_when_it_wakes_up() {
    if let Some(folder) = std::env::var_os(PLACE) {
        return obey(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let parent = store.acquire(&id("parent")).await.unwrap();
    store.append(&parent, &log(5)).await.unwrap();
    let mut other = Other::start(
        "leases::a_process_that_was_stopped_and_replaced_writes_nothing_when_it_wakes_up",
        folder.path(),
    );
    for _ in 0..3 {
        assert_eq!(other.ask("append"), "done");
    }
    // It lives, and is left alone however long it writes nothing.
    for _ in 0..3 {
        let busy = store.acquire(&id("s")).await.unwrap_err();
        assert_eq!(busy, StoreError::Busy { session: id("s") });
    }

    other.signal(Signal::STOP);
    let since = Instant::now();
    let lease = store.acquire(&id("s")).await.unwrap();
    assert!(since.elapsed() >= PATIENCE, "{:?}", since.elapsed());
    assert_eq!(store.load(&id("s")).await.unwrap(), log(3));
    store.append(&lease, &log(6)[3..]).await.unwrap();

    other.signal(Signal::CONT);
    for what in ["append", "fork", "delete"] {
        assert_eq!(other.ask(what), LOST, "{what}");
    }
    assert_eq!(store.load(&id("s")).await.unwrap(), log(6));
    store.append(&lease, &log(9)[6..]).await.unwrap();

    // Nor does its end free the session.
    drop(other);
    let third = open(folder.path()).await;
    let busy = third.acquire(&id("s")).await.unwrap_err();
    assert_eq!(busy, StoreError::Busy { session: id("s") });
    store.append(&lease, &log(12)[9..]).await.unwrap();
    drop(lease);
    let lease = third.acquire(&id("s")).await.unwrap();
    third.append(&lease, &log(15)[12..]).await.unwrap();
    assert_eq!(third.load(&id("s")).await.unwrap(), log(15));
}

#[tokio::test]
async fn a_process_that_was_stopped_and_not_replaced_goes_on() {
    if let Some(folder) = std::env::var_os(PLACE) {
        return obey(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut other = Other::start(
        "leases::a_process_that_was_stopped_and_not_replaced_goes_on",
        folder.path(),
    );
    other.signal(Signal::STOP);
    other.signal(Signal::CONT);
    assert_eq!(other.ask("append"), "done");
    // Killed, it holds nothing, and nobody waits.
    other.signal(Signal::KILL);
    other.child.wait().unwrap();
    let store = open(folder.path()).await;
    let since = Instant::now();
    let lease = store.acquire(&id("s")).await.unwrap();
    assert!(since.elapsed() < PATIENCE, "{:?}", since.elapsed());
    store.append(&lease, &log(3)[1..]).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap(), log(3));
}

#[tokio::test]
async fn clocks_that_differ_decide_nothing() {
    const YEAR: i64 = 365 * 24 * 60 * 60;
    if let Some(folder) = std::env::var_os(PLACE) {
        return obey(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let mut other = Other::start("leases::clocks_that_differ_decide_nothing", folder.path());
    let set_times = |by: i64| {
        let raw = Connection::open(folder.path().join(FILE)).unwrap();
        let sql = "UPDATE sessions SET updated = updated + ?1";
        raw.execute(sql, [by]).unwrap();
    };
    assert_eq!(other.ask("append"), "done");
    // As if its clock were a year behind: it is alive all the same.
    set_times(-YEAR);
    let busy = store.acquire(&id("s")).await.unwrap_err();
    assert_eq!(busy, StoreError::Busy { session: id("s") });
    // And as if it were a year ahead: it stands still all the same.
    other.signal(Signal::STOP);
    set_times(2 * YEAR);
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &[entry(1)]).await.unwrap();
    other.signal(Signal::CONT);
    assert_eq!(other.ask("append"), LOST);
    assert_eq!(store.load(&id("s")).await.unwrap(), log(2));

    // The file has no time of a lease at all.
    let raw = Connection::open(folder.path().join(FILE)).unwrap();
    for table in ["leases", "holders"] {
        let mut columns = raw
            .prepare("SELECT name FROM pragma_table_info(?1)")
            .unwrap();
        let names = columns.query_map([table], |row| row.get::<_, String>(0));
        for name in names.unwrap() {
            let name = name.unwrap();
            assert!(
                ["session", "token", "holder", "key", "beats"].contains(&&*name),
                "{name}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_wait_for_a_stopped_process_one_gets_the_session() {
    if let Some(folder) = std::env::var_os(PLACE) {
        return obey(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let other = Other::start(
        "leases::of_many_that_wait_for_a_stopped_process_one_gets_the_session",
        folder.path(),
    );
    other.signal(Signal::STOP);
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let store = open(folder.path()).await;
        waiting.spawn(async move {
            let lease = store.acquire(&id("s")).await;
            (lease, store)
        });
    }
    let mut all = Vec::new();
    while let Some(done) = waiting.join_next().await {
        all.push(done.unwrap());
    }
    let won = all.iter().filter(|(lease, _)| lease.is_ok());
    assert_eq!(won.count(), 1);
    for (lease, store) in &all {
        match lease {
            Ok(lease) => store.append(lease, &log(2)).await.unwrap(),
            Err(error) => assert_eq!(*error, StoreError::Busy { session: id("s") }),
        }
    }
    let names = std::fs::read_dir(folder.path().join("locks")).unwrap();
    assert_eq!(names.count(), 1, "no spare file is left");
    drop(all);
    let names = std::fs::read_dir(folder.path().join("locks")).unwrap();
    assert_eq!(names.count(), 0);
    drop(other);
}

#[tokio::test]
async fn a_deleted_session_leaves_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let name = "about-the-merger";
    let lease = store.acquire(&id(name)).await.unwrap();
    let said = Entry::Message {
        message: Arc::new(Message::user("Hush.")),
        queued: None,
    };
    store.append(&lease, &[entry(0), said]).await.unwrap();
    store.delete(&lease).await.unwrap();
    store.shrink().await.unwrap();
    drop((lease, store));
    let bytes = std::fs::read(folder.path().join(FILE)).unwrap();
    let found = bytes.windows(name.len()).any(|at| at == name.as_bytes());
    assert!(!found);
}
