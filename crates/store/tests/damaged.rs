//! A store with one damaged page: every session that has nothing on that page is read whole, and of
//! the others it is told which entry cannot be read.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod script;

use std::path::Path;

use plimsoll_agent::Entry;
use plimsoll_context::{Message, Seq};
use plimsoll_core::{Fork, SessionStore, StoreError};
use plimsoll_store::{Durability, ExportedLog, FILE, Line, Options, Salvaged, SqliteStore};
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

/// Checks a salvaged store: every log is what it was, up to what is said of it.
async fn salvaged(from: &Path, sessions: &[(&str, Vec<Entry>)]) -> Vec<Salvaged> {
    let store = open(from).await;
    let folder = tempfile::tempdir().unwrap();
    let before = std::fs::read(from.join(FILE)).unwrap();
    let all = store.salvage(folder.path()).await.unwrap();
    assert!(before == std::fs::read(from.join(FILE)).unwrap());
    let new = open(folder.path()).await;
    let listed: Vec<_> = new.list().await.unwrap();
    let named = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        named(listed.iter().map(|info| info.id.as_str()).collect()),
        named(all.iter().map(|one| one.id.as_str()).collect()),
        "in the same order"
    );
    for one in &all {
        let recovered = usize::try_from(one.recovered).unwrap();
        let read = new.load(&one.id).await.unwrap();
        assert_eq!(read.len(), recovered, "{one:?}");
        let Some((_, log)) = sessions.iter().find(|(name, _)| id(name) == one.id) else {
            assert!(one.id.as_str().starts_with("lost-"), "{one:?}");
            continue;
        };
        assert_eq!(read, log[..recovered], "{one:?}");
        assert_eq!(one.why.is_none(), recovered == log.len(), "{one:?}");
        let behind = one.file.as_ref().map(std::fs::read_to_string);
        let behind = behind.transpose().unwrap().unwrap_or_default();
        assert_eq!(behind.lines().count() as u64, one.behind);
        for line in behind.lines() {
            let line: Line = serde_json::from_str(line).unwrap();
            assert_eq!(line.entry, log[usize::try_from(line.n).unwrap() - 1]);
        }
    }
    assert!(!new.is_damaged());
    all
}

#[tokio::test]
async fn a_whole_store_is_salvaged_whole() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let store = open(folder.path()).await;
    store
        .save_settings(&id("a"), "{\"model\":1}")
        .await
        .unwrap();
    store.rename(&id("b"), "Port it").await.unwrap();
    let all = salvaged(folder.path(), &sessions).await;
    assert_eq!(all.len(), sessions.len());
    assert!(all.iter().all(|one| one.lost() == 0 && one.why.is_none()));

    let target = tempfile::tempdir().unwrap();
    store.salvage(target.path()).await.unwrap();
    let new = open(target.path()).await;
    assert_eq!(new.list().await.unwrap(), store.list().await.unwrap());
    let settings = new.settings(&id("a")).await.unwrap();
    assert_eq!(settings.as_deref(), Some("{\"model\":1}"));
    let error = store.salvage(target.path()).await.unwrap_err().to_string();
    assert!(
        error.ends_with("there is a store already; choose another folder"),
        "{error}"
    );
    write(&new, "a", &log(61)[60..]).await;
    assert_eq!(new.list().await.unwrap()[0].id, id("a"), "written last");
}

#[tokio::test]
async fn a_salvaged_store_has_all_that_its_damaged_page_did_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let whole = std::fs::read(folder.path().join(FILE)).unwrap();
    let (mut behind, mut complete) = (0, 0);
    for page in 0..whole.len() / PAGE {
        for noise in [0x5a, 0] {
            let mut bytes = whole.clone();
            bytes[page * PAGE..][..PAGE].fill(noise);
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(FILE), &bytes).unwrap();
            let all = salvaged(folder.path(), &sessions).await;
            assert!(all.len() >= sessions.len(), "page {page}: {all:?}");
            let lost = all.iter().filter(|one| one.why.is_some()).count();
            assert!(lost <= 3, "page {page}: {all:?}");
            behind += all.iter().map(|one| one.behind).sum::<u64>();
            complete += all.len() - lost;
        }
    }
    assert!(behind > 0 && complete > 0);
}

#[tokio::test]
async fn what_a_cut_file_and_an_altered_byte_leave_is_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let whole = std::fs::read(folder.path().join(FILE)).unwrap();
    for cut in [whole.len() - 1, whole.len() / 2, 3 * PAGE] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), &whole[..cut]).unwrap();
        salvaged(folder.path(), &sessions).await;
    }
    for at in (0..whole.len()).step_by(997) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x1c;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), &bytes).unwrap();
        let Ok(store) = SqliteStore::open_with(folder.path(), options()).await else {
            continue;
        };
        let target = tempfile::tempdir().unwrap();
        // The name of a session may be what was altered.
        for one in store.salvage(target.path()).await.unwrap() {
            let log = sessions.iter().find(|(name, _)| id(name) == one.id);
            let read = open(target.path()).await.load(&one.id).await.unwrap();
            assert!(
                log.is_none_or(|(_, log)| log.starts_with(&read)),
                "byte {at}"
            );
        }
    }
}
