//! An endless deterministic log: entry k is always the same, and every prefix folds. It does not
//! resemble the log of a model.

#[cfg(unix)]
pub(crate) mod other;

use std::any::Any;
use std::sync::Arc;

use plimsoll_agent::{Entry, Outcome, State};
use plimsoll_context::{
    CallId, Chars4, Message, Part, StopReason, Tokens, ToolCall, Trigger, Usage,
};
use plimsoll_core::{Lease, MemoryStore, SessionId, SessionStore};
use plimsoll_store::{Durability, Options, SqliteStore};
use serde_json::json;

/// Entries of one run.
pub(crate) const RUN: u64 = 7;

/// A store that keeps the promises of the trait, and what goes away with it: its folder or server.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) store: Arc<dyn SessionStore>,
    _kept: Option<Box<dyn Any>>,
}

/// Options of a store that does not wait for the disk.
pub(crate) fn options() -> Options {
    Options {
        durability: Durability::Normal,
        ..Options::default()
    }
}

/// The store in memory, for what no store may decide otherwise.
pub(crate) fn memory() -> Case {
    Case {
        name: "memory",
        store: Arc::new(MemoryStore::default()),
        _kept: None,
    }
}

/// Every store that keeps the promises of the trait.
pub(crate) async fn stores() -> Vec<Case> {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open_with(folder.path(), options()).await;
    #[allow(unused_mut)]
    let mut stores = vec![
        memory(),
        Case {
            name: "sqlite",
            store: Arc::new(sqlite.unwrap()),
            _kept: Some(Box::new(folder)),
        },
    ];
    #[cfg(all(unix, feature = "postgres"))]
    if let Some(server) = plimsoll_testkit::postgres::PostgresServer::start() {
        let store = plimsoll_store::PostgresStore::connect(&server.url()).await;
        stores.push(Case {
            name: "postgres",
            store: Arc::new(store.unwrap()),
            _kept: Some(Box::new(server)),
        });
    }
    stores
}

/// Appends messages by their numbers, and a plan that shortens them. Numbers between them get other
/// messages, which stay in the view: first the calls of all results, if there is room for them.
pub(crate) async fn evict(store: &dyn SessionStore, lease: &Lease, items: &[(u64, Message)]) {
    let log = store.load(lease.session()).await.unwrap();
    let mut entries = Vec::new();
    if log.is_empty() {
        entries.push(Entry::Opened { format: 1 });
    }
    let before = State::fold(Arc::new(Chars4), &log).unwrap();
    let next = before.transcript().next_seq().0;
    let mut edits = Vec::new();
    let calls = items.iter().filter_map(|(_, message)| match message {
        Message::ToolResult(result) => Some(Part::ToolCall(ToolCall {
            id: result.call.clone(),
            name: "read".to_owned(),
            arguments: "{}".to_owned(),
            opaque: None,
        })),
        _ => None,
    });
    let mut calls: Vec<Part> = calls.collect();
    let last = items.iter().map(|(seq, _)| *seq).max().unwrap();
    for seq in next..=last {
        let message = match items.iter().find(|(number, _)| *number == seq) {
            Some((_, message)) => {
                let short = match message {
                    Message::ToolResult(result) => Message::result(result.call.clone(), "-"),
                    Message::Assistant { .. } => Message::assistant("-"),
                    _ => Message::user("-"),
                };
                edits.push(json!({
                    "edit": "shrink",
                    "seq": seq,
                    "to": { "message": short, "tokens": 1 },
                }));
                message.clone()
            }
            None if !calls.is_empty() => Message::Assistant {
                parts: std::mem::take(&mut calls),
            },
            None => Message::user(format!("filler {seq}")),
        };
        entries.push(Entry::Message {
            message: Arc::new(message),
            queued: None,
        });
    }
    let plan = json!({
        "why": Trigger::Request,
        "stages": ["prune"],
        "edits": edits,
        "before": 0,
        "frees": 0,
        "rewrites_from": null,
    });
    let plan = serde_json::from_value(plan).unwrap();
    entries.push(Entry::PlanApplied { plan });
    store.append(lease, &entries).await.unwrap();
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
        estimated: Usage::default(),
        counted: Tokens(100),
        cost: None,
    }
}
