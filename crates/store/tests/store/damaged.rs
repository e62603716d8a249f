//! A store with one damaged page: every session without data on that page is read completely, and
//! for the others the unreadable entry is reported.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_agent::Entry;
use plimsoll_context::{Message, Seq};
use plimsoll_core::{Fork, SessionStore, StoreError};
use plimsoll_store::{
    Durability, Export, ExportedEntry, FILE, Options, SalvagedSession, SessionReader, SqliteStore,
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
        items: Seq(3),
    };
    let lease = store.acquire(&id("fork")).await.unwrap();
    store.fork(&lease, &of, &log(60)[6..]).await.unwrap();
    sessions.push(("fork", log(60)));
    drop(store);
    fold(&folder.path().join(FILE));
    sessions
}

/// Moves what stands in the write-ahead log into the file: a beat of the lease may still have the
/// store's connection, and then closing the store has not done so yet.
fn fold(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(busy, 0);
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
                let text = store
                    .export(&[(id(name), None)].into(), Vec::new())
                    .await
                    .unwrap();
                let text = String::from_utf8(text).unwrap();
                assert_eq!(Export::parse(&text).unwrap().sessions()[0].entries(), log);
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
    assert!(store.damaged_path().is_some());
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

/// Checks a salvaged store: every log is what it was, up to what is said of it, and `check` says the same.
async fn salvaged(from: &Path, sessions: &[(&str, Vec<Entry>)]) -> Vec<SalvagedSession> {
    let folder = tempfile::tempdir().unwrap();
    let before = files(from);
    let checked = SqliteStore::check(from).await.unwrap().sessions;
    let all = SqliteStore::salvage(from, folder.path()).await.unwrap();
    assert!(before == files(from), "something was changed");
    let said = |id, entries, to, is_whole| (id, entries, to, is_whole);
    assert_eq!(
        checked
            .iter()
            .map(|one| said(&one.id, one.entries, one.readable, one.is_whole()))
            .collect::<Vec<_>>(),
        all.iter()
            .map(|one| said(&one.id, one.entries, one.recovered, one.why.is_none()))
            .collect::<Vec<_>>(),
    );
    for (one, salvaged) in checked.iter().zip(&all) {
        let lost = one.faults.iter().map(|fault| fault.last - fault.first + 1);
        assert_eq!(lost.sum::<u64>(), salvaged.lost(), "{one:?}");
    }
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
        match &one.why {
            None => assert_eq!(recovered, log.len(), "{one:?}"),
            // All is there, but the row that says so is not.
            Some(why) => assert!(recovered < log.len() || why.contains("its row is lost")),
        }
        let behind = one.file.as_ref().map(std::fs::read_to_string);
        let behind = behind.transpose().unwrap().unwrap_or_default();
        assert_eq!(behind.lines().count() as u64, one.behind);
        for line in behind.lines() {
            let line: ExportedEntry = serde_json::from_str(line).unwrap();
            assert_eq!(line.entry, log[usize::try_from(line.n).unwrap() - 1]);
        }
    }
    assert!(new.damaged_path().is_none());
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
            let lost = all.iter().filter(|one| one.recovered < one.entries).count();
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
        let target = tempfile::tempdir().unwrap();
        let Ok(all) = SqliteStore::salvage(folder.path(), target.path()).await else {
            continue;
        };
        // The name of a session may be what was altered.
        for one in all {
            let log = sessions.iter().find(|(name, _)| id(name) == one.id);
            let read = open(target.path()).await.load(&one.id).await.unwrap();
            assert!(
                log.is_none_or(|(_, log)| log.starts_with(&read)),
                "byte {at}"
            );
        }
    }
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
    assert_eq!(fork.readable, 60);
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
    assert_eq!(all.iter().map(SalvagedSession::lost).sum::<u64>(), 0);
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

/// Salvages a damaged file. Returns the sessions that are not whole in the new store, by what they
/// contained, and checks that nothing altered is there.
async fn not_whole(bytes: &[u8], sessions: &[(&'static str, Vec<Entry>)]) -> Vec<&'static str> {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(from.path().join(FILE), bytes).unwrap();
    let Ok(all) = SqliteStore::salvage(from.path(), to.path()).await else {
        return sessions.iter().map(|(name, _)| *name).collect();
    };
    let new = open(to.path()).await;
    let mut logs = Vec::new();
    for one in &all {
        let log = new.load(&one.id).await.unwrap();
        assert_eq!(log.len() as u64, one.recovered);
        assert!(
            log.is_empty() || sessions.iter().any(|(_, had)| had.starts_with(&log)),
            "{one:?} was altered"
        );
        let is_one = sessions.iter().find(|(name, _)| id(name) == one.id);
        if let (Some((_, had)), None) = (is_one, &one.why) {
            assert!(*had == log, "{one:?} is not whole");
        }
        logs.push((one.id.as_str(), log));
    }
    let lost = sessions.iter().filter(|(name, log)| {
        // Its name may be lost and nothing else.
        let is_it = |id: &str| id == *name || id.starts_with("lost-");
        !logs.iter().any(|(id, read)| is_it(id) && read == log)
    });
    lost.map(|(name, _)| *name).collect()
}

#[test]
fn whatever_is_damaged_no_undamaged_session_is_lost_and_nothing_altered_is_whole() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sessions = runtime.block_on(filled(&folder));
    let whole = std::fs::read(folder.path().join(FILE)).unwrap();
    let pages = whole.len() / PAGE;
    // The sessions that stand on each page: those that are lost with it.
    let on_page: Vec<Vec<&str>> = (0..pages)
        .map(|page| {
            let mut bytes = whole.clone();
            bytes[page * PAGE..][..PAGE].fill(0);
            runtime.block_on(not_whole(&bytes, &sessions))
        })
        .collect();
    assert!(on_page.iter().any(Vec::is_empty) && on_page.iter().any(|on| !on.is_empty()));
    let cases = Config {
        failure_persistence: None,
        ..Config::with_cases(60)
    };
    let damages = prop::collection::vec((0..pages, damage()), 1..4);
    TestRunner::new(cases)
        .run(&(damages, 0..pages), |(damages, cut)| {
            let mut bytes = whole.clone();
            let mut may_be_lost: Vec<&str> = Vec::new();
            for (page, damage) in &damages {
                damage.to(&mut bytes[page * PAGE..][..PAGE]);
                may_be_lost.extend(&on_page[*page]);
            }
            // Every fourth file is cut as well.
            if cut % 4 == 0 {
                bytes.truncate(cut * PAGE);
                may_be_lost.extend(on_page[cut..].iter().flatten());
            }
            let lost = runtime.block_on(not_whole(&bytes, &sessions));
            for name in lost {
                prop_assert!(may_be_lost.contains(&name), "{name} stood on no such page");
            }
            Ok(())
        })
        .unwrap();
}
