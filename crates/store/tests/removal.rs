//! Deleting and renaming, by what every store promises: a session goes as a whole or not at all, and
//! nothing of it is found under its name again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod script;

use std::sync::Arc;

use plimsoll_context::{CallId, Message, Seq};
use plimsoll_core::{
    ArchiveBounds, Archived, Fork, RecallError, RecallKey, SessionStore, StoreError,
};
use script::{Case, id, log, stores};

fn item(seq: u64, text: &str) -> Archived {
    Archived {
        seq: Seq(seq),
        message: Arc::new(Message::result(CallId(format!("call-{seq}")), text)),
        tool: None,
        why: "test".to_owned(),
    }
}

async fn write(store: &dyn SessionStore, session: &str, entries: u64) {
    let lease = store.acquire(&id(session)).await.unwrap();
    store.append(&lease, &log(entries)).await.unwrap();
}

async fn names(store: &dyn SessionStore) -> Vec<String> {
    let list = store.list().await.unwrap();
    list.into_iter().map(|info| info.id.into()).collect()
}

#[tokio::test]
async fn a_deleted_session_leaves_nothing_behind() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        write(store, "other", 9).await;
        let lease = store.acquire(&id("s")).await.unwrap();
        assert!(
            !store.delete(&lease).await.unwrap(),
            "{name}: not there yet"
        );
        store.append(&lease, &log(20)).await.unwrap();
        store.archive(&lease, &[item(3, "quince")]).await.unwrap();
        assert!(store.delete(&lease).await.unwrap(), "{name}");
        assert_eq!(store.load(&id("s")).await.unwrap(), [], "{name}");
        assert_eq!(names(store).await, ["other"], "{name}");
        assert_eq!(store.idle(&id("s")).await, None, "{name}");
        assert!(!store.delete(&lease).await.unwrap(), "{name}: gone already");

        // The lease is still good, and the log begins anew.
        store.append(&lease, &log(3)).await.unwrap();
        assert_eq!(store.load(&id("s")).await.unwrap(), log(3), "{name}");
        assert_eq!(store.archived(&id("s")).await.unwrap(), [], "{name}");
        let found = store.search(&id("s"), "quince", 9).await.unwrap();
        assert!(found.is_empty(), "{name}");
        let key = RecallKey::from("call-3");
        let found = store.recall(&id("s"), &key).await.unwrap_err();
        assert!(matches!(found, RecallError::Unknown(_)), "{name}: {found}");
        assert_eq!(store.load(&id("other")).await.unwrap(), log(9), "{name}");
    }
}

#[tokio::test]
async fn a_session_whose_entries_a_fork_needs_is_not_deleted() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        let parent = store.acquire(&id("p")).await.unwrap();
        store.append(&parent, &log(20)).await.unwrap();
        store.archive(&parent, &[item(1, "quince")]).await.unwrap();
        let fork = store.acquire(&id("f")).await.unwrap();
        let of = Fork {
            from: id("p"),
            entries: 6,
            items: Seq(3),
        };
        store.fork(&fork, &of, &[]).await.unwrap();
        let error = store.delete(&parent).await.unwrap_err();
        let forks = StoreError::HasForks {
            session: id("p"),
            forks: vec![id("f")],
        };
        assert_eq!(error, forks, "{name}");
        assert_eq!(store.load(&id("p")).await.unwrap(), log(20), "{name}");
        assert_eq!(store.load(&id("f")).await.unwrap(), log(6), "{name}");
        let found = store.search(&id("f"), "quince", 9).await.unwrap();
        assert_eq!(found.len(), 1, "{name}: nor is its archive");

        assert!(store.delete(&fork).await.unwrap(), "{name}");
        assert_eq!(store.load(&id("p")).await.unwrap(), log(20), "{name}");
        let found = store.search(&id("p"), "quince", 9).await.unwrap();
        assert_eq!(found.len(), 1, "{name}: what was shared is the parent's");
        assert!(store.delete(&parent).await.unwrap(), "{name}");
        assert!(names(store).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_session_that_is_being_written_is_nobody_elses_to_delete() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let lease = store.acquire(&id("s")).await.unwrap();
        store.append(&lease, &log(2)).await.unwrap();
        let busy = store.acquire(&id("s")).await.unwrap_err();
        assert!(matches!(busy, StoreError::Busy { .. }), "{name}: {busy}");
    }
}

#[tokio::test]
async fn a_title_that_was_given_stays_the_sessions_own() {
    for Case { name, store, .. } in stores(ArchiveBounds::default()).await {
        let store = store.as_ref();
        let nobody = store.rename(&id("s"), "Port it").await.unwrap();
        assert!(!nobody && names(store).await.is_empty(), "{name}");
        write(store, "s", 20).await;
        let fork = store.acquire(&id("f")).await.unwrap();
        let of = Fork {
            from: id("s"),
            entries: 6,
            items: Seq(3),
        };
        store.fork(&fork, &of, &[]).await.unwrap();
        // Somebody may be writing to it.
        let lease = store.acquire(&id("s")).await.unwrap();
        assert!(store.rename(&id("s"), "Port it").await.unwrap(), "{name}");
        store.append(&lease, &log(30)[20..]).await.unwrap();
        let titles = async || -> Vec<(String, String)> {
            let list = store.list().await.unwrap().into_iter();
            let mut titles: Vec<_> = list.map(|info| (info.id.into(), info.title)).collect();
            titles.sort();
            titles
        };
        let named = |f: &str, s: &str| [("f", f), ("s", s)].map(|(id, t)| (id.into(), t.into()));
        assert_eq!(titles().await, named("task 1", "Port it"), "{name}");
        assert!(store.rename(&id("s"), "").await.unwrap(), "{name}");
        assert_eq!(titles().await, named("task 1", ""), "{name}");
        assert_eq!(store.load(&id("s")).await.unwrap(), log(30), "{name}");
    }
}
