//! The right to write to a session: one process at a time. The other process is this test program,
//! started again.

use std::path::Path;
use std::sync::Arc;

use plimsoll_agent::Entry;
use plimsoll_context::Message;
use plimsoll_core::{SessionStore, StoreError};
use plimsoll_store::{FILE, SessionReader, SqliteStore};
use rustix::process::Signal;

use crate::script::other::{Other, PLACE};
use crate::script::{entry, id, log, options};

async fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open_with(folder, options()).await.unwrap()
}

#[tokio::test]
async fn a_stopped_process_keeps_its_session_and_a_killed_one_frees_it_at_once() {
    if let Some(folder) = std::env::var_os(PLACE) {
        let store = open(Path::new(&folder)).await;
        let lease = store.acquire(&id("s")).await.unwrap();
        eprintln!("held");
        for n in 0.. {
            if std::io::stdin().read_line(&mut String::new()).unwrap() == 0 {
                return;
            }
            match store.append(&lease, &[entry(n)]).await {
                Ok(()) => eprintln!("done"),
                Err(error) => eprintln!("{error}"),
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let mut other = Other::start(
        "leases::a_stopped_process_keeps_its_session_and_a_killed_one_frees_it_at_once",
        folder.path(),
    );
    assert_eq!(other.ask("append"), "done");
    other.signal(Signal::STOP);
    let busy = store.acquire(&id("s")).await.unwrap_err();
    assert_eq!(busy, StoreError::Busy { session: id("s") });
    other.signal(Signal::CONT);
    assert_eq!(other.ask("append"), "done");

    other.signal(Signal::STOP);
    other.signal(Signal::KILL);
    other.child.wait().unwrap();
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(4)[2..]).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap(), log(4));
}

#[tokio::test]
async fn a_session_that_is_free_in_a_moment_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (open(folder.path()).await, open(folder.path()).await);
    let lease = first.acquire(&id("s")).await.unwrap();
    let free = async {
        tokio::task::yield_now().await;
        drop(lease);
    };
    let session = id("s");
    let (next, ()) = tokio::join!(second.acquire(&session), free);
    assert!(next.is_ok());
}

#[tokio::test]
async fn a_deleted_session_leaves_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let name = "about-the-merger";
    let lease = store.acquire(&id(name)).await.unwrap();
    let said = Entry::Message {
        message: Arc::new(Message::user("Hush.")),
        queued: None,
    };
    store.append(&lease, &[entry(0), said]).await.unwrap();
    store.delete(&lease).await.unwrap();
    store.shrink().await.unwrap();
    drop((lease, store));
    let bytes = std::fs::read(folder.path().join(FILE)).unwrap();
    let found = bytes.windows(name.len()).any(|at| at == name.as_bytes());
    assert!(!found);
}
