//! The state after a killed process: every acknowledged append exists, the log folds, and the next
//! process may write to the session. The processes are this test program, started again.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};

use plimsoll_core::{Fork, SessionStore, StoreError};
use plimsoll_store::SqliteStore;
use plimsoll_testkit::ChildGuard;

use crate::script::{self, id};

/// Says to a started program that it is the child, and which folder to use.
const FOLDER: &str = "PLIMSOLL_STORE_TEST_FOLDER";

/// Starts this program again with that test alone.
fn started(test: &str, folder: &Path) -> ChildGuard {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("crash::{test}")])
        .args(["--nocapture", "--test-threads", "1"])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    ChildGuard::new(child)
}

fn told(child: &mut ChildGuard) -> Lines<BufReader<ChildStderr>> {
    BufReader::new(child.stderr.take().unwrap()).lines()
}

fn tell(line: &str) {
    let mut out = std::io::stderr().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// Carries on the log where it ends, in appends of one to three entries, and tells its length
/// after each, until it is killed or nobody listens.
async fn write_for_ever(folder: &Path) {
    let store = SqliteStore::open(folder).await.unwrap();
    let lease = store.acquire(&id("s")).await.unwrap();
    let mut written = store.load(&id("s")).await.unwrap().len() as u64;
    loop {
        let next: Vec<_> = (written..=written + written % 3)
            .map(script::entry)
            .collect();
        store.append(&lease, &next).await.unwrap();
        written += next.len() as u64;
        tell(&written.to_string());
    }
}

#[tokio::test]
async fn a_killed_writer_loses_at_most_what_it_was_writing() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return write_for_ever(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    for round in 0_usize..8 {
        let mut child = started(
            "a_killed_writer_loses_at_most_what_it_was_writing",
            folder.path(),
        );
        let mut told = told(&mut child);
        // Each round dies at another place, and while it is writing.
        let mut promised: u64 = 0;
        for _ in 0..=round * 5 {
            promised = told.next().unwrap().unwrap().parse().unwrap();
        }
        child.kill();
        for line in told {
            // The last line may be cut as well.
            promised = line.unwrap().parse().unwrap_or(promised).max(promised);
        }

        let store = SqliteStore::open(folder.path()).await.unwrap();
        let log = store.load(&id("s")).await.unwrap();
        let length = log.len() as u64;
        let one_more = promised + promised % 3 + 1;
        assert!(
            length == promised || length == one_more,
            "round {round}: {promised} entries were acknowledged, {length} are there"
        );
        assert_eq!(log, script::log(length));
        assert_eq!(
            script::fold(&log).runs(),
            (length - 1).div_ceil(script::RUN)
        );
        let info = store.head(&id("s")).await.unwrap().unwrap();
        assert_eq!(info.entries, length);
    }
}

/// More entries than there will be forks.
const ENTRIES: u64 = 4_000;

/// Forks a log at one entry after the other, each fork with an entry of its own, and tells how many
/// sessions there are after each.
async fn fork_for_ever(folder: &Path) {
    let store = SqliteStore::open(folder).await.unwrap();
    let mut made = store.list().await.unwrap().len() as u64;
    if made == 0 {
        let lease = store.acquire(&id("0")).await.unwrap();
        let log = script::log(ENTRIES);
        store.append(&lease, &log).await.unwrap();
        made = 1;
    }
    loop {
        let lease = store.acquire(&id(&made.to_string())).await.unwrap();
        let of = Fork {
            from: id("0"),
            entries: made % ENTRIES,
        };
        let own = [script::entry(made % ENTRIES)];
        store.fork(&lease, &of, &own).await.unwrap();
        made += 1;
        tell(&made.to_string());
    }
}

#[tokio::test]
async fn a_killed_writer_leaves_a_fork_whole_or_not_at_all() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return fork_for_ever(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    for round in 0_usize..4 {
        let mut child = started(
            "a_killed_writer_leaves_a_fork_whole_or_not_at_all",
            folder.path(),
        );
        let mut told = told(&mut child);
        let mut promised: u64 = 0;
        for _ in 0..=round * 3 {
            promised = told.next().unwrap().unwrap().parse().unwrap();
        }
        child.kill();
        for line in told {
            promised = line.unwrap().parse().unwrap_or(promised).max(promised);
        }

        let store = SqliteStore::open(folder.path()).await.unwrap();
        let there = store.list().await.unwrap().len() as u64;
        assert!(
            there == promised || there == promised + 1,
            "round {round}: {promised} sessions were acknowledged, {there} are there"
        );
        for k in [1, there / 2, there - 1] {
            let log = store.load(&id(&k.to_string())).await.unwrap();
            assert_eq!(log, script::log(k % ENTRIES + 1), "round {round}");
        }
    }
}

#[tokio::test]
async fn a_second_process_is_refused_until_the_first_is_killed() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = SqliteStore::open(Path::new(&folder)).await.unwrap();
        let _lease = store.acquire(&id("s")).await.unwrap();
        tell("held");
        // Ends with the parent, if nothing else ends it.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = started(
        "a_second_process_is_refused_until_the_first_is_killed",
        folder.path(),
    );
    let held = told(&mut child).next().unwrap().unwrap();
    assert_eq!(held, "held");

    let store = SqliteStore::open(folder.path()).await.unwrap();
    let refused = store.acquire(&id("s")).await.unwrap_err();
    assert_eq!(refused, StoreError::Busy { session: id("s") });
    // Any other session is free, and the busy one can be read.
    let other = store.acquire(&id("other")).await.unwrap();
    store.append(&other, &script::log(2)).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap(), []);

    child.kill();
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &script::log(3)).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap(), script::log(3));
}
