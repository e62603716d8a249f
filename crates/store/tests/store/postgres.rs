//! Sessions in PostgreSQL: its particularities. The contract of every store is tested in `forks`
//! and `removal`. Skipped with a note if no server is installed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_agent::{Answer, CallKey, Entry, Question};
use plimsoll_context::{CallId, Message, Seq};
use plimsoll_core::{Fork, SessionStore, StoreError};
use plimsoll_store::SessionReader;
use plimsoll_store::{MAX_RUN_MESSAGE, PostgresOptions, PostgresStore, RunMessage, RunMessageKind};
use plimsoll_testkit::postgres::PostgresServer;
use rustix::process::Signal;
use sqlx::{Connection, PgConnection};

use crate::script::other::{LOST, Other, PLACE};
use crate::script::{entry, id, log};

/// Long enough that a process on a busy machine is not thought dead, short enough for a test.
const PATIENCE: Duration = Duration::from_secs(2);

async fn open(url: &str) -> PostgresStore {
    let options = PostgresOptions {
        patience: PATIENCE,
        timeout: Duration::from_secs(2),
        ..PostgresOptions::default()
    };
    PostgresStore::connect_with(url, options).await.unwrap()
}

/// Forbids connections to the database of the tests and ends those that exist, or permits them.
async fn allow_connections(server: &PostgresServer, are_allowed: bool) {
    let url = server.url().replace("/postgres?", "/template1?");
    let mut other = PgConnection::connect(&url).await.unwrap();
    let sql = if are_allowed {
        "ALTER DATABASE postgres ALLOW_CONNECTIONS true"
    } else {
        "ALTER DATABASE postgres ALLOW_CONNECTIONS false;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres'"
    };
    sqlx::raw_sql(sql).execute(&mut other).await.unwrap();
}

async fn raw(server: &PostgresServer, sql: &'static str) {
    let mut raw = PgConnection::connect(&server.url()).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut raw).await.unwrap();
}

/// What the other process does: it writes to the session `s` as it is asked.
async fn obey(url: &str) {
    let store = open(url).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    eprintln!("held");
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    // On a thread of its own, so that the beats go on.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if tell.blocking_send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    let of = Fork {
        from: id("parent"),
        entries: 2,
    };
    while let Some(what) = told.recv().await {
        let done = match what.as_str() {
            "fork" => store.fork(&lease, &of, &[]).await,
            "delete" => store.delete(&lease).await.map(|_| ()),
            _ => {
                let have = store.load(&id("s")).await.unwrap().len() as u64;
                store.append(&lease, &[entry(have)]).await
            }
        };
        match done {
            Ok(()) => eprintln!("done"),
            Err(error) => eprintln!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_process_that_was_stopped_and_replaced_writes_nothing_when_it_wakes_up() {
    if let Ok(url) = std::env::var(PLACE) {
        return obey(&url).await;
    }
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let store = open(&server.url()).await;
    let parent = store.acquire(&id("parent")).await.unwrap();
    store.append(&parent, &log(5)).await.unwrap();
    let mut other = Other::start(
        "postgres::a_process_that_was_stopped_and_replaced_writes_nothing_when_it_wakes_up",
        server.url(),
    );
    for _ in 0..3 {
        assert_eq!(other.ask("append"), "done");
        let busy = store.acquire(&id("s")).await.unwrap_err();
        assert_eq!(busy, StoreError::Busy { session: id("s") });
    }

    other.signal(Signal::STOP);
    let since = Instant::now();
    let lease = store.acquire(&id("s")).await.unwrap();
    // Its last beat may have been a little earlier.
    assert!(since.elapsed() >= PATIENCE / 2, "{:?}", since.elapsed());
    store.append(&lease, &log(6)[3..]).await.unwrap();
    other.signal(Signal::CONT);
    for what in ["append", "fork", "delete"] {
        assert_eq!(other.ask(what), LOST, "{what}");
    }
    assert_eq!(store.load(&id("s")).await.unwrap(), log(6));

    // Neither its end nor what it drops frees the session.
    drop(other);
    let third = open(&server.url()).await;
    let busy = third.acquire(&id("s")).await.unwrap_err();
    assert_eq!(busy, StoreError::Busy { session: id("s") });
    store.append(&lease, &log(9)[6..]).await.unwrap();

    // A lease that is dropped frees it, and nobody waits.
    drop(lease);
    let since = Instant::now();
    let lease = third.acquire(&id("s")).await.unwrap();
    assert!(since.elapsed() < PATIENCE, "{:?}", since.elapsed());
    third.append(&lease, &log(12)[9..]).await.unwrap();
    assert_eq!(third.load(&id("s")).await.unwrap(), log(12));
}

#[tokio::test]
async fn a_killed_process_is_replaced_and_what_it_wrote_is_there() {
    if let Ok(url) = std::env::var(PLACE) {
        return obey(&url).await;
    }
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let mut other = Other::start(
        "postgres::a_killed_process_is_replaced_and_what_it_wrote_is_there",
        server.url(),
    );
    for _ in 0..5 {
        assert_eq!(other.ask("append"), "done");
    }
    drop(other);
    let store = open(&server.url()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(9)[5..]).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap(), log(9));
    drop(lease);
    store.close().await;
    let next = open(&server.url()).await;
    let since = Instant::now();
    next.acquire(&id("s")).await.unwrap();
    assert!(since.elapsed() < PATIENCE, "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_lease_that_is_dropped_while_the_database_is_away_is_released_later() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let store = open(&server.url()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    allow_connections(&server, false).await;
    drop(lease);
    let error = store.acquire(&id("s")).await.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    allow_connections(&server, true).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_write_at_once_and_one_holds_a_session() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let mut writers = tokio::task::JoinSet::new();
    for k in 0..4 {
        let store = open(&server.url()).await;
        writers.spawn(async move {
            let shared = store.acquire(&id("shared")).await;
            let own = id(&format!("s{k}"));
            let lease = store.acquire(&own).await.unwrap();
            for n in 0..30 {
                store.append(&lease, &[entry(n)]).await.unwrap();
            }
            assert_eq!(store.load(&own).await.unwrap(), log(30));
            (shared.is_ok(), store, shared, lease)
        });
    }
    let mut done = Vec::new();
    while let Some(one) = writers.join_next().await {
        done.push(one.unwrap());
    }
    assert_eq!(done.iter().filter(|(won, ..)| *won).count(), 1);
    let list = open(&server.url()).await.list().await.unwrap();
    assert_eq!(list.len(), 4);
    assert!(
        list.iter()
            .all(|info| info.entries == 30 && info.title == "task 1")
    );
}

#[tokio::test]
async fn a_long_log_and_what_providers_said_come_back() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let store = open(&server.url()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &[]).await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
    store.append(&lease, &log(3_000)).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap(), log(3_000));
    let head = store.head(&id("s")).await.unwrap().unwrap();
    assert!(head.idle().unwrap() < Duration::from_secs(60));
}

/// The database cannot hold the character 0 in a text; a log may have it anywhere.
#[tokio::test]
async fn a_character_that_the_database_cannot_hold_loses_nothing() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let store = open(&server.url()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    let said = Entry::Message {
        message: Arc::new(Message::user("nul \0 here")),
        queued: None,
    };
    let log = [entry(0), said];
    store.append(&lease, &log).await.unwrap();
    assert_eq!(store.load(&id("s")).await.unwrap(), log);
    assert_eq!(store.list().await.unwrap()[0].title, "nul \u{fffd} here");
    store.rename(&id("s"), "a\0b").await.unwrap();
    assert_eq!(store.list().await.unwrap()[0].title, "a\u{fffd}b");
    let recalled = store.recall(&id("s"), "m0").await.unwrap();
    assert_eq!(recalled.text(), "nul \0 here");
}

#[tokio::test]
async fn what_is_wrong_with_a_database_is_one_clear_sentence() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let store = open(&server.url()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(9)).await.unwrap();

    raw(
        &server,
        "UPDATE entries SET json = replace(json, 'file-', 'fule-') WHERE n = 4",
    )
    .await;
    let error = store.load(&id("s")).await.unwrap_err().to_string();
    assert!(error.contains("entry 4 of session s"), "{error}");
    assert!(error.contains("it was altered"), "{error}");
    raw(
        &server,
        "UPDATE entries SET json = replace(json, 'fule-', 'file-') WHERE n = 4",
    )
    .await;
    assert_eq!(store.load(&id("s")).await.unwrap(), log(9));

    raw(
        &server,
        "ALTER DATABASE postgres SET default_transaction_read_only = on",
    )
    .await;
    let reader = PostgresStore::connect(&server.url()).await;
    // The tables are there, so nothing has to be made.
    let reader = reader.unwrap();
    assert_eq!(reader.load(&id("s")).await.unwrap(), log(9));
    let error = reader.acquire(&id("t")).await.unwrap_err().to_string();
    assert!(
        error.contains("it is read-only; connect to the primary"),
        "{error}"
    );
    raw(
        &server,
        "BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; COMMIT",
    )
    .await;

    raw(&server, "UPDATE format SET version = 4").await;
    let error = PostgresStore::connect(&server.url()).await.unwrap_err();
    let said = "format 4, and this version of Plimsoll reads format 3";
    assert!(error.to_string().contains(said), "{error}");

    let url = server.url();
    drop(server);
    let error = store.append(&lease, &log(10)[9..]).await.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    let error = PostgresStore::connect(&url).await.unwrap_err().to_string();
    assert!(error.contains("see that the server runs"), "{error}");
    let error = PostgresStore::connect("postgres//x").await.unwrap_err();
    assert!(
        error.to_string().contains("the URL cannot be read"),
        "{error}"
    );
}

#[tokio::test]
async fn a_message_is_kept_once_for_its_run_and_a_question_has_one_answer() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let store = open(&server.url()).await;
    let say = |id: &str, text: &str| RunMessage {
        id: id.to_owned(),
        kind: RunMessageKind::Steer,
        text: text.to_owned(),
    };
    for text in ["one", "one again"] {
        store.post(&id("s"), "r1", &say("a", text)).await.unwrap();
    }
    store.post(&id("s"), "r1", &say("b", "two")).await.unwrap();
    store.post(&id("s"), "r2", &say("a", "else")).await.unwrap();
    let read = store.messages(&id("s"), "r1", 0).await.unwrap();
    let texts: Vec<&str> = read.iter().map(|(_, it)| it.text.as_str()).collect();
    assert_eq!(texts, ["one", "two"]);
    assert!(
        store
            .messages(&id("s"), "r1", read[1].0)
            .await
            .unwrap()
            .is_empty()
    );
    let long = say("c", &"x".repeat(MAX_RUN_MESSAGE.0 as usize + 1));
    let refused = store.post(&id("s"), "r1", &long).await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("put it into a file that the agent can read"),
        "{refused}"
    );

    let question = Question {
        call: plimsoll_context::ToolCall {
            id: CallId("c".to_owned()),
            name: "pay".to_owned(),
            arguments: "{}".to_owned(),
            opaque: None,
        },
        asks_hook: false,
        asks_gate: true,
        key: CallKey {
            session: "s".into(),
            seq: Seq(1),
            index: 0,
        },
        is_protected: false,
    };
    for _ in 0..2 {
        assert_eq!(store.ask(&question).await.unwrap(), None);
    }
    let open_now = store.questions(&id("s")).await.unwrap();
    assert_eq!((open_now.len(), open_now[0].key.as_str()), (1, "s.1-0"));
    let no = Answer::Deny {
        why: "no".to_owned(),
    };
    assert!(!store.answer(&id("t"), "s.1-0", &no).await.unwrap());
    for answer in [&Answer::Allow, &no] {
        assert!(store.answer(&id("s"), "s.1-0", answer).await.unwrap());
    }
    assert_eq!(store.ask(&question).await.unwrap(), Some(Answer::Allow));
    assert!(store.questions(&id("s")).await.unwrap().is_empty());

    store.forget_run(&id("s"), "r1").await.unwrap();
    let left = async |run| store.messages(&id("s"), run, 0).await.unwrap().len();
    assert_eq!((left("r1").await, left("r2").await), (0, 1));
}

#[tokio::test]
async fn the_progress_of_a_session_counts_the_questions_of_its_agents() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let store = open(&server.url()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(3)).await.unwrap();
    let key = CallKey {
        session: "s.1".into(),
        seq: Seq(1),
        index: 0,
    };
    let question = Question {
        call: plimsoll_context::ToolCall {
            id: CallId("c".to_owned()),
            name: "pay".to_owned(),
            arguments: "{}".to_owned(),
            opaque: None,
        },
        asks_hook: false,
        asks_gate: true,
        key,
        is_protected: false,
    };
    for _ in 0..2 {
        store.ask(&question).await.unwrap();
    }
    let progress = store.progress(&id("s")).await.unwrap();
    assert_eq!((progress.entries, progress.questions), (3, 1));
    let progress = store.progress(&id("none")).await.unwrap();
    assert_eq!((progress.entries, progress.questions), (0, 0));
}

#[tokio::test]
async fn sessions_are_exported_and_only_those_that_nobody_writes_to_are_deleted() {
    let Some(server) = PostgresServer::start() else {
        return;
    };
    let store = open(&server.url()).await;
    let lease = store.acquire(&id("s")).await.unwrap();
    store.append(&lease, &log(2_500)).await.unwrap();
    let info = store.head(&id("s")).await.unwrap().unwrap();
    assert_eq!(vec![info], store.list().await.unwrap());
    assert_eq!(store.head(&id("none")).await.unwrap(), None);
    let page = store.read(&id("s"), 2_490, 100).await.unwrap();
    let read: Vec<Entry> = page.into_iter().map(|line| line.entry).collect();
    assert_eq!(read, log(2_500)[2_490..]);

    let wanted = [id("s")].into();
    let export = store.export(&wanted, Vec::new()).await.unwrap();
    let export = plimsoll_store::Export::parse(str::from_utf8(&export).unwrap()).unwrap();
    assert_eq!(export.sessions()[0].entries(), log(2_500));

    let busy = store.delete_all(&[id("s")].into()).await.unwrap_err();
    assert_eq!(busy, StoreError::Busy { session: id("s") });
    drop(lease);
    store.close().await;
    let store = open(&server.url()).await;
    assert!(store.delete_all(&[id("s")].into()).await.unwrap());
    assert!(!store.delete_all(&[id("s")].into()).await.unwrap());
    assert!(store.list().await.unwrap().is_empty());
}
