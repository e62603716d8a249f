//! A store with one damaged page: every session without data on that page is read completely, and
//! for the others the unreadable entry is reported.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_agent::Entry;
use plimsoll_context::Message;
use plimsoll_core::{Fork, SessionStore, StoreError};
use plimsoll_store::{
    CheckedSession, Durability, Export, FILE, Options, SessionReader, SqliteStore,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::script::{id, log};

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
    large.push(Entry::Message {
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
    };
    let lease = store.acquire(&id("fork")).await.unwrap();
    store.fork(&lease, &of, &log(59)[6..]).await.unwrap();
    sessions.push(("fork", log(59)));
    drop(store);
    fold(&folder.path().join(FILE));
    sessions
}

/// Moves the write-ahead log into the file, since a thread may still have the store's connection.
fn fold(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(busy, 0);
}

/// Opens a copy of a store of which a page is overwritten.
fn with_damaged_page(whole: &[u8], page: usize, noise: u8) -> TempDir {
    let mut bytes = whole.to_vec();
    bytes[page * PAGE..][..PAGE].fill(noise);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE), &bytes).unwrap();
    folder
}

#[tokio::test]
async fn one_damaged_page_of_entries_hurts_only_the_sessions_that_are_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let path = folder.path().join(FILE);
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(whole.len() % PAGE, 0);
    let mut hurt = 0;
    for page in entry_pages(&path) {
        for noise in [0x5a, 0] {
            let folder = with_damaged_page(&whole, page, noise);
            let store = open(folder.path()).await;
            assert_eq!(store.list().await.unwrap().len(), sessions.len());
            let mut lost = Vec::new();
            for (name, log) in &sessions {
                let text = store.export(&[id(name)].into(), Vec::new()).await;
                match store.load(&id(name)).await {
                    Ok(read) => {
                        assert!(read == *log, "page {page}: {name} was altered");
                        let text = String::from_utf8(text.unwrap()).unwrap();
                        assert_eq!(Export::parse(&text).unwrap().sessions()[0].entries(), log);
                    }
                    Err(StoreError::BadEntry { session, why, .. }) => {
                        let whys = [
                            "its page is damaged",
                            "it was altered: its checksum is another",
                        ];
                        assert!(
                            session == id(name) && whys.contains(&&*why),
                            "{name}: {why}"
                        );
                        lost.push(*name);
                    }
                    Err(error) => panic!("page {page}: {name}: {error}"),
                }
            }
            // Neighbours on one page, and a fork together with its parent.
            assert!(lost.len() <= 3, "page {page}: {lost:?}");
            hurt += lost.len();
        }
    }
    assert!(hurt > 0);
}

/// Returns the pages that contain rows of entries, from 0.
fn entry_pages(path: &Path) -> Vec<usize> {
    let connection = Connection::open(path).unwrap();
    let last: i64 = connection
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .unwrap();
    drop(connection);
    let bytes = std::fs::read(path).unwrap();
    // Leaves of a table, and what continues an entry of several pages.
    (1..usize::try_from(last).unwrap())
        .filter(|page| {
            let page = &bytes[page * PAGE..][..PAGE];
            let has = |text: &[u8]| page.windows(text.len()).any(|window| window == text);
            has(b"\"entry\":") && page[0] == 0x0d || has(b"a long tale")
        })
        .collect()
}

#[tokio::test]
async fn a_file_without_a_readable_schema_is_refused_and_the_next_step_named() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(&folder).await);
    let path = folder.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[..PAGE].fill(0x5a);
    std::fs::write(&path, &bytes).unwrap();
    let error = SqliteStore::open(folder.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    let to = tempfile::tempdir().unwrap();
    for error in [
        SqliteStore::check(folder.path()).await.unwrap_err(),
        SqliteStore::salvage(folder.path(), to.path())
            .await
            .unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("`sqlite3 sessions.db .recover`"), "{text}");
    }
    assert!(std::fs::read(&path).unwrap() == bytes);
    assert_eq!(files(to.path()), []);
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

/// The files of a folder and what they contain, but for the index of the write-ahead log, which is made
/// anew from it.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .filter(|path| path.is_file() && !path.to_string_lossy().ends_with("-shm"))
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Salvages a store and checks the new one: every log is what it was up to its first fault,
/// and `check` reports the same.
async fn salvaged(from: &Path, sessions: &[(&str, Vec<Entry>)]) -> Vec<CheckedSession> {
    let folder = tempfile::tempdir().unwrap();
    let before = files(from);
    let checked = SqliteStore::check(from).await.unwrap().sessions;
    let all = SqliteStore::salvage(from, folder.path()).await.unwrap();
    assert!(before == files(from), "something was changed");
    assert_eq!(checked, all);
    let new = open(folder.path()).await;
    let listed = new.list().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|info| &info.id).collect();
    let ids: Vec<_> = all.iter().map(|one| &one.id).collect();
    assert_eq!(listed, ids, "in the same order");
    for one in &all {
        let recovered = usize::try_from(one.readable).unwrap();
        let read = new.load(&one.id).await.unwrap();
        assert_eq!(read.len(), recovered, "{one:?}");
        let Some((_, log)) = sessions.iter().find(|(name, _)| id(name) == one.id) else {
            assert!(one.id.as_str().starts_with("lost-"), "{one:?}");
            continue;
        };
        assert_eq!(read, log[..recovered], "{one:?}");
        let faults = &one.faults;
        assert_eq!(faults.is_empty(), recovered == log.len(), "{one:?}");
        let lost = faults.iter().map(|fault| fault.last - fault.first + 1);
        assert_eq!(lost.sum::<u64>(), one.lost);
    }
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
    assert!(all.iter().all(CheckedSession::is_whole));

    let target = tempfile::tempdir().unwrap();
    SqliteStore::salvage(folder.path(), target.path())
        .await
        .unwrap();
    let new = open(target.path()).await;
    assert_eq!(new.list().await.unwrap(), store.list().await.unwrap());
    let settings = new.settings(&id("a")).await.unwrap();
    assert_eq!(settings.as_deref(), Some("{\"model\":1}"));
    let again = SqliteStore::salvage(folder.path(), target.path()).await;
    let error = again.unwrap_err().to_string();
    assert!(
        error.ends_with("it is not empty; choose another folder for the new store"),
        "{error}"
    );
    write(&new, "a", &log(61)[60..]).await;
    assert_eq!(new.list().await.unwrap()[0].id, id("a"), "written last");
}

#[tokio::test]
async fn a_salvaged_store_has_all_that_its_damaged_page_did_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let path = folder.path().join(FILE);
    let whole = std::fs::read(&path).unwrap();
    let entries = entry_pages(&path);
    let (mut complete, mut unreadable) = (0, 0);
    for page in 0..whole.len() / PAGE {
        for noise in [0x5a, 0] {
            let folder = with_damaged_page(&whole, page, noise);
            if SqliteStore::check(folder.path()).await.is_err() {
                // A page of the schema.
                unreadable += 1;
                continue;
            }
            let all = salvaged(folder.path(), &sessions).await;
            let lost = all.iter().filter(|one| !one.is_whole()).count();
            if entries.contains(&page) {
                assert!(
                    all.len() == sessions.len() && lost <= 3,
                    "page {page}: {all:?}"
                );
            }
            complete += all.len() - lost;
        }
    }
    assert!(complete > 0);
    assert!(
        unreadable <= 10,
        "{unreadable} pages make the store unreadable"
    );
}

#[tokio::test]
async fn a_damaged_index_costs_no_entry() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = filled(&folder).await;
    let path = folder.path().join(FILE);
    let root: i64 = Connection::open(&path)
        .unwrap()
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_entries_1'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let whole = std::fs::read(&path).unwrap();
    let folder = with_damaged_page(&whole, usize::try_from(root).unwrap() - 1, 0x5a);
    assert!(SqliteStore::check(folder.path()).await.unwrap().is_damaged);
    let all = salvaged(folder.path(), &sessions).await;
    assert!(all.len() == sessions.len() && all.iter().all(|one| one.is_whole()));
}

#[tokio::test]
async fn a_salvage_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(&folder).await);
    let home = tempfile::tempdir().unwrap();
    let full = home.path().join("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("notes"), "mine").unwrap();
    let error = SqliteStore::salvage(folder.path(), &full)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("it is not empty"), "{error}");
    assert_eq!(files(&full).len(), 1);
    // Where a folder is needed stands a file.
    let below = full.join("notes").join("new");
    SqliteStore::salvage(folder.path(), &below)
        .await
        .unwrap_err();
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    SqliteStore::salvage(folder.path(), home.path().join("a/b"))
        .await
        .unwrap();
    let names: Vec<PathBuf> = files(&home.path().join("a/b"))
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert_eq!(names, [home.path().join("a/b").join(FILE)]);
    assert_eq!(std::fs::read_dir(home.path().join("a")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_check_names_every_entry_that_was_altered() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(&folder).await);
    let path = folder.path().join(FILE);
    let raw = Connection::open(&path).unwrap();
    // As another program does that means well.
    raw.execute_batch(
        "DROP TRIGGER entries_are_not_changed;
         UPDATE entries SET json = replace(json, 'file-', 'fule-') WHERE session = 1 AND n IN (11, 25);
         UPDATE entries SET at = at - 1 WHERE session = 1 AND n = 40;",
    )
    .unwrap();
    drop(raw);
    let found = SqliteStore::check(folder.path()).await.unwrap();
    let find = |name| found.sessions.iter().find(|one| one.id == id(name));
    let a = find("a").unwrap();
    let altered: Vec<_> = a
        .faults
        .iter()
        .map(|fault| (fault.first, fault.last))
        .collect();
    assert_eq!(altered, [(11, 11), (25, 25), (40, 40)]);
    assert!(a.faults.iter().all(|fault| fault.why.contains("altered")));
    assert_eq!((a.entries, a.readable), (60, 10));
    let b = find("b").unwrap();
    assert_eq!((b.entries, b.readable), (61, 61));
    let fork = find("fork").unwrap();
    assert_eq!(fork.readable, 59);
    assert!(b.faults.is_empty() && fork.faults.is_empty());
    let nowhere = tempfile::tempdir().unwrap();
    let error = SqliteStore::check(nowhere.path()).await.unwrap_err();
    assert!(error.to_string().ends_with("there is no store"), "{error}");
    assert_eq!(files(nowhere.path()), []);
}

#[tokio::test]
async fn what_stands_in_the_write_ahead_log_is_salvaged_and_stays_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut sessions = filled(&folder).await;
    let store = open(folder.path()).await;
    write(&store, "late", &log(40)).await;
    sessions.push(("late", log(40)));
    // As after `kill -9`: nobody has folded the log in.
    let copy = tempfile::tempdir().unwrap();
    for file in [FILE.to_owned(), format!("{FILE}-wal")] {
        std::fs::copy(folder.path().join(&file), copy.path().join(&file)).unwrap();
    }
    drop(store);
    let all = salvaged(copy.path(), &sessions).await;
    assert_eq!(all.iter().map(|one| one.lost).sum::<u64>(), 0);
    let (wal, _) = &files(copy.path())[1];
    assert!(wal.ends_with("sessions.db-wal"));
}

/// Damages a page.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Zeros,
    Noise,
    /// A byte among the first that say what the page has.
    Header(u8, u8),
    Text(u16, u8),
}

impl Damage {
    fn to(self, page: &mut [u8]) {
        match self {
            Self::Zeros => page.fill(0),
            Self::Noise => page.fill(0x5a),
            Self::Header(at, bits) => page[usize::from(at % 64)] ^= bits,
            Self::Text(at, bits) => {
                let at = usize::from(at) % page.len();
                page[at] ^= bits;
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        Just(Damage::Zeros),
        Just(Damage::Noise),
        (any::<u8>(), 1_u8..).prop_map(|(at, bits)| Damage::Header(at, bits)),
        (any::<u16>(), 1_u8..).prop_map(|(at, bits)| Damage::Text(at, bits)),
    ]
}

/// Salvages a damaged file. Returns the names of the sessions that are whole in the new store, and
/// checks that nothing altered is there. `None` if SQLite cannot read the schema.
async fn whole_in(
    bytes: &[u8],
    sessions: &[(&'static str, Vec<Entry>)],
) -> Option<Vec<&'static str>> {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(from.path().join(FILE), bytes).unwrap();
    let all = SqliteStore::salvage(from.path(), to.path()).await.ok()?;
    let new = open(to.path()).await;
    let mut logs = Vec::new();
    for one in &all {
        let log = new.load(&one.id).await.unwrap();
        assert_eq!(log.len() as u64, one.readable);
        assert!(
            log.is_empty() || sessions.iter().any(|(_, had)| had.starts_with(&log)),
            "{one:?} was altered"
        );
        let is_one = sessions.iter().find(|(name, _)| id(name) == one.id);
        if let (Some((_, had)), true) = (is_one, one.is_whole()) {
            assert!(*had == log, "{one:?} is not whole");
        }
        logs.push(log);
    }
    let whole = sessions.iter().filter(|(_, log)| logs.contains(log));
    Some(whole.map(|(name, _)| *name).collect())
}

#[test]
fn whatever_is_damaged_no_undamaged_session_is_lost_and_nothing_altered_is_whole() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sessions = runtime.block_on(filled(&folder));
    let whole = std::fs::read(folder.path().join(FILE)).unwrap();
    let pages = whole.len() / PAGE;
    // The sessions that are still whole without each page.
    let without: Vec<Option<Vec<&str>>> = (0..pages)
        .map(|page| {
            let mut bytes = whole.clone();
            bytes[page * PAGE..][..PAGE].fill(0);
            runtime.block_on(whole_in(&bytes, &sessions))
        })
        .collect();
    let all = sessions.len();
    assert!(without.iter().flatten().any(|names| names.len() == all));
    assert!(without.iter().flatten().any(|names| names.len() < all));
    let cases = Config {
        failure_persistence: None,
        ..Config::with_cases(60)
    };
    let damages = prop::collection::vec((0..pages, damage()), 1..4);
    TestRunner::new(cases)
        .run(&(damages, 0..pages), |(damages, cut)| {
            let mut bytes = whole.clone();
            let mut hurt: Vec<usize> = damages.iter().map(|(page, _)| *page).collect();
            for (page, damage) in &damages {
                damage.to(&mut bytes[page * PAGE..][..PAGE]);
            }
            // Every fourth file is cut as well.
            if cut % 4 == 0 {
                bytes.truncate(cut * PAGE);
                hurt.extend(cut..pages);
            }
            let read = runtime.block_on(whole_in(&bytes, &sessions));
            let is_schema = hurt.iter().any(|page| without[*page].is_none());
            let Some(read) = read else {
                prop_assert!(
                    is_schema,
                    "only a page of the schema makes a file unreadable"
                );
                return Ok(());
            };
            for (name, _) in &sessions {
                let stands_elsewhere = hurt.iter().all(|page| {
                    without[*page]
                        .as_ref()
                        .is_some_and(|names| names.contains(name))
                });
                prop_assert!(read.contains(name) || !stands_elsewhere, "{name} was lost");
            }
            Ok(())
        })
        .unwrap();
}
