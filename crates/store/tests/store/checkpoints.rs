//! The contract of checkpoints, for every store: a session is the same with and without one, and one that
//! does not belong to the log is not used.

use std::fs;
use std::sync::Arc;

use plimsoll_agent::{Checkpoint, Entry, Setup, State};
use plimsoll_context::{Chars4, Message, Policy, Seq};
use plimsoll_core::{ArchiveBounds, Fork, Lease, SessionStore};
use plimsoll_store::{FILE, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::script::{Case, RUN, fold, id, log, options, stores};

/// Number of entries after so many runs.
fn after(runs: u64) -> u64 {
    1 + runs * RUN
}

fn checkpoint(log: &[Entry]) -> Checkpoint {
    fold(log).checkpoint(log.len() as u64).unwrap()
}

async fn begin(store: &dyn SessionStore, session: &str, entries: u64) -> Lease {
    let lease = store.acquire(&id(session)).await.unwrap();
    store.append(&lease, &log(entries)).await.unwrap();
    lease
}

/// Number of entries that the checkpoint covers from which a session is resumed; 0 without one. The
/// session must be the one of its log.
async fn covered(store: &dyn SessionStore, session: &str) -> u64 {
    let whole = store.load(&id(session)).await.unwrap();
    let found = store.resume(&id(session)).await.unwrap();
    let setup = Setup::new("", Arc::new(Chars4), Policy::unlimited());
    let (mut state, covers) = match &found.checkpoint {
        Some(checkpoint) => {
            let state = State::restore(checkpoint, &setup).unwrap();
            (state, checkpoint.entries)
        }
        None => (State::for_setup(&setup), 0),
    };
    assert_eq!(found.entries, whole[covers as usize..], "{session}");
    found
        .entries
        .iter()
        .for_each(|entry| state.absorb(entry).unwrap());
    let folded = fold(&whole);
    let view = |state: &State| format!("{:?}", state.transcript());
    assert_eq!(view(&state), view(&folded), "{session}");
    assert_eq!(state.checkpoint(0), folded.checkpoint(0), "{session}");
    covers
}

#[tokio::test]
async fn a_session_is_the_same_with_and_without_a_checkpoint() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        let lease = begin(store, "s", after(3)).await;
        assert_eq!(covered(store, "s").await, 0, "{name}");
        let first = checkpoint(&log(after(2)));
        store.save_checkpoint(&lease, &first).await.unwrap();
        assert_eq!(covered(store, "s").await, after(2), "{name}");
        // A later one replaces it, and the log goes on.
        let second = checkpoint(&log(after(3)));
        store.save_checkpoint(&lease, &second).await.unwrap();
        let more = &log(after(5) + 3)[after(3) as usize..];
        store.append(&lease, more).await.unwrap();
        assert_eq!(covered(store, "s").await, after(3), "{name}");
        assert_eq!(
            store.load(&id("s")).await.unwrap(),
            log(after(5) + 3),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_checkpoint_goes_with_its_session_and_does_not_reach_beyond_its_log() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        let lease = begin(store, "s", after(3)).await;
        let beyond = checkpoint(&log(after(4)));
        store.save_checkpoint(&lease, &beyond).await.unwrap();
        assert_eq!(covered(store, "s").await, 0, "{name}");
        let here = checkpoint(&log(after(3)));
        store.save_checkpoint(&lease, &here).await.unwrap();
        assert_eq!(covered(store, "s").await, after(3), "{name}");
        assert!(store.delete(&lease).await.unwrap(), "{name}");
        store.append(&lease, &log(after(3))).await.unwrap();
        assert_eq!(
            covered(store, "s").await,
            0,
            "{name}: another log of that name"
        );
        let nowhere = store.acquire(&id("nowhere")).await.unwrap();
        store.save_checkpoint(&nowhere, &here).await.unwrap();
        assert_eq!(covered(store, "nowhere").await, 0, "{name}");
    }
}

#[tokio::test]
async fn a_fork_uses_the_checkpoint_of_its_parent_as_far_as_it_shares_the_log() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        let parent = begin(store, "p", after(4)).await;
        let at = |runs: u64| checkpoint(&log(after(runs)));
        store.save_checkpoint(&parent, &at(3)).await.unwrap();
        let mut forks = Vec::new();
        // One that shares all that the checkpoint covers, one that does not, and a fork of the first.
        for (from, to, entries) in [
            ("p", "long", after(3) + 2),
            ("p", "short", after(3) - 1),
            ("long", "grandchild", after(3)),
        ] {
            let lease = store.acquire(&id(to)).await.unwrap();
            let of = Fork {
                from: id(from),
                entries,
                items: Seq(0),
            };
            store.fork(&lease, &of, &[]).await.unwrap();
            forks.push(lease);
        }
        assert_eq!(covered(store, "long").await, after(3), "{name}");
        assert_eq!(covered(store, "short").await, 0, "{name}");
        assert_eq!(covered(store, "grandchild").await, after(3), "{name}");
        // The parent goes on.
        store.save_checkpoint(&parent, &at(4)).await.unwrap();
        for fork in ["long", "short", "grandchild"] {
            assert_eq!(covered(store, fork).await, 0, "{name}: {fork}");
        }
        // Its own covers shared entries only, and reaches into those of both ancestors.
        store.save_checkpoint(&forks[2], &at(2)).await.unwrap();
        assert_eq!(covered(store, "grandchild").await, after(2), "{name}");
        assert_eq!(covered(store, "long").await, 0, "{name}");
        assert_eq!(covered(store, "p").await, after(4), "{name}");
    }
}

async fn sqlite(folder: &TempDir) -> SqliteStore {
    let options = options(ArchiveBounds::default());
    SqliteStore::open_with(folder.path(), options)
        .await
        .unwrap()
}

/// Changes that another program makes, none of which may be believed.
const ALTERATIONS: [&str; 6] = [
    "UPDATE checkpoints SET state = replace(state, 'task 1', 'task 7') WHERE session = 1",
    "UPDATE checkpoints SET entries = entries - 7 WHERE session = 1",
    "UPDATE checkpoints SET sum = sum + 1 WHERE session = 1",
    "UPDATE checkpoints SET entries = 22, state = (SELECT state FROM checkpoints WHERE session = 2),
         sum = (SELECT sum FROM checkpoints WHERE session = 2) WHERE session = 1",
    "UPDATE checkpoints SET entries = 1000000 WHERE session = 1",
    "DELETE FROM checkpoints WHERE session = 1",
];

#[tokio::test]
async fn an_altered_checkpoint_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder).await;
    let here = checkpoint(&log(after(3)));
    let one = begin(&store, "one", after(3)).await;
    let two = begin(&store, "two", after(3)).await;
    store.save_checkpoint(&two, &here).await.unwrap();
    let raw = Connection::open(folder.path().join(FILE)).unwrap();
    for alteration in ALTERATIONS {
        store.save_checkpoint(&one, &here).await.unwrap();
        assert_eq!(covered(&store, "one").await, after(3), "{alteration}");
        assert_eq!(raw.execute(alteration, []).unwrap(), 1, "{alteration}");
        assert_eq!(covered(&store, "one").await, 0, "{alteration}");
    }
    store.save_checkpoint(&one, &here).await.unwrap();
    raw.execute_batch("UPDATE checkpoints SET state = CAST(x'ff' AS TEXT)")
        .unwrap();
    assert_eq!(covered(&store, "one").await, 0);
    // The last entry that it covers is read with it.
    store.save_checkpoint(&one, &here).await.unwrap();
    raw.execute_batch(
        "DROP TRIGGER entries_are_not_changed;
         UPDATE entries SET json = replace(json, 'done 3', 'none 3') WHERE session = 1 AND n = 22",
    )
    .unwrap();
    assert!(store.load(&id("one")).await.is_err());
    assert!(
        store.resume(&id("one")).await.is_err(),
        "the log says which entry it is"
    );
    raw.execute_batch("DROP TABLE checkpoints").unwrap();
    assert_eq!(covered(&store, "two").await, 0);
}

/// Alters the checkpoints of a fork and its ancestors one after the other, by `alter`. Each time, the
/// fork uses the nearest one that is left.
async fn ancestors_stand_in(store: &dyn SessionStore, alter: impl AsyncFn(String)) {
    let parent = begin(store, "parent", after(4)).await;
    let at = |runs: u64| checkpoint(&log(after(runs)));
    store.save_checkpoint(&parent, &at(1)).await.unwrap();
    for (from, to, runs) in [("parent", "child", 2), ("child", "grandchild", 3)] {
        let lease = store.acquire(&id(to)).await.unwrap();
        let of = Fork {
            from: id(from),
            entries: after(3),
            items: Seq(0),
        };
        store.fork(&lease, &of, &[]).await.unwrap();
        store.save_checkpoint(&lease, &at(runs)).await.unwrap();
    }
    assert_eq!(covered(store, "grandchild").await, after(3));
    for (session, left) in [("grandchild", after(2)), ("child", after(1)), ("parent", 0)] {
        alter(format!(
            "UPDATE checkpoints SET sum = sum + 1
             WHERE session = (SELECT key FROM sessions WHERE id = '{session}')"
        ))
        .await;
        assert_eq!(covered(store, "grandchild").await, left, "{session}");
    }
}

#[tokio::test]
async fn the_checkpoint_of_an_ancestor_stands_in_for_an_altered_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder).await;
    ancestors_stand_in(&store, async |sql: String| {
        let raw = Connection::open(folder.path().join(FILE)).unwrap();
        assert_eq!(raw.execute(&sql, []).unwrap(), 1);
    })
    .await;
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test]
async fn the_checkpoint_of_an_ancestor_stands_in_for_an_altered_one_in_postgres() {
    use plimsoll_store::PostgresStore;
    use sqlx::Connection;
    let Some(server) = plimsoll_testkit::postgres::PostgresServer::start() else {
        return;
    };
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    ancestors_stand_in(&store, async |sql: String| {
        let mut raw = sqlx::PgConnection::connect(&server.url()).await.unwrap();
        let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
        let altered = sql.execute(&mut raw).await.unwrap();
        assert_eq!(altered.rows_affected(), 1);
    })
    .await;
    store.close().await;
}

#[cfg(all(unix, feature = "postgres"))]
#[tokio::test]
async fn an_altered_checkpoint_is_not_used_in_postgres() {
    use plimsoll_store::PostgresStore;
    use sqlx::Connection;
    let Some(server) = plimsoll_testkit::postgres::PostgresServer::start() else {
        return;
    };
    let store = PostgresStore::connect(&server.url()).await.unwrap();
    let here = checkpoint(&log(after(3)));
    let one = begin(&store, "one", after(3)).await;
    let two = begin(&store, "two", after(3)).await;
    store.save_checkpoint(&two, &here).await.unwrap();
    let mut raw = sqlx::PgConnection::connect(&server.url()).await.unwrap();
    for alteration in ALTERATIONS {
        store.save_checkpoint(&one, &here).await.unwrap();
        assert_eq!(covered(&store, "one").await, after(3), "{alteration}");
        let altered = sqlx::raw_sql(alteration).execute(&mut raw).await.unwrap();
        assert_eq!(altered.rows_affected(), 1, "{alteration}");
        assert_eq!(covered(&store, "one").await, 0, "{alteration}");
    }
    let none = "DROP TABLE checkpoints";
    sqlx::raw_sql(none).execute(&mut raw).await.unwrap();
    assert_eq!(covered(&store, "two").await, 0);
    store.close().await;
}

#[tokio::test]
async fn a_check_finds_a_checkpoint_that_is_not_the_state_of_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder).await;
    let mut leases = Vec::new();
    for session in ["good", "wrong", "none"] {
        leases.push(begin(&store, session, after(4)).await);
    }
    let good = checkpoint(&log(after(3)));
    store.save_checkpoint(&leases[0], &good).await.unwrap();
    let wrong = Checkpoint {
        entries: after(4),
        ..good.clone()
    };
    store.save_checkpoint(&leases[1], &wrong).await.unwrap();
    let checked = async || {
        let checked = SqliteStore::check(folder.path()).await.unwrap().sessions;
        assert!(checked.iter().all(|session| session.is_whole()));
        let wrong = checked
            .iter()
            .filter(|session| session.has_wrong_checkpoint);
        wrong.map(|session| session.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(checked().await, [id("wrong")]);
    assert_eq!(store.drop_checkpoints().await.unwrap(), 2);
    assert_eq!(checked().await, []);
    assert_eq!(covered(&store, "wrong").await, 0);
}

#[tokio::test]
async fn no_checkpoint_of_a_deleted_session_is_left_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(&folder).await;
    let other = begin(&store, "other", after(9)).await;
    let lease = begin(&store, "s", after(1)).await;
    // Only the first checkpoint has the text, in pages of its own.
    let secret = "quince ".repeat(10_000);
    let state = checkpoint(&[log(after(1)), vec![said(&secret)]].concat()).state;
    let first = Checkpoint {
        entries: after(1),
        state,
    };
    store.save_checkpoint(&lease, &first).await.unwrap();
    let kept = |wanted: &str| {
        let files = fs::read_dir(folder.path()).unwrap();
        let files = files.map(|file| fs::read(file.unwrap().path()).unwrap_or_default());
        let mut files = files.collect::<Vec<_>>().into_iter();
        files.any(|bytes| {
            bytes
                .windows(wanted.len())
                .any(|is| is == wanted.as_bytes())
        })
    };
    assert!(kept("quince"));
    let second = checkpoint(&log(after(1)));
    store.save_checkpoint(&lease, &second).await.unwrap();
    assert!(store.delete(&lease).await.unwrap());
    drop((lease, other, store));
    assert!(!kept("quince"));
    assert!(kept("task 9"));
}

fn said(text: &str) -> Entry {
    Entry::Message {
        message: Arc::new(Message::user(text)),
        queued: None,
    }
}
