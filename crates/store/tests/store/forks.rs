//! The contract of forks, for every store that supports them: a log consists of its parent's first
//! entries and its own.

use plimsoll_agent::Entry;
use plimsoll_context::Bytes;
use plimsoll_core::{
    Fork, ForkFault, Lease, LogEntry, MAX_FORK_DEPTH, SessionId, SessionStore, StoreError,
};
use plimsoll_store::{FILE, SessionReader, SqliteStore};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

use crate::script::{Case, entry, id, log, options, stores};

async fn sqlite(folder: &TempDir) -> SqliteStore {
    let options = options();
    SqliteStore::open_with(folder.path(), options)
        .await
        .unwrap()
}

async fn write(store: &dyn SessionStore, session: &str, entries: &[Entry]) {
    let lease = store.acquire(&id(session)).await.unwrap();
    store.append(&lease, entries).await.unwrap();
}

fn of(from: &str, entries: u64) -> Fork {
    Fork {
        from: id(from),
        entries,
    }
}

/// Forks at an entry.
async fn fork(store: &dyn SessionStore, from: &str, entries: u64, to: &str) -> Lease {
    let lease = store.acquire(&id(to)).await.unwrap();
    store.fork(&lease, &of(from, entries), &[]).await.unwrap();
    lease
}

async fn load(store: &dyn SessionStore, session: &str) -> Vec<Entry> {
    store.load(&id(session)).await.unwrap()
}

#[tokio::test]
async fn a_fork_begins_with_what_it_shares_and_goes_on_alone() {
    for Case { name, store, .. } in stores().await {
        let store = store.as_ref();
        // Its parent may be written meanwhile.
        let parent = store.acquire(&id("p")).await.unwrap();
        store.append(&parent, &log(10)).await.unwrap();
        let lease = fork(store, "p", 6, "f").await;
        assert_eq!(load(store, "f").await, log(6), "{name}");
        store.append(&parent, &log(20)[10..]).await.unwrap();
        assert_eq!(load(store, "f").await, log(6), "{name}");
        let own: Vec<Entry> = (1..5).map(entry).collect();
        store.append(&lease, &own).await.unwrap();
        let whole = [log(6), own.clone()].concat();
        assert_eq!(load(store, "f").await, whole, "{name}");
        assert_eq!(load(store, "p").await, log(20), "{name}");

        // Its own first entries come with it, in one step.
        let lease = store.acquire(&id("g")).await.unwrap();
        let (beside, first) = (&log(6)[2..], of("p", 2));
        store.fork(&lease, &first, beside).await.unwrap();
        assert_eq!(load(store, "g").await, log(6), "{name}");

        let list = store.list().await.unwrap();
        let names: Vec<&str> = list.iter().map(|info| info.id.as_str()).collect();
        assert_eq!(names, ["g", "f", "p"], "{name}: the one written last first");
        let find = |name| list.iter().find(|info| info.id == id(name)).unwrap();
        assert_eq!((find("f").entries, find("p").entries), (10, 20), "{name}");
        assert_eq!(find("f").title, "task 1", "{name}");
        assert_eq!(find("g").title, "task 1", "{name}");
        assert_eq!(find("p").fork, None, "{name}");
        if name == "memory" {
            assert_eq!(find("f").fork, None, "its forks are copies");
            continue;
        }
        assert_eq!(find("f").fork, Some(of("p", 6)), "{name}");
        // Each has the size of its own entries.
        let sizes = [("p", &log(20)[..]), ("f", &own), ("g", &log(6)[2..])];
        for (session, entries) in sizes {
            let json = entries
                .iter()
                .map(|entry| serde_json::to_string(entry).unwrap());
            let bytes: usize = json.map(|json| json.len()).sum();
            assert_eq!(
                find(session).bytes,
                Bytes(bytes as u64),
                "{name}: {session}"
            );
        }
    }
}

#[tokio::test]
async fn a_fork_that_cannot_be_made_says_why_and_leaves_nothing() {
    for Case { name, store, .. } in stores().await {
        let store = store.as_ref();
        write(store, "p", &log(5)).await;
        write(store, "q", &log(3)).await;
        let before = store.list().await.unwrap();
        let table = [
            (
                "f",
                of("nobody", 0),
                ForkFault::Unknown,
                "session nobody cannot be forked: there is no such session",
            ),
            (
                "f",
                of("p", 6),
                ForkFault::Beyond {
                    wanted: 6,
                    entries: 5,
                },
                "session p cannot be forked: its log has 5 entries, so there is no entry 6 to fork it at",
            ),
            (
                "q",
                of("p", 3),
                ForkFault::Taken { session: id("q") },
                "session p cannot be forked: session q exists already; choose another name for the fork",
            ),
            (
                "p",
                of("p", 3),
                ForkFault::Taken { session: id("p") },
                "session p cannot be forked: session p exists already; choose another name for the fork",
            ),
        ];
        for (to, of, why, text) in table {
            let lease = store.acquire(&id(to)).await.unwrap();
            let error = store.fork(&lease, &of, &log(1)).await.unwrap_err();
            assert_eq!(error.to_string(), text, "{name}");
            let session = of.from;
            assert_eq!(error, StoreError::CannotFork { session, why }, "{name}");
        }
        assert_eq!(store.list().await.unwrap(), before, "{name}");
        assert_eq!(load(store, "f").await, [], "{name}");
        // The name is still free.
        drop(fork(store, "p", 5, "f").await);
        assert_eq!(load(store, "f").await, log(5), "{name}");
    }
}

#[tokio::test]
async fn forks_of_forks_are_read_whole_up_to_a_depth_that_is_bounded() {
    // The forks of the store in memory are copies, which have no depth.
    for Case { name, store, .. } in stores().await.into_iter().filter(|it| it.name != "memory") {
        let store = store.as_ref();
        write(store, "0", &log(2)).await;
        for depth in 1..=MAX_FORK_DEPTH {
            let (from, to) = ((depth - 1).to_string(), depth.to_string());
            let lease = fork(store, &from, depth + 1, &to).await;
            store.append(&lease, &[entry(depth + 1)]).await.unwrap();
        }
        let deepest = MAX_FORK_DEPTH.to_string();
        let whole = load(store, &deepest).await;
        assert_eq!(whole, log(MAX_FORK_DEPTH + 2), "{name}");
        let lease = store.acquire(&id("f")).await.unwrap();
        let error = store.fork(&lease, &of(&deepest, 1), &[]).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("256 levels deep; continue it"), "{text}");
        assert_eq!(load(store, "f").await, [], "{name}");
    }
}

/// What is done with sessions that are named by the order in which they began.
#[derive(Debug, Clone)]
enum Do {
    Append { session: usize, entries: u64 },
    Fork { from: usize, share: usize },
}

fn doing() -> impl Strategy<Value = Do> {
    prop_oneof![
        (0..8_usize, 1..6_u64).prop_map(|(session, entries)| Do::Append { session, entries }),
        (0..8_usize, 0..40_usize).prop_map(|(from, share)| Do::Fork { from, share }),
    ]
}

/// Whatever is written and forked in whatever order, each log is what a copy would be.
#[test]
fn a_fork_reads_as_a_copy_would() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let stores = runtime.block_on(stores());
    // One store for all: to open one takes longer than all else here.
    let round = std::cell::Cell::new(0);
    let plans = prop::collection::vec(doing(), 1..24);
    let cases = ProptestConfig::with_cases(24);
    let ran = TestRunner::new(cases).run(&plans, |plan| {
        round.set(round.get() + 1);
        for Case { name, store, .. } in &stores {
            let copies = runtime.block_on(act(store.as_ref(), round.get(), &plan));
            for (session, copy) in copies {
                let read = runtime.block_on(load(store.as_ref(), &session));
                prop_assert_eq!(&read, &copy, "{}: {}", name, session);
            }
        }
        Ok(())
    });
    ran.unwrap();
}

/// Does it all; gives each session with what a copy of it would be.
async fn act(store: &dyn SessionStore, round: u32, plan: &[Do]) -> Vec<(String, Vec<Entry>)> {
    let named = |k: usize| format!("{round}-{k}");
    let mut copies = vec![(named(0), log(4))];
    write(store, &named(0), &log(4)).await;
    let mut written = 4;
    for step in plan {
        match *step {
            Do::Append { session, entries } => {
                let at = session % copies.len();
                let (session, copy) = &mut copies[at];
                // Never the same entry twice, so that a mix-up shows.
                let new: Vec<Entry> = (written..written + entries).map(entry).collect();
                written += entries;
                write(store, session, &new).await;
                copy.extend(new);
            }
            Do::Fork { from, share } => {
                let (old, copy) = &copies[from % copies.len()];
                // A copy of nothing would be no session.
                let share = 1 + share % copy.len();
                let new = named(copies.len());
                drop(fork(store, old, share as u64, &new).await);
                let copy = copy[..share].to_vec();
                copies.push((new, copy));
            }
        }
    }
    copies
}

#[tokio::test]
async fn a_file_of_forks_is_paged_listed_and_exported_as_whole_logs() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder).await;
    write(&store, "p", &log(9)).await;
    write(&store, "other", &log(1)).await;
    let lease = fork(&store, "p", 6, "f").await;
    // The one that began last comes first, though nothing of its own was written yet.
    let names = |list: Vec<plimsoll_core::SessionInfo>| -> Vec<SessionId> {
        list.into_iter().map(|info| info.id).collect()
    };
    let list = store.list().await.unwrap();
    assert_eq!(names(list), ["f", "other", "p"].map(id));
    let parent = store.head(&id("p")).await.unwrap().unwrap();
    let info = store.head(&id("f")).await.unwrap().unwrap();
    let times = (info.created, info.updated);
    assert_eq!(times, (parent.created, parent.updated));
    assert_eq!(info.entries, 6);
    drop(fork(&store, "f", 0, "empty").await);
    let empty = store.head(&id("empty")).await.unwrap().unwrap();
    assert_eq!(
        (empty.entries, empty.title.as_str(), empty.fork),
        (0, "task 1", Some(of("f", 0)))
    );
    assert_eq!(load(&store, "empty").await, []);

    store.append(&lease, &log(9)[6..]).await.unwrap();
    let numbers = |lines: Vec<LogEntry>| -> Vec<u64> { lines.iter().map(|line| line.n).collect() };
    for after in [0, 3, 6, 8, 9] {
        let page = store.read(&id("f"), after, 100).await.unwrap();
        assert_eq!(numbers(page), Vec::from_iter(after + 1..=9), "{after}");
    }
    let text = store.export(&[id("f")].into(), Vec::new()).await.unwrap();
    let lines = String::from_utf8(text).unwrap();
    let lines: Vec<LogEntry> = lines
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let entries: Vec<Entry> = lines.into_iter().map(|line| line.entry).collect();
    assert_eq!(entries, log(9));

    let file = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
    let count = |sql: &str| -> i64 { file.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(count("SELECT count(*) FROM entries"), 9 + 1 + 3);
    assert_eq!(count("SELECT count(*) FROM log WHERE session = 'f'"), 9);
    // The file itself keeps a session from becoming another's fork later.
    for sql in [
        "UPDATE sessions SET parent = 1 WHERE id = 'other'",
        "UPDATE sessions SET shared = 2 WHERE id = 'f'",
    ] {
        let error = file.execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("a session keeps its name"), "{error}");
    }
}
