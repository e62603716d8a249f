//! Settings of sessions, across processes that open the same file.

use plimsoll_core::{Fork, SessionStore};
use plimsoll_store::SessionReader;
use plimsoll_store::{MAX_SETTINGS, SqliteStore};

use crate::script::{id, log};

#[tokio::test]
async fn settings_are_kept_beside_the_log_and_a_fork_has_its_parents() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path()).await.unwrap();
    let (session, fork) = (id("s"), id("f"));
    assert_eq!(store.settings(&session).await.unwrap(), None);
    store.save_settings(&session, "one").await.unwrap();
    store.save_settings(&session, "two").await.unwrap();
    let lease = store.acquire(&session).await.unwrap();
    store.append(&lease, &log(5)).await.unwrap();
    let of = Fork {
        from: session.clone(),
        entries: 3,
    };
    let own = store.acquire(&fork).await.unwrap();
    store.fork(&own, &of, &[]).await.unwrap();
    drop((lease, own, store));

    let store = SqliteStore::open(folder.path()).await.unwrap();
    let settings = async |session| store.settings(session).await.unwrap();
    assert_eq!(settings(&session).await.as_deref(), Some("two"));
    assert_eq!(settings(&fork).await.as_deref(), Some("two"));
    store.save_settings(&fork, "own").await.unwrap();
    assert_eq!(settings(&fork).await.as_deref(), Some("own"));
    assert_eq!(settings(&session).await.as_deref(), Some("two"));
    let other = id("other");
    assert_eq!(settings(&other).await, None);
    let export = store
        .export(&[session.clone()].into(), Vec::new())
        .await
        .unwrap();
    assert!(!String::from_utf8(export).unwrap().contains("two"));

    // What is too long is not kept, and nor is what it would have replaced.
    let long = "x".repeat(MAX_SETTINGS + 1);
    store.save_settings(&fork, &long).await.unwrap();
    assert_eq!(settings(&fork).await.as_deref(), Some("two"));
}
