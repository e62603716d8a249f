//! Tests which contents are kept, for which session, and up to which size.

use std::path::Path;

use plimsoll_agent::Entry;
use plimsoll_context::{CallId, Message};
use plimsoll_core::{Fork, SessionStore};

use super::*;

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
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

/// Appends entries to a session until it has this many, then keeps a change.
async fn change(store: &SqliteStore, session: &str, entries: u64, edit: FileEdit) {
    let lease = store.acquire(&id(session)).await.unwrap();
    let had = store.load(&id(session)).await.unwrap().len() as u64;
    let message = std::sync::Arc::new(Message::user("x"));
    let entry = Entry::Message {
        message,
        queued: None,
    };
    let count = usize::try_from(entries - had).unwrap();
    store.append(&lease, &vec![entry; count]).await.unwrap();
    store.keep_file(&id(session), edit).await.unwrap();
}

async fn paths(store: &SqliteStore, session: &str) -> Vec<PathBuf> {
    let changes = store.changed_files(&id(session)).await.unwrap();
    changes.into_iter().map(|change| change.path).collect()
}

/// Returns the contents of these texts that are still kept.
async fn kept<'a>(store: &SqliteStore, texts: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for text in texts {
        let hash = blake3::hash(text.as_bytes());
        if let Some(content) = store.kept_content(hash).await.unwrap() {
            assert_eq!(content, text.as_bytes());
            kept.push(*text);
        }
    }
    kept
}

#[tokio::test]
async fn a_change_is_read_back_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).await.unwrap();
    assert_eq!(store.changed_files(&id("s")).await.unwrap(), []);
    change(&store, "s", 4, edit("a", None, Some("1"))).await;
    change(&store, "s", 6, edit("a", Some("1"), Some("2"))).await;
    change(&store, "s", 9, edit("dir/b", Some("2"), None)).await;
    drop(store);
    let again = SqliteStore::open(folder.path()).await.unwrap();
    let changes = again.changed_files(&id("s")).await.unwrap();
    let told: Vec<_> = changes
        .iter()
        .map(|it| (it.entry, it.path.to_str().unwrap(), it.before, it.after))
        .collect();
    let hash = |text: &str| Some(blake3::hash(text.as_bytes()));
    assert_eq!(
        told,
        [
            (4, "a", None, hash("1")),
            (6, "a", hash("1"), hash("2")),
            (9, "dir/b", hash("2"), None)
        ]
    );
    assert_eq!(changes[0].call.as_deref(), Some("c1"));
    assert_eq!(kept(&again, &["1", "2", "3"]).await, ["1", "2"]);
}

#[tokio::test]
async fn a_fork_shows_shared_changes_and_a_deleted_session_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).await.unwrap();
    change(&store, "parent", 4, edit("early", None, Some("both"))).await;
    change(&store, "parent", 8, edit("late", None, Some("one"))).await;
    let of = Fork {
        from: id("parent"),
        entries: 6,
    };
    let lease = store.acquire(&id("fork")).await.unwrap();
    store.fork(&lease, &of, &[]).await.unwrap();
    drop(lease);
    change(&store, "fork", 12, edit("own", Some("both"), Some("two"))).await;
    change(&store, "other", 1, edit("own", None, Some("both"))).await;
    assert_eq!(
        paths(&store, "fork").await,
        [Path::new("early"), Path::new("own")]
    );
    for session in ["fork", "parent"] {
        let lease = store.acquire(&id(session)).await.unwrap();
        assert!(store.delete(&lease).await.unwrap());
    }
    assert_eq!(kept(&store, &["one", "two", "both"]).await, ["both"]);
    // A new log of the name has no changes.
    change(&store, "parent", 9, edit("new", None, Some("three"))).await;
    assert_eq!(paths(&store, "parent").await, [Path::new("new")]);
}

#[tokio::test]
async fn the_oldest_contents_are_deleted_and_the_records_stay() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).await.unwrap();
    change(&store, "s", 1, edit("f", None, Some("aaaa"))).await;
    let keep = async |before: Option<&str>, after: &str| {
        let edit = edit("f", before, Some(after));
        let writer = store.writer().await.unwrap();
        let done = writer
            .with(move |connection, _| super::keep(connection, &id("s"), &edit, Bytes(12)))
            .await;
        done.unwrap();
        kept(&store, &["aaaa", "bbbb", "cccc", "dddd"]).await
    };
    assert_eq!(keep(Some("aaaa"), "bbbb").await, ["aaaa", "bbbb"]);
    assert_eq!(keep(Some("bbbb"), "cccc").await, ["aaaa", "bbbb", "cccc"]);
    // A content that is stored again is the newest.
    assert_eq!(keep(Some("aaaa"), "dddd").await, ["aaaa", "cccc", "dddd"]);
    // Both contents of the newest change are kept regardless of their size.
    keep(Some("dddd"), &"e".repeat(40)).await;
    assert_eq!(kept(&store, &["aaaa", "dddd"]).await, ["dddd"]);
    assert_eq!(paths(&store, "s").await.len(), 5);
}

#[tokio::test]
async fn a_change_that_cannot_be_kept_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).await.unwrap();
    let large = FileEdit {
        before: Some(vec![0; MAX_KEPT_FILE.0 as usize + 1]),
        ..edit("f", None, None)
    };
    let table = [
        (large, "more than the 16777216 bytes that are kept"),
        (edit("f", None, Some("x")), "session s has no log"),
    ];
    for (edit, why) in table {
        let error = store.keep_file(&id("s"), edit).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(kept(&store, &["x"]).await, Vec::<&str>::new());
}
