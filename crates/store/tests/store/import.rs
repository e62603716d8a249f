//! Sessions that are exported from one store and imported into another: the logs are the same, a fork
//! becomes a session of its own, and a file with a fault is rejected completely.

use plimsoll_context::Bytes;
use plimsoll_core::{Fork, SessionInfo, SessionStore, StoreError};
use plimsoll_store::SessionReader;
use plimsoll_store::{BadExport, Export, SqliteStore};
use tempfile::TempDir;

use crate::script::{entry, id, log, options};

async fn open() -> (TempDir, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let options = options();
    let store = SqliteStore::open_with(folder.path(), options).await;
    (folder, store.unwrap())
}

async fn write(store: &SqliteStore, session: &str, entries: &[plimsoll_agent::Entry]) {
    let lease = store.acquire(&id(session)).await.unwrap();
    store.append(&lease, entries).await.unwrap();
}

async fn fork(store: &SqliteStore, from: &str, entries: u64, to: &str) {
    let of = Fork {
        from: id(from),
        entries,
    };
    let lease = store.acquire(&id(to)).await.unwrap();
    let own = [entry(entries)];
    store.fork(&lease, &of, &own).await.unwrap();
}

/// A session `p` with the forks `f` and, of that, `g`; and another, `q`. `p` was written last.
async fn family() -> (TempDir, SqliteStore) {
    let (folder, store) = open().await;
    write(&store, "p", &log(10)).await;
    fork(&store, "p", 6, "f").await;
    fork(&store, "f", 3, "g").await;
    write(&store, "q", &log(4)).await;
    write(&store, "p", &log(12)[10..]).await;
    store
        .rename(&id("f"), "The \"other\" way\u{2028}")
        .await
        .unwrap();
    let settings = "{\"model\": \"a/b\"}";
    store.save_settings(&id("p"), settings).await.unwrap();
    (folder, store)
}

async fn export(store: &SqliteStore, sessions: &[&str]) -> String {
    let wanted = sessions.iter().map(|name| id(name)).collect();
    String::from_utf8(store.export(&wanted, Vec::new()).await.unwrap()).unwrap()
}

async fn import(text: &str) -> (TempDir, SqliteStore) {
    let (folder, store) = open().await;
    store.import(Export::parse(text).unwrap()).await.unwrap();
    (folder, store)
}

const ALL: [&str; 4] = ["p", "f", "g", "q"];

#[tokio::test]
async fn what_is_exported_together_is_the_same_elsewhere() {
    let (_one, store) = family().await;
    let text = export(&store, &ALL).await;
    let (_other, elsewhere) = import(&text).await;
    let list = store.list().await.unwrap();
    let names: Vec<&str> = list.iter().map(|info| info.id.as_str()).collect();
    assert_eq!(names, ["p", "q", "g", "f"]);
    let alone = |info: SessionInfo| SessionInfo {
        fork: None,
        bytes: Bytes(0),
        ..info
    };
    let imported = elsewhere.list().await.unwrap().into_iter().map(alone);
    let list: Vec<SessionInfo> = list.iter().cloned().map(alone).collect();
    assert_eq!(imported.collect::<Vec<_>>(), list);
    for name in ALL {
        let session = id(name);
        let log = store.load(&session).await.unwrap();
        assert_eq!(elsewhere.load(&session).await.unwrap(), log, "{name}");
        let settings = elsewhere.settings(&session).await.unwrap();
        assert_eq!(settings, None, "{name}: it is of another machine");
    }
    assert_eq!(export(&elsewhere, &ALL).await, text);
    // A fork has the entries that it shares, too.
    assert_eq!(text.lines().count(), 4 + 12 + 7 + 4 + 4);
    let export = Export::parse(&text).unwrap();
    for session in export.sessions() {
        let log = store.load(&session.id).await.unwrap();
        assert_eq!(session.entries(), log);
    }
}

#[tokio::test]
async fn a_fork_that_is_exported_alone_is_a_session_of_its_own() {
    let (_one, store) = family().await;
    let text = export(&store, &["g"]).await;
    let (_other, elsewhere) = import(&text).await;
    let [info] = &elsewhere.list().await.unwrap()[..] else {
        unreachable!("one session was exported")
    };
    let was = store.head(&id("g")).await.unwrap().unwrap();
    let now = SessionInfo {
        fork: None,
        bytes: info.bytes,
        ..was
    };
    assert_eq!(*info, now);
    let log = store.load(&id("g")).await.unwrap();
    assert_eq!(elsewhere.load(&id("g")).await.unwrap(), log);
}

#[tokio::test]
async fn entries_without_the_first_line_of_a_session_are_no_session() {
    let (_one, store) = family().await;
    let text = export(&store, &["q"]).await;
    for first in [1, 3] {
        let lines: Vec<&str> = text.lines().skip(first).collect();
        let rest = lines.join("\n");
        assert!(Export::is_one(&rest) && Export::is_one(&text));
        let BadExport { line, why } = Export::parse(&rest).unwrap_err();
        assert!(
            why.contains("first line of its session is missing"),
            "{why}"
        );
        assert_eq!(line, 1);
    }
}

#[tokio::test]
async fn a_file_that_was_cut_is_imported_after_its_first_line_was_corrected() {
    let (_one, store) = family().await;
    let text = export(&store, &["q"]).await;
    let mut lines: Vec<&str> = text.lines().take(3).collect();
    let first = lines[0].replace("\"entries\":4", "\"entries\":2");
    lines[0] = &first;
    let (_other, elsewhere) = import(&lines.join("\n")).await;
    assert_eq!(elsewhere.load(&id("q")).await.unwrap(), log(2));
}

#[tokio::test]
async fn a_fault_is_told_with_its_line_and_the_cure() {
    let (_one, store) = family().await;
    let text = export(&store, &ALL).await;
    let lines: Vec<&str> = text.lines().collect();
    let one = export(&store, &["q"]).await;
    let one: Vec<&str> = one.lines().collect();
    let at = |name: &str| {
        let begins = format!("{{\"session\":\"{name}\"");
        lines
            .iter()
            .position(|line| line.starts_with(&begins))
            .unwrap()
    };
    let with = |k: usize, was: &str, is: &str| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert!(lines[k].contains(was), "{}", lines[k]);
        lines[k] = lines[k].replacen(was, is, 1);
        lines.join("\n")
    };
    let without = |from: usize, to: usize| [&lines[..from], &lines[to..]].concat().join("\n");
    // It was written last, so it stands last.
    let p = at("p");
    let mut swapped = lines.clone();
    swapped.swap(p + 2, p + 3);
    let line = |index: usize| index as u64 + 1;
    let table: [(String, u64, &str); 15] = [
        (one[..3].join("\n"), 3, "they end with entry 2"),
        (
            one[..3].join("\n"),
            3,
            "write \"entries\":2 into its first line to import",
        ),
        (
            one.join("\n").trim_end_matches("\"}").to_owned(),
            5,
            "the file is damaged or was cut",
        ),
        (
            lines[..p].join("\n"),
            p as u64,
            "the file was cut before its last session; export it again",
        ),
        (
            without(p + 2, p + 3),
            line(p + 2),
            "it is entry 3, and entry 2 is due: lines are missing or out of order",
        ),
        (swapped.join("\n"), line(p + 2), "entry 2 is due"),
        (
            without(p - 1, p),
            p as u64,
            "has 4 entries, and they end with entry 3",
        ),
        (
            with(p + 1, "\"opened\"", "\"dreamt\""),
            line(p + 1),
            "it was altered; export the session again",
        ),
        (
            with(p + 2, "\"at\":1", "\"at\":2"),
            line(p + 2),
            "take its \"sum\" out if you changed the line",
        ),
        (
            with(0, "\"version\":1", "\"version\":2"),
            1,
            "version 2, and this Plimsoll reads version 1; update",
        ),
        (with(0, "\"left\"", "\"port\""), 1, "unknown field `port`"),
        (
            [&one[..], &one[..]].concat().join("\n"),
            6,
            "session q is in the file twice, first on line 1",
        ),
        (
            [&one[1..], &one[..]].concat().join("\n"),
            1,
            "the first line of its session is missing",
        ),
        (
            [&one[..], &one[4..]].concat().join("\n"),
            6,
            "entry 5 is due",
        ),
        (format!("{}\n\n", one.join("\n")), 6, "it cannot be read"),
    ];
    for (text, line, words) in table {
        let BadExport { line: found, why } = Export::parse(&text).unwrap_err();
        assert!(why.contains(words), "no `{words}` in {why}");
        assert_eq!(found, line, "{why}");
    }
    // A line that is changed on purpose.
    let bare = |line: &&str| match line.split_once(",\"sum\"") {
        Some((line, _)) => format!("{line}}}\n"),
        None => format!("{line}\n"),
    };
    let other: String = one.iter().map(bare).collect();
    let other = other.replace("task 1", "task 9");
    let (_other, elsewhere) = import(&other).await;
    assert_eq!(elsewhere.list().await.unwrap()[0].title, "task 9");
}

#[tokio::test]
async fn all_sessions_of_a_file_are_imported_or_none() {
    let (_one, store) = family().await;
    let text = export(&store, &ALL).await;
    let (_other, elsewhere) = open().await;
    let import = || elsewhere.import(Export::parse(&text).unwrap());
    // Somebody begins a session of the name of the last.
    let lease = elsewhere.acquire(&id("q")).await.unwrap();
    let busy = import().await.unwrap_err();
    assert_eq!(busy, StoreError::Busy { session: id("q") });
    assert_eq!(elsewhere.list().await.unwrap(), []);
    elsewhere.append(&lease, &log(1)).await.unwrap();
    drop(lease);
    let taken = import().await.unwrap_err().to_string();
    assert!(taken.contains("there is a session q already"), "{taken}");
    assert_eq!(elsewhere.list().await.unwrap().len(), 1);
    assert_eq!(elsewhere.load(&id("p")).await.unwrap(), []);
    assert_eq!(elsewhere.settings(&id("p")).await.unwrap(), None);
    let lease = elsewhere.acquire(&id("q")).await.unwrap();
    elsewhere.delete(&lease).await.unwrap();
    drop(lease);
    import().await.unwrap();
    assert!(import().await.is_err(), "twice");
    // What was imported goes on.
    write(&elsewhere, "q", &log(5)[4..]).await;
    assert_eq!(elsewhere.load(&id("q")).await.unwrap(), log(5));
    assert_eq!(elsewhere.list().await.unwrap()[0].id, id("q"));
}
