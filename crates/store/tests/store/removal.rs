//! Deleting and renaming, for every store: a session is removed completely or not at all, and
//! nothing of it can be found under its old name.

use std::time::Duration;

use plimsoll_context::Bytes;
use plimsoll_core::{FileEdit, Fork, RecallError, Retention, SessionStore, StoreError};
use plimsoll_store::{FILE, PruneReport, SessionReader, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::script::{Case, id, log, options, stores};

async fn write(store: &dyn SessionStore, session: &str, entries: u64) {
    let lease = store.acquire(&id(session)).await.unwrap();
    store.append(&lease, &log(entries)).await.unwrap();
}

async fn names(store: &dyn SessionStore) -> Vec<String> {
    let list = store.list().await.unwrap();
    list.into_iter().map(|info| info.id.into()).collect()
}

#[tokio::test]
async fn a_deleted_session_leaves_nothing_behind() {
    for Case { name, store, .. } in stores().await {
        let store = store.as_ref();
        write(store, "other", 9).await;
        let lease = store.acquire(&id("s")).await.unwrap();
        assert!(
            !store.delete(&lease).await.unwrap(),
            "{name}: not there yet"
        );
        store.append(&lease, &log(20)).await.unwrap();
        assert!(store.delete(&lease).await.unwrap(), "{name}");
        assert_eq!(store.load(&id("s")).await.unwrap(), [], "{name}");
        assert_eq!(names(store).await, ["other"], "{name}");
        assert_eq!(store.head(&id("s")).await.unwrap(), None, "{name}");
        assert!(!store.delete(&lease).await.unwrap(), "{name}: gone already");

        // The lease is still good, and the log begins anew.
        store.append(&lease, &log(3)).await.unwrap();
        assert_eq!(store.load(&id("s")).await.unwrap(), log(3), "{name}");
        let key = "call-1";
        let found = store.recall(&id("s"), key).await.unwrap_err();
        assert!(matches!(found, RecallError::Unknown(_)), "{name}: {found}");
        assert_eq!(store.load(&id("other")).await.unwrap(), log(9), "{name}");
    }
}

#[tokio::test]
async fn a_session_whose_entries_a_fork_needs_is_not_deleted() {
    for Case { name, store, .. } in stores().await {
        let store = store.as_ref();
        let parent = store.acquire(&id("p")).await.unwrap();
        store.append(&parent, &log(20)).await.unwrap();
        let fork = store.acquire(&id("f")).await.unwrap();
        let of = Fork {
            from: id("p"),
            entries: 6,
        };
        store.fork(&fork, &of, &[]).await.unwrap();
        if name == "memory" {
            // Its forks are copies.
            assert!(store.delete(&parent).await.unwrap());
            assert_eq!(store.load(&id("f")).await.unwrap(), log(6));
            continue;
        }
        let error = store.delete(&parent).await.unwrap_err();
        let forks = StoreError::HasForks {
            session: id("p"),
            forks: vec![id("f")],
        };
        assert_eq!(error, forks, "{name}");
        assert_eq!(store.load(&id("p")).await.unwrap(), log(20), "{name}");
        assert_eq!(store.load(&id("f")).await.unwrap(), log(6), "{name}");

        assert!(store.delete(&fork).await.unwrap(), "{name}");
        assert_eq!(store.load(&id("p")).await.unwrap(), log(20), "{name}");
        assert!(store.delete(&parent).await.unwrap(), "{name}");
        assert!(names(store).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_session_that_is_being_written_is_nobody_elses_to_delete() {
    for Case { name, store, .. } in stores().await {
        let lease = store.acquire(&id("s")).await.unwrap();
        store.append(&lease, &log(2)).await.unwrap();
        let busy = store.acquire(&id("s")).await.unwrap_err();
        assert!(matches!(busy, StoreError::Busy { .. }), "{name}: {busy}");
    }
}

#[tokio::test]
async fn a_title_that_was_given_stays_the_sessions_own() {
    for Case { name, store, .. } in stores().await {
        let store = store.as_ref();
        let nobody = store.rename(&id("s"), "Port it").await.unwrap();
        assert!(!nobody && names(store).await.is_empty(), "{name}");
        write(store, "s", 20).await;
        let fork = store.acquire(&id("f")).await.unwrap();
        let of = Fork {
            from: id("s"),
            entries: 6,
        };
        store.fork(&fork, &of, &[]).await.unwrap();
        // Somebody may be writing to it.
        let lease = store.acquire(&id("s")).await.unwrap();
        assert!(store.rename(&id("s"), "Port it").await.unwrap(), "{name}");
        store.append(&lease, &log(30)[20..]).await.unwrap();
        let titles = async || -> Vec<(String, String)> {
            let list = store.list().await.unwrap().into_iter();
            let mut titles: Vec<_> = list.map(|info| (info.id.into(), info.title)).collect();
            titles.sort();
            titles
        };
        let named = |f: &str, s: &str| [("f", f), ("s", s)].map(|(id, t)| (id.into(), t.into()));
        assert_eq!(titles().await, named("task 1", "Port it"), "{name}");
        assert!(store.rename(&id("s"), "").await.unwrap(), "{name}");
        assert_eq!(titles().await, named("task 1", ""), "{name}");
        assert_eq!(store.load(&id("s")).await.unwrap(), log(30), "{name}");
    }
}

const DAY: u64 = 24 * 60 * 60;

/// A folder with sessions of one day each, the last the newest, all of the same size.
async fn aged(names: &[&str]) -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_with(folder.path(), options())
        .await
        .unwrap();
    for name in names {
        write(&store, name, 20).await;
    }
    let raw = Connection::open(folder.path().join(FILE)).unwrap();
    for (name, days) in names.iter().rev().zip(0_u64..) {
        let sql = "UPDATE sessions SET updated = updated - ?2 WHERE id = ?1";
        let ago = i64::try_from(days * DAY + 60).unwrap();
        raw.execute(sql, rusqlite::params![name, ago]).unwrap();
    }
    (folder, store)
}

fn older_than(days: u64) -> Retention {
    Retention {
        max_age: Some(Duration::from_secs(days * DAY)),
        ..Retention::default()
    }
}

async fn prune(store: &SqliteStore, retention: &Retention) -> PruneReport {
    let outdated = store.outdated(retention).await.unwrap();
    let pruned = store.prune(&outdated).await;
    store.shrink().await.unwrap();
    pruned
}

fn deleted(pruned: &PruneReport) -> Vec<&str> {
    pruned.deleted.iter().map(|info| info.id.as_str()).collect()
}

#[tokio::test]
async fn sessions_are_pruned_by_age_and_by_size() {
    let (_folder, store) = aged(&["d", "c", "b", "a"]).await;
    let nothing = prune(&store, &Retention::default()).await;
    assert_eq!(nothing, PruneReport::default(), "off by default");
    let pruned = prune(&store, &older_than(3)).await;
    assert_eq!(deleted(&pruned), ["d"]);
    let size = store.head(&id("a")).await.unwrap().unwrap().bytes.0;
    let by_size = |bytes| Retention {
        max_bytes: Some(Bytes(bytes)),
        ..Retention::default()
    };
    let outdated = store.outdated(&by_size(2 * size)).await.unwrap();
    assert_eq!(outdated.len(), 1);
    assert_eq!(names(&store).await, ["a", "b", "c"], "only asked");
    let pruned = prune(&store, &by_size(2 * size)).await;
    assert_eq!(deleted(&pruned), ["c"], "the newest stay");
    let pruned = prune(&store, &by_size(2 * size - 1)).await;
    assert_eq!(deleted(&pruned), ["b"]);
    assert_eq!(store.load(&id("a")).await.unwrap(), log(20));
    assert!(store.delete_all(&[id("a")].into()).await.unwrap());
    assert!(!store.delete_all(&[id("a")].into()).await.unwrap());
}

#[tokio::test]
async fn what_a_kept_fork_needs_is_kept_and_old_forks_go_first() {
    let (folder, store) = aged(&["p", "q"]).await;
    for (from, to) in [("p", "p1"), ("p1", "p2"), ("q", "q1"), ("q1", "q2")] {
        let lease = store.acquire(&id(to)).await.unwrap();
        let of = Fork {
            from: id(from),
            entries: 20,
        };
        // The newest is written today.
        store.fork(&lease, &of, &log(21)[20..]).await.unwrap();
    }
    let raw = Connection::open(folder.path().join(FILE)).unwrap();
    let sql = "UPDATE sessions SET updated = 0 WHERE id <> 'p2'";
    raw.execute(sql, []).unwrap();
    let pruned = prune(&store, &older_than(3)).await;
    assert_eq!(deleted(&pruned), ["q2", "q1", "q"]);
    assert_eq!(pruned.kept, []);
    assert_eq!(names(&store).await, ["p2", "p1", "p"]);
}

#[tokio::test]
async fn a_session_that_is_being_written_is_not_pruned() {
    let (folder, store) = aged(&["old", "busy", "parent", "child"]).await;
    let other = SqliteStore::open_with(folder.path(), options())
        .await
        .unwrap();
    let lease = other.acquire(&id("busy")).await.unwrap();
    let child = other.acquire(&id("fork")).await.unwrap();
    let of = Fork {
        from: id("parent"),
        entries: 20,
    };
    other.fork(&child, &of, &[]).await.unwrap();
    let raw = Connection::open(folder.path().join(FILE)).unwrap();
    raw.execute("UPDATE sessions SET updated = 0", []).unwrap();
    let pruned = prune(&store, &older_than(1)).await;
    assert_eq!(deleted(&pruned), ["child", "old"]);
    let kept = pruned.kept.into_iter();
    let mut kept: Vec<_> = kept.map(|(info, why)| (info.id, why)).collect();
    kept.sort_by(|one, other| one.0.cmp(&other.0));
    let busy = |name| (id(name), StoreError::Busy { session: id(name) });
    let forks = StoreError::HasForks {
        session: id("parent"),
        forks: vec![id("fork")],
    };
    assert_eq!(kept, [busy("busy"), busy("fork"), (id("parent"), forks)]);
    other.append(&lease, &log(21)[20..]).await.unwrap();
    assert_eq!(other.load(&id("busy")).await.unwrap(), log(21));
}

#[tokio::test]
async fn sessions_are_deleted_together_or_not_at_all() {
    let (_folder, store) = aged(&["a", "b", "parent"]).await;
    let lease = store.acquire(&id("fork")).await.unwrap();
    let of = Fork {
        from: id("parent"),
        entries: 20,
    };
    store.fork(&lease, &of, &[]).await.unwrap();
    let delete = async |names: &[&str]| {
        let ids = names.iter().map(|name| id(name));
        store.delete_all(&ids.collect()).await
    };
    let busy = delete(&["a", "fork"]).await;
    assert_eq!(
        busy,
        Err(StoreError::Busy {
            session: id("fork")
        })
    );
    drop(lease);
    let error = delete(&["a", "parent"]).await.unwrap_err();
    assert!(matches!(error, StoreError::HasForks { .. }), "{error}");
    assert_eq!(names(&store).await.len(), 4);
    assert_eq!(delete(&["a", "fork", "nobody", "parent"]).await, Ok(true));
    assert_eq!(names(&store).await, ["b"]);
}

#[tokio::test]
async fn the_space_of_pruned_sessions_is_given_back_with_their_kept_files() {
    let (folder, store) = aged(&["old", "new"]).await;
    let lease = store.acquire(&id("old")).await.unwrap();
    for k in 0_u8..9 {
        let edit = FileEdit {
            root: folder.path().to_path_buf(),
            path: "f".into(),
            call: None,
            before: None,
            after: Some(vec![k; 100_000]),
        };
        store.keep_file(&id("old"), edit).await.unwrap();
    }
    drop(lease);
    let size = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
    let raw = Connection::open(folder.path().join(FILE)).unwrap();
    raw.execute("UPDATE sessions SET updated = 0 WHERE id = 'old'", [])
        .unwrap();
    drop(raw);
    let pruned = prune(&store, &older_than(1)).await;
    assert_eq!(deleted(&pruned), ["old"]);
    assert_eq!(store.changed_files(&id("old")).await.unwrap(), []);
    drop(store);
    assert!(size(FILE) < 300_000, "{}", size(FILE));
}
