//! A store with one damaged page: every session that has nothing on that page is read whole, and of
//! the others it is told which entry cannot be read.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod script;

use std::path::Path;

use plimsoll_agent::Entry;
use plimsoll_context::{Message, Seq};
use plimsoll_core::{Fork, SessionStore, StoreError};
use plimsoll_store::{Durability, ExportedLog, FILE, Options, SqliteStore};
use script::{id, log};
use tempfile::TempDir;

const PAGE: usize = 4096;

fn options() -> Options {
    Options {
        durability: Durability::Normal,
        ..Options::default()
    }
}

async fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open_with(folder, options()).await.unwrap()
}

async fn write(store: &SqliteStore, session: &str, entries: &[Entry]) {
    let lease = store.acquire(&id(session)).await.unwrap();
    store.append(&lease, entries).await.unwrap();
}

/// Five sessions of several pages each, of which the last has an entry of several pages, and a fork.
async fn filled(folder: &TempDir) -> Vec<(&'static str, Vec<Entry>)> {
    let store = open(folder.path()).await;
    let mut large = log(3);
    large.push(Entry::Said {
        message: std::sync::Arc::new(Message::user("a long tale ".repeat(2_000))),
        queued: None,
    });
    let mut sessions = vec![("a", log(60)), ("b", log(61)), ("c", log(62)), ("d", large)];
    for (name, log) in &sessions {
        write(&store, name, log).await;
    }
    let of = Fork {
        from: id("b"),
        entries: 6,
        items: Seq(3),
    };
    let lease = store.acquire(&id("fork")).await.unwrap();
    store.fork(&lease, &of, &log(60)[6..]).await.unwrap();
    sessions.push(("fork", log(60)));
    sessions
}

/// How many sessions are lost.
async fn lost(folder: &Path, sessions: &[(&str, Vec<Entry>)]) -> Vec<String> {
    let store = open(folder).await;
    let listed = store.list().await.unwrap();
    let mut lost = Vec::new();
    for (name, log) in sessions {
        match store.load(&id(name)).await {
            Ok(read) if read == *log => {
                assert!(listed.iter().any(|info| info.id == id(name)), "{name}");
                let text = store.export(&id(name), Vec::new()).await.unwrap();
                let text = String::from_utf8(text).unwrap();
                assert_eq!(ExportedLog::parse(&text).unwrap().entries(), log);
            }
            Ok(read) => panic!("{name} has {} entries", read.len()),
            Err(StoreError::BadEntry { session, .. }) => {
                assert_eq!(session, id(name));
                lost.push((*name).to_owned());
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    lost
}

#[tokio::test]
async fn one_damaged_page_hurts_only_the_sessions_that_are_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let whole = std::fs::read(folder.path().join(FILE)).unwrap();
    assert_eq!(whole.len() % PAGE, 0);
    for page in 0..whole.len() / PAGE {
        for noise in [0x5a, 0] {
            let mut bytes = whole.clone();
            bytes[page * PAGE..][..PAGE].fill(noise);
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(FILE), &bytes).unwrap();
            let lost = lost(folder.path(), &sessions).await;
            // Neighbours on one page, and a fork together with its parent.
            assert!(lost.len() <= 3, "page {page}: {lost:?}");
            let after = std::fs::read(folder.path().join(FILE)).unwrap();
            assert!(after == bytes, "page {page} was changed");
        }
    }
}

#[tokio::test]
async fn what_stands_in_the_write_ahead_log_is_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let store = open(folder.path()).await;
    write(&store, "late", &log(40)).await;
    // As after `kill -9`: nobody has folded the log in.
    let copy = tempfile::tempdir().unwrap();
    for file in [FILE.to_owned(), format!("{FILE}-wal")] {
        std::fs::copy(folder.path().join(&file), copy.path().join(&file)).unwrap();
    }
    drop(store);
    let path = copy.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    // The pages of the schema, also in the newer log.
    bytes[..PAGE].fill(0x5a);
    std::fs::write(&path, &bytes).unwrap();
    let mut sessions = sessions;
    sessions.push(("late", log(40)));
    assert_eq!(lost(copy.path(), &sessions).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_damaged_store_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(&folder).await);
    let path = folder.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..PAGE].fill(0x5a);
    std::fs::write(&path, &bytes).unwrap();
    let store = open(folder.path()).await;
    let error = store.acquire(&id("new")).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(store.list().await.unwrap().len(), 5);
    assert!(store.is_damaged());
    assert!(store.load(&id("nobody")).await.is_err());
}

#[tokio::test]
async fn an_altered_byte_is_never_read_as_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let path = folder.path().join(FILE);
    let whole = std::fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(211) {
        let mut bytes = whole.clone();
        // Such that `swordfish` becomes `swordfush`: no structure is broken.
        bytes[at] ^= 0x1c;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), &bytes).unwrap();
        let Ok(store) = SqliteStore::open_with(folder.path(), options()).await else {
            continue;
        };
        for (name, log) in &sessions {
            match store.load(&id(name)).await {
                // Its name may be what was altered.
                Ok(read) if read.is_empty() => {}
                Ok(read) => assert!(read == *log, "byte {at}: {name} was altered"),
                Err(_) => {}
            }
        }
    }
}
