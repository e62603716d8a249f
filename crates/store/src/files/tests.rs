//! Tests which contents are kept, for which session, and up to which size.

use plimsoll_context::CallId;

use super::*;

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn kin(name: &str, entries: u64, below: Option<u64>) -> LogAncestor {
    LogAncestor {
        key: 1,
        id: id(name),
        shared: 0,
        entries,
        below: below.map(plimsoll_context::Seq),
        born: name.as_bytes().to_vec(),
    }
}

fn edit(path: &str, before: Option<&str>, after: Option<&str>) -> FileEdit {
    FileEdit {
        call: Some(CallId("c1".to_owned())),
        root: "/w".into(),
        path: path.into(),
        before: before.map(|text| text.as_bytes().to_vec()),
        after: after.map(|text| text.as_bytes().to_vec()),
    }
}

fn files(folder: &Path, limits: KeptLimits) -> Files {
    let mut files = Files::new(folder, &Options::default());
    files.limits = limits;
    files
}

async fn contents(files: &Files) -> u64 {
    let count = files.open().await.unwrap().with(|connection, _| {
        let count = connection.query_row("SELECT count(*) FROM contents", [], |row| row.get(0));
        count.map(from_column)
    });
    count.await.unwrap()
}

#[tokio::test]
async fn a_change_is_read_back_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let one = files(folder.path(), KeptLimits::DEFAULT);
    assert_eq!(one.changes(vec![kin("s", 9, None)]).await.unwrap(), []);
    assert!(!folder.path().join(FILES).exists(), "reading makes no file");
    for (entry, change) in [
        (4, edit("a", None, Some("1"))),
        (6, edit("a", Some("1"), Some("2"))),
        (9, edit("dir/b", Some("2"), None)),
    ] {
        let of = kin("s", entry, None);
        one.keep(id("s"), Some(of), change).await.unwrap();
    }
    // Each content is stored once.
    assert_eq!(contents(&one).await, 2);
    drop(one);
    let again = files(folder.path(), KeptLimits::DEFAULT);
    let changes = again.changes(vec![kin("s", 9, None)]).await.unwrap();
    let told: Vec<_> = changes
        .iter()
        .map(|it| (it.entry, it.path.to_str().unwrap(), it.before, it.after))
        .collect();
    let hash = |text: &str| Some(ContentHash::of(text.as_bytes()));
    assert_eq!(
        told,
        [
            (4, "a", None, hash("1")),
            (6, "a", hash("1"), hash("2")),
            (9, "dir/b", hash("2"), None)
        ]
    );
    assert_eq!(changes[0].call.as_deref(), Some("c1"));
    let content = again.content(ContentHash::of(b"1")).await.unwrap();
    assert_eq!(content.as_deref(), Some(&b"1"[..]));
    assert_eq!(again.content(ContentHash::of(b"3")).await.unwrap(), None);
}

#[tokio::test]
async fn a_fork_shows_what_it_shares_and_a_new_log_of_the_name_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path(), KeptLimits::DEFAULT);
    for (session, entry) in [("parent", 4), ("parent", 8), ("fork", 12)] {
        let change = edit(&format!("{session}{entry}"), None, Some("x"));
        let of = kin(session, entry, None);
        files.keep(id(session), Some(of), change).await.unwrap();
    }
    let shown = files.changes(vec![kin("fork", 12, None), kin("parent", 6, Some(3))]);
    let paths: Vec<_> = shown.await.unwrap().into_iter().map(|it| it.path).collect();
    assert_eq!(paths, [Path::new("parent4"), Path::new("fork12")]);
    let other = LogAncestor {
        born: b"another".to_vec(),
        ..kin("parent", 9, None)
    };
    assert_eq!(files.changes(vec![other]).await.unwrap(), []);
}

#[tokio::test]
async fn the_oldest_contents_are_forgotten_and_their_records_stay() {
    let folder = tempfile::tempdir().unwrap();
    let limits = KeptLimits {
        session: Bytes(10),
        all: Bytes(14),
        changes: 3,
        changes_in_all: 4,
    };
    let files = files(folder.path(), limits);
    let keep = async |session: &str, before: Option<&str>, after: &str| {
        let of = kin(session, 1, None);
        let change = edit("f", before, Some(after));
        files.keep(id(session), Some(of), change).await.unwrap();
        let shown = files.changes(vec![kin(session, 1, None)]).await.unwrap();
        let forgotten: Vec<bool> = shown.iter().map(|it| it.is_forgotten).collect();
        forgotten
    };
    assert_eq!(keep("s", None, "aaaa").await, [false]);
    assert_eq!(keep("s", Some("aaaa"), "bbbb").await, [false, false]);
    // 12 bytes are too many. The content that the second change needs is still stored.
    assert_eq!(keep("s", Some("bbbb"), "cccc").await, [true, true, false]);
    assert_eq!(contents(&files).await, 2);
    assert_eq!(keep("s", Some("cccc"), "bbbb").await, [true, false, false]);
    // The limit of all sessions together.
    assert_eq!(keep("t", None, "dddddddd").await, [false]);
    let shown = files.changes(vec![kin("s", 1, None)]).await.unwrap();
    assert!(shown.iter().all(|it| it.is_forgotten), "{shown:?}");
    // A single change is kept regardless of its size.
    assert_eq!(keep("u", None, &"e".repeat(40)).await, [false]);
    assert_eq!(contents(&files).await, 1);
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path(), KeptLimits::DEFAULT);
    let large = FileEdit {
        before: Some(vec![0; MAX_KEPT_FILE.0 as usize + 1]),
        ..edit("f", None, None)
    };
    let error = files.keep(id("s"), None, large).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("more than the 16777216 bytes that are kept"),
        "{error}"
    );
    let damaged = tempfile::tempdir().unwrap();
    std::fs::write(
        damaged.path().join(FILES),
        "no database, but a text that is long enough",
    )
    .unwrap();
    let files = Files::new(damaged.path(), &Options::default());
    let error = files.keep(id("s"), None, edit("f", None, Some("x"))).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("contents of files cannot be stored in") && error.contains("move it away"),
        "{error}"
    );
}
