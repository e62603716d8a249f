//! The contract of forks, for every store that supports them: a log consists of its parent's first
//! entries and its own, and a fork has only the shared part of its parent's archive.

use std::fs;
use std::sync::Arc;

use plimsoll_agent::Entry;
use plimsoll_context::{Bytes, CallId, Message, Seq};
use plimsoll_core::{
    ArchiveBounds, ArchivedItem, Fork, ForkFault, Lease, MAX_FORK_DEPTH, RecallError, RecallKey,
    SessionId, SessionStore, StoreError,
};
use plimsoll_store::{ARCHIVE, ExportedEntry, FILE, SessionReader, SqliteStore};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

use crate::script::{Case, entry, id, log, options, stores};

async fn sqlite(folder: &TempDir) -> SqliteStore {
    let options = options(ArchiveBounds::default());
    SqliteStore::open_with(folder.path(), options)
        .await
        .unwrap()
}

async fn write(store: &dyn SessionStore, session: &str, entries: &[Entry]) {
    let lease = store.acquire(&id(session)).await.unwrap();
    store.append(&lease, entries).await.unwrap();
}

fn of(from: &str, entries: u64, items: u64) -> Fork {
    Fork {
        from: id(from),
        entries,
        items: Seq(items),
    }
}

/// Forks at an entry, sharing the items below a number.
async fn fork(store: &dyn SessionStore, from: &str, entries: u64, items: u64, to: &str) -> Lease {
    let lease = store.acquire(&id(to)).await.unwrap();
    store
        .fork(&lease, &of(from, entries, items), &[])
        .await
        .unwrap();
    lease
}

async fn load(store: &dyn SessionStore, session: &str) -> Vec<Entry> {
    store.load(&id(session)).await.unwrap()
}

#[tokio::test]
async fn a_fork_begins_with_what_it_shares_and_goes_on_alone() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        // Its parent may be written meanwhile.
        let parent = store.acquire(&id("p")).await.unwrap();
        store.append(&parent, &log(10)).await.unwrap();
        let lease = fork(store, "p", 6, 2, "f").await;
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
        let (beside, first) = (&log(6)[2..], of("p", 2, 0));
        store.fork(&lease, &first, beside).await.unwrap();
        assert_eq!(load(store, "g").await, log(6), "{name}");

        let list = store.list().await.unwrap();
        let names: Vec<&str> = list.iter().map(|info| info.id.as_str()).collect();
        assert_eq!(names, ["g", "f", "p"], "{name}: the one written last first");
        let find = |name| list.iter().find(|info| info.id == id(name)).unwrap();
        assert_eq!(find("f").fork, Some(of("p", 6, 2)), "{name}");
        assert_eq!((find("f").entries, find("p").entries), (10, 20), "{name}");
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
        assert_eq!(find("f").title, "task 1", "{name}");
        assert_eq!(find("g").title, "task 1", "{name}");
        assert_eq!(find("p").fork, None, "{name}");
    }
}

#[tokio::test]
async fn a_fork_that_cannot_be_made_says_why_and_leaves_nothing() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        write(store, "p", &log(5)).await;
        write(store, "q", &log(3)).await;
        let before = store.list().await.unwrap();
        let table = [
            (
                "f",
                of("nobody", 0, 0),
                ForkFault::Unknown,
                "session nobody cannot be forked: there is no such session",
            ),
            (
                "f",
                of("p", 6, 0),
                ForkFault::Beyond {
                    wanted: 6,
                    entries: 5,
                },
                "session p cannot be forked: its log has 5 entries, so there is no entry 6 to fork it at",
            ),
            (
                "q",
                of("p", 3, 0),
                ForkFault::Taken { session: id("q") },
                "session p cannot be forked: session q exists already; choose another name for the fork",
            ),
            (
                "p",
                of("p", 3, 0),
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
        drop(fork(store, "p", 5, 1, "f").await);
        assert_eq!(load(store, "f").await, log(5), "{name}");
    }
}

#[tokio::test]
async fn forks_of_forks_are_read_whole_up_to_a_depth_that_is_bounded() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        write(store, "0", &log(2)).await;
        for depth in 1..=MAX_FORK_DEPTH {
            let (from, to) = ((depth - 1).to_string(), depth.to_string());
            let lease = fork(store, &from, depth + 1, 0, &to).await;
            store.append(&lease, &[entry(depth + 1)]).await.unwrap();
        }
        let deepest = MAX_FORK_DEPTH.to_string();
        let whole = load(store, &deepest).await;
        assert_eq!(whole, log(MAX_FORK_DEPTH + 2), "{name}");
        let lease = store.acquire(&id("f")).await.unwrap();
        let error = store
            .fork(&lease, &of(&deepest, 1, 0), &[])
            .await
            .unwrap_err();
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
    let stores = runtime.block_on(stores(ArchiveBounds::default()));
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
                let share = share % (copy.len() + 1);
                let new = named(copies.len());
                drop(fork(store, old, share as u64, 0, &new).await);
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
    let lease = fork(&store, "p", 6, 2, "f").await;
    // The one that began last comes first, though nothing of its own was written yet.
    let names = |list: Vec<plimsoll_core::SessionInfo>| -> Vec<SessionId> {
        list.into_iter().map(|info| info.id).collect()
    };
    let list = store.newest(9).await.unwrap();
    assert_eq!(names(list), ["f", "other", "p"].map(id));
    let parent = store.info(&id("p")).await.unwrap().unwrap();
    let info = store.info(&id("f")).await.unwrap().unwrap();
    assert_eq!((info.created, info.entries), (parent.created, 6));
    assert!(info.updated <= parent.updated);
    drop(fork(&store, "f", 0, 0, "empty").await);
    let empty = store.info(&id("empty")).await.unwrap().unwrap();
    assert_eq!(
        (empty.entries, empty.title.as_str(), empty.fork),
        (0, "", Some(of("f", 0, 0)))
    );
    assert_eq!(load(&store, "empty").await, []);

    store.append(&lease, &log(9)[6..]).await.unwrap();
    let numbers =
        |lines: Vec<ExportedEntry>| -> Vec<u64> { lines.iter().map(|line| line.n).collect() };
    for after in [0, 3, 6, 8, 9] {
        let page = store.page(&id("f"), after).await.unwrap();
        assert_eq!(numbers(page), Vec::from_iter(after + 1..=9), "{after}");
    }
    let text = store
        .export(&[(id("f"), None)].into(), Vec::new())
        .await
        .unwrap();
    let lines = String::from_utf8(text).unwrap();
    let lines: Vec<ExportedEntry> = lines
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
        "UPDATE sessions SET items = 9 WHERE id = 'f'",
        "UPDATE sessions SET born = randomblob(16)",
    ] {
        let error = file.execute(sql, []).unwrap_err().to_string();
        assert!(error.contains("a session keeps its name"), "{error}");
    }
}

fn item(seq: u64, text: &str) -> ArchivedItem {
    ArchivedItem {
        seq: Seq(seq),
        message: Arc::new(Message::result(CallId(format!("call_{seq}")), text)),
        tool: Some("read".to_owned()),
        why: "request: evict".to_owned(),
    }
}

/// What recall says of a key: the text, or in one word why there is none.
async fn recalled(store: &dyn SessionStore, session: &str, key: &str) -> String {
    match store.recall(&id(session), &RecallKey::from(key)).await {
        Ok(item) => item.text(),
        Err(RecallError::Unknown(_)) => "unknown".to_owned(),
        Err(RecallError::Expired(_)) => "expired".to_owned(),
        Err(error) => panic!("{error}"),
    }
}

async fn found(store: &dyn SessionStore, session: &str, query: &str) -> Vec<u64> {
    let hits = store.search(&id(session), query, 5).await.unwrap();
    let mut found: Vec<u64> = hits.iter().map(|hit| hit.id.0.0).collect();
    found.sort_unstable();
    found
}

async fn listed(store: &dyn SessionStore, session: &str) -> Vec<(u64, bool)> {
    let rows = store.archived(&id(session)).await.unwrap();
    rows.iter().map(|row| (row.id.0.0, row.expired)).collect()
}

#[tokio::test]
async fn a_fork_recalls_what_it_shares_and_nothing_of_any_other_branch() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        let parent = store.acquire(&id("p")).await.unwrap();
        store.append(&parent, &log(9)).await.unwrap();
        let before = [item(0, "shared zero"), item(3, "parent three")];
        store.archive(&parent, &before).await.unwrap();
        let lease = fork(store, "p", 6, 3, "f").await;
        let sibling = fork(store, "p", 6, 3, "g").await;
        // What both share may leave the parent's view after the fork, and each view by itself.
        let after = [item(1, "shared one"), item(4, "parent four")];
        store.archive(&parent, &after).await.unwrap();
        let own = [item(0, "shared zero"), item(3, "fork three")];
        store.archive(&lease, &own).await.unwrap();
        let theirs = [item(2, "shared two"), item(3, "sibling three")];
        store.archive(&sibling, &theirs).await.unwrap();

        let table: [(&str, [&str; 5]); 3] = [
            (
                "p",
                [
                    "shared zero",
                    "shared one",
                    "unknown",
                    "parent three",
                    "parent four",
                ],
            ),
            (
                "f",
                [
                    "shared zero",
                    "shared one",
                    "unknown",
                    "fork three",
                    "unknown",
                ],
            ),
            (
                "g",
                [
                    "shared zero",
                    "shared one",
                    "shared two",
                    "sibling three",
                    "unknown",
                ],
            ),
        ];
        for (session, texts) in table {
            for (seq, text) in texts.iter().enumerate() {
                for key in [format!("m{seq}"), format!("{seq}"), format!("call_{seq}")] {
                    let said = recalled(store, session, &key).await;
                    assert_eq!(said, *text, "{name}: {session} {key}");
                }
            }
        }
        assert_eq!(found(store, "p", "three OR four").await, [3, 4], "{name}");
        assert_eq!(
            found(store, "f", "parent").await,
            Vec::<u64>::new(),
            "{name}"
        );
        assert_eq!(found(store, "f", "three").await, [3], "{name}");
        assert_eq!(found(store, "f", "shared").await, [0, 1], "{name}");
        assert_eq!(found(store, "g", "shared").await, [0, 1, 2], "{name}");
        let seqs: Vec<u64> = listed(store, "f").await.iter().map(|row| row.0).collect();
        assert_eq!(seqs, [0, 1, 3], "{name}");

        // A fork of the fork sees of the first parent what the first fork does, or less.
        drop(fork(store, "f", 4, 1, "ff").await);
        assert_eq!(recalled(store, "ff", "m0").await, "shared zero", "{name}");
        assert_eq!(recalled(store, "ff", "m1").await, "unknown", "{name}");
        assert_eq!(found(store, "ff", "shared three").await, [0], "{name}");
        // However much of the fork another one shares, of the first parent it is no more.
        drop(fork(store, "f", 6, 9, "fg").await);
        let texts = [
            "shared zero",
            "shared one",
            "unknown",
            "fork three",
            "unknown",
        ];
        for (seq, text) in texts.iter().enumerate() {
            let said = recalled(store, "fg", &format!("m{seq}")).await;
            assert_eq!(said, *text, "{name}: fg m{seq}");
        }
        // To open a session takes away what its log has not said, and nothing that it shares.
        store.archive_up_to(&lease, Seq(3)).await.unwrap();
        assert_eq!(recalled(store, "f", "m3").await, "unknown", "{name}");
        assert_eq!(recalled(store, "f", "m1").await, "shared one", "{name}");
        assert_eq!(recalled(store, "p", "m3").await, "parent three", "{name}");
    }
}

#[tokio::test]
async fn many_of_the_parents_own_hide_nothing_that_is_shared() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        let parent = store.acquire(&id("p")).await.unwrap();
        store.append(&parent, &log(9)).await.unwrap();
        let filler = "and so much else besides ".repeat(20);
        let items: Vec<ArchivedItem> = (0..60)
            .map(|seq| match seq {
                7 => item(seq, &format!("a whale, once; {filler}")),
                _ => item(seq, "whale whale whale"),
            })
            .collect();
        store.archive(&parent, &items).await.unwrap();
        for (session, items, seqs) in [("f", 8, vec![3, 4, 5, 6, 7]), ("g", 1, vec![0])] {
            drop(fork(store, "p", 6, items, session).await);
            let hits = store.search(&id(session), "whale", 5).await.unwrap();
            let all: Vec<u64> = hits.iter().map(|hit| hit.id.0.0).collect();
            assert_eq!(all.len(), seqs.len(), "{name}: {all:?}");
            assert!(all.iter().all(|seq| *seq < items), "{name}: {all:?}");
        }
        assert_eq!(found(store, "f", "once").await, [7], "{name}");
        assert_eq!(found(store, "g", "once").await, Vec::<u64>::new(), "{name}");
    }
}

#[tokio::test]
async fn what_has_expired_where_it_was_shared_says_so() {
    let bounds = ArchiveBounds {
        session_items: 2,
        expired_items: 2,
        ..ArchiveBounds::default()
    };
    for Case { name, store, .. } in stores(bounds).await {
        let store = store.as_ref();
        let parent = store.acquire(&id("p")).await.unwrap();
        store.append(&parent, &log(9)).await.unwrap();
        for seq in 0..4 {
            let item = item(seq, &format!("text {seq}"));
            store.archive(&parent, &[item]).await.unwrap();
        }
        let lease = fork(store, "p", 6, 3, "f").await;
        assert_eq!(
            listed(store, "f").await,
            [(0, true), (1, true), (2, false)],
            "{name}"
        );
        let texts = ["expired", "expired", "text 2", "unknown"];
        for (seq, text) in texts.iter().enumerate() {
            let said = recalled(store, "f", &format!("m{seq}")).await;
            assert_eq!(said, *text, "{name}: m{seq}");
        }
        // What the fork holds itself is held, whatever has become of it elsewhere.
        store.archive(&lease, &[item(0, "text 0")]).await.unwrap();
        assert_eq!(recalled(store, "f", "m0").await, "text 0", "{name}");
        assert_eq!(recalled(store, "p", "m0").await, "expired", "{name}");
        assert_eq!(
            listed(store, "f").await,
            [(0, false), (1, true), (2, false)],
            "{name}"
        );
        for seq in 4..9 {
            let item = item(seq, &format!("text {seq}"));
            store.archive(&parent, &[item]).await.unwrap();
        }
        // By now even that it expired is forgotten, and it is expired all the same.
        assert_eq!(recalled(store, "f", "m1").await, "expired", "{name}");
        assert_eq!(recalled(store, "f", "m8").await, "unknown", "{name}");
        assert_eq!(recalled(store, "f", "call_0").await, "text 0", "{name}");
    }
}

#[tokio::test]
async fn an_archive_shows_nothing_of_another_log_that_had_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(9)).await.unwrap();
    let items = [item(0, "old zero"), item(1, "old one")];
    store.archive(&lease, &items).await.unwrap();
    drop((lease, store));
    assert_eq!(recalled(&sqlite(&folder).await, "s", "m1").await, "old one");
    fs::remove_file(folder.path().join(FILE)).unwrap();

    let store = sqlite(&folder).await;
    for begun in [0, 3] {
        write(&store, "s", &log(begun)).await;
        for seq in 0..2 {
            let said = recalled(&store, "s", &format!("m{seq}")).await;
            assert_eq!(said, "unknown", "{begun}");
        }
        assert_eq!(found(&store, "s", "old").await, Vec::<u64>::new());
        assert_eq!(listed(&store, "s").await, []);
    }
    // Not to a fork of it either.
    drop(fork(&store, "s", 3, 9, "f").await);
    assert_eq!(recalled(&store, "f", "m0").await, "unknown");
    assert_eq!(found(&store, "f", "old").await, Vec::<u64>::new());

    let lease = store.acquire(&id("s")).await.unwrap();
    store.archive(&lease, &[item(1, "new one")]).await.unwrap();
    assert_eq!(recalled(&store, "s", "m0").await, "unknown");
    assert_eq!(recalled(&store, "s", "m1").await, "new one");
    assert_eq!(recalled(&store, "f", "m1").await, "new one");
    assert_eq!(listed(&store, "s").await, [(1, false)]);
}

#[tokio::test]
async fn what_an_older_version_has_archived_is_still_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(9)).await.unwrap();
    store.archive(&lease, &[item(0, "zero")]).await.unwrap();
    let file = rusqlite::Connection::open(folder.path().join(ARCHIVE)).unwrap();
    // It did not say of which log it was.
    file.execute("UPDATE sessions SET log = NULL", []).unwrap();
    assert_eq!(recalled(&store, "s", "m0").await, "zero");
    drop(fork(&store, "s", 3, 1, "f").await);
    assert_eq!(recalled(&store, "f", "m0").await, "zero");
    store.archive(&lease, &[item(1, "one")]).await.unwrap();
    assert_eq!(listed(&store, "s").await, [(0, false), (1, false)]);
    let sql = "SELECT count(*) FROM sessions WHERE length(log) = 16";
    let said: i64 = file.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(said, 1);
}
