//! The store as seen by a host: logs are read back unchanged, the list, pages and exports, and one
//! clear sentence for each way in which a file can fail.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::Entry;
use plimsoll_context::{Bytes, Message};
use plimsoll_core::{LogEntry, PAGE_ENTRIES, SessionStore, StoreError};
use plimsoll_store::{
    Durability, ExportError, FILE, Options, PAGE_BYTES, SessionReader, SqliteStore,
};
use rusqlite::Connection;

use crate::script::{self, id, log};

/// Most tests ask nothing of the disk.
fn quick() -> Options {
    Options {
        durability: Durability::Normal,
        ..Options::default()
    }
}

async fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open_with(folder, quick()).await.unwrap()
}

/// A store with one session `s` of that log.
async fn with_log(folder: &Path, entries: &[Entry]) -> SqliteStore {
    let store = open(folder).await;
    write(&store, "s", entries).await;
    store
}

async fn write(store: &SqliteStore, session: &str, entries: &[Entry]) {
    let lease = store.acquire(&id(session)).await.unwrap();
    store.append(&lease, entries).await.unwrap();
}

/// The file as any other program opens it.
fn raw(folder: &Path) -> Connection {
    Connection::open(folder.join(FILE)).unwrap()
}

fn said(text: impl Into<String>) -> Entry {
    Entry::Message {
        message: Arc::new(Message::user(text)),
        queued: None,
    }
}

/// The statement that makes `json` entry `n` of the first session, with the checksum that the schema
/// describes, as another version would write it.
fn rewrite(n: i64, json: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for number in [n, 5] {
        hasher.update(&number.to_be_bytes());
    }
    hasher.update(json.as_bytes());
    let sum = hasher.finalize().as_bytes()[..8].try_into().unwrap();
    let sum = i64::from_be_bytes(sum);
    format!("UPDATE entries SET json = '{json}', at = 5, sum = {sum} WHERE session = 1 AND n = {n}")
}

async fn idle(store: &SqliteStore) -> Duration {
    let info = store.head(&id("s")).await.unwrap().unwrap();
    info.idle().unwrap()
}

async fn sentence(folder: &Path) -> String {
    SqliteStore::open(folder).await.unwrap_err().to_string()
}

#[tokio::test]
async fn it_is_known_how_long_ago_a_log_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_log(folder.path(), &log(3)).await;
    assert_eq!(store.head(&id("none")).await.unwrap(), None);
    let minute = Duration::from_secs(60);
    assert!(idle(&store).await < minute);
    for (away, least, most) in [
        (3_600, 60 * minute, 61 * minute),
        (-7_200, Duration::ZERO, minute),
    ] {
        let sql = format!("UPDATE sessions SET updated = updated - {away}");
        raw(folder.path()).execute(&sql, []).unwrap();
        let idle = idle(&store).await;
        assert!((least..most).contains(&idle), "{idle:?}");
    }
}

#[tokio::test]
async fn a_log_comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    assert_eq!(store.load(&id("s")).await.unwrap(), []);
    assert_eq!(store.head(&id("s")).await.unwrap(), None);

    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &[]).await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
    for (first, last) in [(0, 1), (1, 8), (8, 50)] {
        store.append(&lease, &log(last)[first..]).await.unwrap();
    }
    assert_eq!(store.load(&id("s")).await.unwrap(), log(50));
    drop((lease, store));
    assert_eq!(
        open(folder.path()).await.load(&id("s")).await.unwrap(),
        log(50)
    );
}

#[tokio::test]
async fn nothing_is_left_beside_the_file_after_a_clean_end() {
    let folder = tempfile::tempdir().unwrap();
    drop(with_log(folder.path(), &log(9)).await);
    let names = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["locks", FILE]);
    let locks = std::fs::read_dir(folder.path().join("locks")).unwrap();
    assert_eq!(locks.count(), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn what_the_store_makes_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let parent = tempfile::tempdir().unwrap();
    let shared = parent.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).unwrap();
    let own = parent.path().join("a/data");
    let stores = [
        with_log(&shared, &log(3)).await,
        with_log(&own, &log(3)).await,
    ];
    let mut files = 0;
    for made in [&shared, &own].map(|folder| std::fs::read_dir(folder).unwrap()) {
        for made in made {
            let made = made.unwrap();
            let mode = made.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{made:?}");
            files += 1;
        }
    }
    assert_eq!(files, 8);
    let mode = std::fs::metadata(&own).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
    drop(stores);
}

#[tokio::test]
async fn the_list_has_the_session_written_last_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    for session in ["a", "b", "c", "a"] {
        write(&store, session, &[said(format!("task of {session}\nmore"))]).await;
    }
    let list = store.list().await.unwrap();
    let seen: Vec<_> = list
        .iter()
        .map(|info| (info.id.as_str(), info.entries, info.title.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("a", 2, "task of a"),
            ("c", 1, "task of c"),
            ("b", 1, "task of b")
        ]
    );
    for info in &list {
        assert!(info.created > 1_700_000_000 && info.created <= info.updated);
        assert_eq!(store.head(&info.id).await.unwrap().as_ref(), Some(info));
    }
}

#[tokio::test]
async fn a_title_waits_for_the_first_user_message_and_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_log(folder.path(), &log(2)).await;
    assert_eq!(store.list().await.unwrap()[0].title, "");
    write(&store, "s", &[said("é".repeat(500)), said("later")]).await;
    write(&store, "s", &[said("much later")]).await;
    assert_eq!(store.list().await.unwrap()[0].title, "é".repeat(120));
}

#[tokio::test]
async fn pages_cover_the_log_once_and_stay_within_their_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let small = PAGE_ENTRIES as u64 + 10;
    let mut entries = log(small);
    // Two that do not fit one page together, and one that fits none.
    for share in [2, 2, 3, 1] {
        let text = "x".repeat(PAGE_BYTES.0 as usize * share / 3);
        entries.push(said(text));
    }
    let store = with_log(folder.path(), &entries).await;

    let (mut seen, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let after = seen.last().map_or(0, |line: &LogEntry| line.n);
        let page = store.read(&id("s"), after, PAGE_ENTRIES).await.unwrap();
        if page.is_empty() {
            break;
        }
        sizes.push(page.len());
        seen.extend(page);
    }
    assert_eq!(sizes, [PAGE_ENTRIES, 11, 1, 1, 1]);
    let numbers: Vec<u64> = seen.iter().map(|line| line.n).collect();
    assert_eq!(numbers, (1..=entries.len() as u64).collect::<Vec<_>>());
    let seen: Vec<Entry> = seen.into_iter().map(|line| line.entry).collect();
    assert_eq!(seen, entries);
    assert_eq!(store.load(&id("s")).await.unwrap(), entries);
    assert_eq!(
        store.read(&id("s"), u64::MAX, PAGE_ENTRIES).await.unwrap(),
        []
    );
}

#[tokio::test]
async fn an_export_is_lines_of_number_time_and_entry() {
    let folder = tempfile::tempdir().unwrap();
    let entries = log(PAGE_ENTRIES as u64 + 5);
    let store = with_log(folder.path(), &entries).await;
    let text = store.export(&[id("s")].into(), Vec::new()).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    let (header, text) = text.split_once('\n').unwrap();
    assert!(
        header.starts_with("{\"session\":\"s\",\"version\":1,"),
        "{header}"
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), entries.len());
    for (k, line) in lines.iter().enumerate() {
        let parsed: LogEntry = serde_json::from_str(line).unwrap();
        assert_eq!((parsed.n, &parsed.entry), (k as u64 + 1, &entries[k]));
        let json = serde_json::to_string(&parsed).unwrap();
        assert!(line.starts_with(json.trim_end_matches('}')), "{line}");
    }
    assert!(lines[0].starts_with("{\"n\":1,\"at\":1"), "{}", lines[0]);
    assert!(lines[0].contains("\"entry\":{\"entry\":\"opened\",\"format\":1},\"sum\":"));
    let nothing = store
        .export(&[id("nobody")].into(), Vec::new())
        .await
        .unwrap();
    assert!(nothing.is_empty());
}

#[tokio::test]
async fn an_export_that_cannot_be_written_says_so() {
    struct BrokenWriter;
    impl std::io::Write for BrokenWriter {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let store = with_log(folder.path(), &log(3)).await;
    let Err(ExportError::Write(error)) = store.export(&[id("s")].into(), BrokenWriter).await else {
        unreachable!("nothing can be written to it")
    };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn the_file_itself_refuses_to_rewrite_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_log(folder.path(), &log(5)).await;
    write(&store, "t", &log(2)).await;
    let other = raw(folder.path());
    let refused = [
        "UPDATE entries SET json = '{}' WHERE n = 2",
        "UPDATE entries SET at = 0",
        "DELETE FROM entries WHERE n = 5",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries (session, n, at, json) VALUES (1, 2, 0, '{}')",
        "INSERT OR REPLACE INTO entries (row, session, n, at, json) VALUES (1, 1, 6, 0, '{}')",
        "INSERT OR IGNORE INTO entries (session, n, at, json) VALUES (1, 5, 0, '{}')",
        "INSERT INTO entries (session, n, at, json) VALUES (1, 7, 0, '{}')",
        "INSERT INTO entries (session, n, at, json) VALUES (9, 1, 0, '{}')",
        "INSERT OR REPLACE INTO sessions (key, id, created, updated, entries, newest) \
         VALUES (1, 's', 0, 0, 0, 0)",
        "INSERT OR REPLACE INTO sessions (id, created, updated, entries, newest) \
         VALUES ('s', 0, 0, 0, 0)",
        "INSERT INTO sessions (id, created, updated, entries, newest) VALUES ('../x', 0, 0, 0, 0)",
        "UPDATE sessions SET entries = 0 WHERE key = 1",
        "UPDATE sessions SET id = 'x'",
        "DELETE FROM sessions",
    ];
    for sql in refused {
        let error = other.execute(sql, []).unwrap_err();
        assert_eq!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::ConstraintViolation),
            "{sql}: {error}"
        );
    }
    assert_eq!(store.load(&id("s")).await.unwrap(), log(5));
    assert_eq!(store.load(&id("t")).await.unwrap(), log(2));
    let kinds: Vec<String> = other
        .prepare("SELECT kind FROM log WHERE session = 's'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        kinds,
        ["opened", "run_started", "message", "reply", "tool_started"]
    );
}

#[tokio::test]
async fn a_full_disk_writes_nothing_of_an_append_and_the_session_still_opens() {
    let folder = tempfile::tempdir().unwrap();
    let small = Options {
        max_bytes: Bytes(256 << 10),
        ..quick()
    };
    let store = SqliteStore::open_with(folder.path(), small).await.unwrap();
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(3)).await.unwrap();

    let too_much = [said("fits"), said("x".repeat(400 << 10))];
    let error = store.append(&lease, &too_much).await.unwrap_err();
    let path = folder.path().join(FILE).display().to_string();
    assert_eq!(error, StoreError::Full { path });
    assert_eq!(store.load(&id("s")).await.unwrap(), log(3));
    assert_eq!(store.list().await.unwrap()[0].title, "task 1");

    // What fits is still taken, by this writer and, once there is room, by the next.
    store.append(&lease, &log(4)[3..]).await.unwrap();
    drop((lease, store));
    let store = open(folder.path()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &too_much).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap().len(), 6);
}

#[tokio::test]
async fn the_first_append_of_a_session_leaves_nothing_where_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let small = Options {
        max_bytes: Bytes(128 << 10),
        ..quick()
    };
    let store = SqliteStore::open_with(folder.path(), small).await.unwrap();
    let lease = store.acquire(&id("s")).await.unwrap();
    let too_much = [said("x".repeat(400 << 10))];
    store.append(&lease, &too_much).await.unwrap_err();
    assert_eq!(store.list().await.unwrap(), []);
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let shown = path.display();

    let text = "Dear diary, this is no database. ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    assert_eq!(
        sentence(folder.path()).await,
        format!(
            "{shown} cannot be read as a session store: it is not a SQLite database; move it \
             away, and a new one is created"
        )
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    std::fs::remove_file(&path).unwrap();
    raw(folder.path())
        .execute("CREATE TABLE bookmarks (x)", [])
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    assert_eq!(
        sentence(folder.path()).await,
        format!(
            "{shown} cannot be read as a session store: it is another program's database; move it \
             away, and a new one is created"
        )
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);

    // An empty file was a store.
    std::fs::write(&path, "").unwrap();
    assert_eq!(
        sentence(folder.path()).await,
        format!(
            "{shown}: it is empty, so its sessions are lost; restore a copy of it, or move it away, and \
             a new one is created"
        )
    );
}

#[tokio::test]
async fn a_file_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(with_log(folder.path(), &log(3)).await);
    raw(folder.path())
        .pragma_update(None, "user_version", 4)
        .unwrap();
    assert_eq!(
        sentence(folder.path()).await,
        format!(
            "{}: it has format 4, and this version of Plimsoll reads format 3; use the version that wrote \
             it, move the file away, or choose another data folder with PLIMSOLL_HOME",
            folder.path().join(FILE).display()
        )
    );
}

#[tokio::test]
async fn a_damaged_file_ends_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    drop(with_log(folder.path(), &log(300)).await);
    let path = folder.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    // Everything but the first page, which holds the header and the schema's root.
    let page = 4096;
    bytes[page..].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let error = match SqliteStore::open(folder.path()).await {
        Ok(store) => store.load(&id("s")).await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(
        error.to_string(),
        format!(
            "{} is damaged inside; save its readable sessions with `plimsoll sessions salvage --to FOLDER`",
            path.display()
        )
    );
}

#[tokio::test]
async fn a_damaged_entry_is_named_and_other_sessions_still_open() {
    let table = [
        (rewrite(3, "gibberish"), "expected value"),
        (
            rewrite(3, "{\"entry\":\"dreamt\"}"),
            "unknown variant `dreamt`",
        ),
        (
            "UPDATE entries SET json = CAST(x'22ff22' AS TEXT) WHERE session = 1 AND n = 3"
                .to_owned(),
            "",
        ),
        (
            "UPDATE entries SET json = replace(json, 'e', 'i') WHERE session = 1 AND n = 3"
                .to_owned(),
            "it was altered: its checksum is another;",
        ),
        (
            "UPDATE entries SET at = at + 1 WHERE session = 1 AND n = 3".to_owned(),
            "it was altered: its checksum is another;",
        ),
        (
            "DELETE FROM entries WHERE session = 1 AND n = 3".to_owned(),
            "it is missing;",
        ),
        (
            "DELETE FROM entries WHERE session = 1 AND n >= 3".to_owned(),
            "it is missing;",
        ),
    ];
    for (damage, why) in table {
        let folder = tempfile::tempdir().unwrap();
        let store = with_log(folder.path(), &log(5)).await;
        write(&store, "t", &log(4)).await;
        let other = raw(folder.path());
        other
            .execute_batch(
                "DROP TRIGGER entries_are_not_changed; DROP TRIGGER entries_are_not_deleted;",
            )
            .unwrap();
        other.execute(&damage, []).unwrap();

        let error = store.load(&id("s")).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::BadEntry { session, entry: 3, .. } if *session == id("s")),
            "{damage}: {error}"
        );
        let path = folder.path().join(FILE).display().to_string();
        let text = error.to_string();
        let beginning = format!("entry 3 of session s in {path} cannot be read: {why}");
        assert!(text.starts_with(&beginning), "{damage}: {text}");
        assert!(text.ends_with("start a new one to continue"), "{text}");
        assert_eq!(store.load(&id("t")).await.unwrap(), log(4));
        assert_eq!(store.list().await.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn a_length_that_was_altered_is_noticed_and_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_log(folder.path(), &log(5)).await;
    let other = raw(folder.path());
    other
        .execute_batch("DROP TRIGGER sessions_only_grow; UPDATE sessions SET entries = 2")
        .unwrap();
    let error = store.load(&id("s")).await.unwrap_err().to_string();
    assert!(error.contains("the session ends before it"), "{error}");
    let checked = SqliteStore::check(folder.path()).await.unwrap().sessions;
    assert_eq!((checked[0].entries, checked[0].readable), (5, 5));
    assert!(!checked[0].is_whole());
    let to = tempfile::tempdir().unwrap();
    SqliteStore::salvage(folder.path(), to.path())
        .await
        .unwrap();
    let new = SqliteStore::open(to.path()).await.unwrap();
    assert_eq!(new.load(&id("s")).await.unwrap(), log(5));
}

#[tokio::test]
async fn an_export_saves_what_can_be_read_and_passes_on_what_is_newer() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_log(folder.path(), &log(5)).await;
    let other = raw(folder.path());
    other
        .execute("DROP TRIGGER entries_are_not_changed", [])
        .unwrap();
    let dreamt = rewrite(2, "{\"entry\":\"dreamt\",\"of\":1.50}");
    other.execute(&dreamt, []).unwrap();
    let text = store.export(&[id("s")].into(), Vec::new()).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 1 + 5);
    assert!(text.contains("\"entry\":{\"entry\":\"dreamt\",\"of\":1.50},\"sum\":"));

    other.execute(&rewrite(4, "{\"entry\":"), []).unwrap();
    let out = folder.path().join("out.jsonl");
    let file = std::fs::File::create(&out).unwrap();
    let error = store
        .export(&[id("s")].into(), file)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("entry 4 of session s in "), "{error}");
    assert_eq!(
        std::fs::read_to_string(&out).unwrap().lines().count(),
        1 + 3
    );
}

#[tokio::test]
async fn a_locked_file_ends_in_a_sentence_and_carries_on_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let impatient = Options {
        busy_timeout: Duration::from_millis(1),
        ..quick()
    };
    let store = SqliteStore::open_with(folder.path(), impatient)
        .await
        .unwrap();
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(1)).await.unwrap();
    let other = raw(folder.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.append(&lease, &log(2)[1..]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{}: another process has kept it locked; end that process, or try again when it is \
             done",
            folder.path().join(FILE).display()
        )
    );
    assert_eq!(store.load(&id("s")).await.unwrap(), log(1));
    other.execute_batch("COMMIT").unwrap();
    store.append(&lease, &log(2)[1..]).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap(), log(2));
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_ends_in_a_sentence() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("file");
    std::fs::write(&file, "").unwrap();
    for folder in [file.clone(), file.join("below")] {
        let text = sentence(&folder).await;
        assert_eq!(
            text,
            format!(
                "{}: a file stands where a folder is needed; move it away, or choose another data \
                 folder with PLIMSOLL_HOME",
                folder.display()
            )
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_read_only_folder_ends_in_a_sentence() {
    use std::os::unix::fs::PermissionsExt;

    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    std::fs::create_dir_all(folder.join("locks")).unwrap();
    let mode = |mode| {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o500);
    if std::fs::write(folder.join("probe"), "").is_ok() {
        println!("skipped: this user may write to read-only folders");
        return;
    }
    let text = sentence(&folder).await;
    mode(0o700);
    assert_eq!(
        text,
        format!(
            "{}: it may not be written; make the folder writable, or choose another data folder with \
             PLIMSOLL_HOME",
            folder.join(FILE).display()
        )
    );
}

#[tokio::test]
async fn a_lease_is_good_for_the_store_that_gave_it() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (here, there) = (open(folders[0].path()).await, open(folders[1].path()).await);
    let lease = there.acquire(&id("s")).await.unwrap();
    let error = here.append(&lease, &log(1)).await.unwrap_err().to_string();
    assert!(error.ends_with("the lease on session s is another store's; acquire it here"));
    assert_eq!(here.list().await.unwrap(), []);
    // A clone is the same store.
    there.clone().append(&lease, &log(1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_store_can_be_opened_by_many_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut openings = tokio::task::JoinSet::new();
    for k in 0..8 {
        let path = folder.path().to_path_buf();
        openings.spawn(async move {
            let store = SqliteStore::open(&path).await.unwrap();
            write(&store, &format!("s{k}"), &log(k + 1)).await;
        });
    }
    while let Some(done) = openings.join_next().await {
        done.unwrap();
    }
    let store = open(folder.path()).await;
    for k in 0..8 {
        assert_eq!(store.load(&id(&format!("s{k}"))).await.unwrap(), log(k + 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lists_and_loads_see_whole_appends_while_others_write() {
    const APPENDS: u64 = 100;
    const BATCH: u64 = 3;
    let folder = tempfile::tempdir().unwrap();
    let ours = open(folder.path()).await;
    let theirs = open(folder.path()).await;
    let mut writers = tokio::task::JoinSet::new();
    for (store, session) in [(ours.clone(), "a"), (ours.clone(), "b"), (theirs, "c")] {
        writers.spawn(async move {
            let lease = store.acquire(&id(session)).await.unwrap();
            for k in 0..APPENDS {
                let next: Vec<_> = (k * BATCH..(k + 1) * BATCH).map(script::entry).collect();
                store.append(&lease, &next).await.unwrap();
            }
        });
    }
    let mut before = 0;
    while before < 3 * APPENDS * BATCH {
        let list = ours.list().await.unwrap();
        let now = list.iter().map(|info| info.entries).sum();
        assert!(now >= before);
        before = now;
        for info in list {
            assert_eq!(info.entries % BATCH, 0);
            let seen = ours.load(&info.id).await.unwrap();
            assert_eq!(seen.len() as u64 % BATCH, 0);
            assert!(seen.len() as u64 >= info.entries);
        }
        if writers.is_empty() {
            break;
        }
        while let Some(done) = writers.try_join_next() {
            done.unwrap();
        }
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    for session in ["a", "b", "c"] {
        assert_eq!(ours.load(&id(session)).await.unwrap(), log(APPENDS * BATCH));
    }
}

#[tokio::test]
async fn an_append_whose_caller_goes_away_is_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    let entries = log(8);
    let append = store.append(&lease, &entries);
    // Polled once, so that it is under way, then dropped with its lease.
    tokio::select! {
        biased;
        done = append => done.unwrap(),
        () = std::future::ready(()) => {}
    }
    drop(lease);
    // Nobody else is let in before it is done.
    let lease = loop {
        match store.acquire(&id("s")).await {
            Ok(lease) => break lease,
            Err(StoreError::Busy { .. }) => tokio::task::yield_now().await,
            Err(error) => unreachable!("{error}"),
        }
    };
    let found = store.load(&id("s")).await.unwrap();
    assert_eq!(found, entries);
    drop(lease);
}

#[tokio::test]
async fn the_settings_and_the_space_of_a_deleted_session_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_log(folder.path(), &log(60)).await;
    store.save_settings(&id("s"), "{}").await.unwrap();
    let lease = store.acquire(&id("s")).await.unwrap();
    assert!(store.delete(&lease).await.unwrap());
    assert_eq!(store.settings(&id("s")).await.unwrap(), None);
    store.shrink().await.unwrap();
    store.append(&lease, &log(2)).await.unwrap();
    drop((store, lease));
    let bytes = std::fs::read(folder.path().join(FILE)).unwrap();
    assert!(bytes.len() < 160_000, "{}", bytes.len());
}

#[tokio::test]
async fn every_store_keeps_the_promises_of_the_trait() {
    for case in crate::script::stores().await {
        let checked = plimsoll_core::testing::check_store(case.store.as_ref()).await;
        assert_eq!(checked, Ok(()), "{}", case.name);
    }
}
