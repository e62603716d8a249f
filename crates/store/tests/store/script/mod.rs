//! An endless deterministic log: entry k is always the same, and every prefix folds. It does not
//! resemble the log of a model.

#[cfg(unix)]
pub(crate) mod other;

use std::any::Any;
use std::sync::Arc;

use plimsoll_agent::{Entry, Outcome, State};
use plimsoll_context::{CallId, Chars4, Message, Part, StopReason, Tokens, ToolCall, Usage};
use plimsoll_core::{ArchiveBounds, MemoryStore, SessionId, SessionStore};
use plimsoll_store::{Durability, Options, SqliteStore};

/// Entries of one run.
pub(crate) const RUN: u64 = 7;

/// A store that keeps the promises of the trait, and what goes away with it: its folder or server.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) store: Arc<dyn SessionStore>,
    _kept: Option<Box<dyn Any>>,
}

/// Options of a store that does not wait for the disk.
pub(crate) fn options(archive: ArchiveBounds) -> Options {
    Options {
        durability: Durability::Normal,
        archive,
        ..Options::default()
    }
}

/// Every store that keeps the promises of the trait.
pub(crate) async fn stores(bounds: ArchiveBounds) -> Vec<Case> {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open_with(folder.path(), options(bounds)).await;
    #[allow(unused_mut)]
    let mut stores = vec![
        Case {
            name: "memory",
            store: Arc::new(MemoryStore::with_archive(bounds)),
            _kept: None,
        },
        Case {
            name: "sqlite",
            store: Arc::new(sqlite.unwrap()),
            _kept: Some(Box::new(folder)),
        },
    ];
    #[cfg(all(unix, feature = "postgres"))]
    if let Some(server) = plimsoll_testkit::postgres::PostgresServer::start() {
        let options = plimsoll_store::PostgresOptions {
            archive: bounds,
            ..Default::default()
        };
        let store = plimsoll_store::PostgresStore::connect_with(&server.url(), options).await;
        stores.push(Case {
            name: "postgres",
            store: Arc::new(store.unwrap()),
            _kept: Some(Box::new(server)),
        });
    }
    stores
}

/// Entry k, counted from 0.
pub(crate) fn entry(k: u64) -> Entry {
    let Some(k) = k.checked_sub(1) else {
        return Entry::Opened { format: 1 };
    };
    let run = k / RUN + 1;
    let call = CallId(format!("call-{run}"));
    match k % RUN {
        0 => Entry::RunStarted {
            run,
            model: "test/model".to_owned(),
            system: "You are a test.".into(),
            tools: vec!["read".to_owned()],
            later: Vec::new(),
            config: None,
        },
        1 => Entry::Message {
            message: Arc::new(Message::user(format!("task {run}\nwith a second line"))),
            queued: None,
        },
        2 => replied(
            vec![Part::ToolCall(ToolCall {
                id: call,
                name: "read".to_owned(),
                arguments: format!("{{\"path\": \"file-{run}.txt\"}}"),
                opaque: None,
            })],
            StopReason::ToolCalls,
        ),
        3 => Entry::ToolStarted { call },
        4 => Entry::ToolResult {
            message: Arc::new(Message::result(
                call,
                format!("{run}: {}", "é\u{0}\n".repeat(200)),
            )),
            pins: Vec::new(),
            spent: Default::default(),
        },
        5 => replied(vec![Part::text(format!("done {run}"))], StopReason::Stop),
        _ => Entry::RunEnded {
            outcome: Outcome {
                turns: 2,
                tool_calls: 1,
                ..Outcome::answered(format!("done {run}"))
            },
        },
    }
}

/// The first `n` entries.
pub(crate) fn log(n: u64) -> Vec<Entry> {
    (0..n).map(entry).collect()
}

/// What the log amounts to.
pub(crate) fn fold(log: &[Entry]) -> State {
    State::fold(Arc::new(Chars4), log).unwrap()
}

/// A session's name.
pub(crate) fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn replied(parts: Vec<Part>, stop: StopReason) -> Entry {
    Entry::Reply {
        message: Arc::new(Message::Assistant { parts }),
        stop,
        usage: Some(Usage {
            input: Tokens(100),
            output: Tokens(10),
            ..Usage::default()
        }),
        counted: Tokens(100),
        cost: None,
    }
}
