//! `plimsoll sessions`: what is in the store, what a model would see of it, and the log itself.

use std::io::{self, Write};
use std::sync::Arc;

use plimsoll::store::SqliteStore;
use plimsoll::wire::openai_chat::{self, Dialect, RenderInput};
use plimsoll::{Bpe, Edit, Entry, Fork, Memo, Message, SessionId, SessionStore, State};

use crate::args::{SessionsArgs, SessionsCommand};
use crate::count::preview;
use crate::exit::{DONE, Stop};
use crate::fork;
use crate::ledger;
use crate::loops;
use crate::out::out;
use crate::paths;
use crate::pins;
use crate::recall::{self, Wanted};

/// Runs the command.
pub(crate) async fn run(args: &SessionsArgs) -> Result<u8, Stop> {
    let store = SqliteStore::open(paths::data()?)
        .await
        .map_err(Stop::failed)?;
    match &args.command {
        SessionsCommand::List { json } => list(&store, *json).await,
        SessionsCommand::Show { id, json } => show(&store, id, *json).await,
        SessionsCommand::Export { id } => export(&store, id).await,
        SessionsCommand::Loops { id, json } => {
            loops::list(&store, &known(&store, id).await?, *json).await
        }
        SessionsCommand::Undo { id, runs, json } => {
            loops::undo(&store, &known(&store, id).await?, *runs, *json).await
        }
        SessionsCommand::Fork { id, at, to, json } => {
            let from = known(&store, id).await?;
            fork::run(&store, &from, *at, to.as_deref(), *json).await
        }
        SessionsCommand::Ledger { id, json } => {
            ledger::run(&store, &known(&store, id).await?, *json).await
        }
        SessionsCommand::Pins { id, json } => {
            pins::list(&store, &known(&store, id).await?, *json).await
        }
        SessionsCommand::Unpin { id, item } => {
            pins::unpin(&store, &known(&store, id).await?, item).await
        }
        SessionsCommand::Recall {
            id,
            item,
            offset,
            limit,
            pattern,
            json,
        } => {
            let wanted = Wanted {
                item,
                offset: *offset,
                limit: *limit,
                pattern: pattern.as_deref(),
                json: *json,
            };
            recall::run(&store, &known(&store, id).await?, &wanted).await
        }
    }
}

/// What a log amounts to, weighed as an agent weighs it.
pub(crate) fn fold(log: &[Entry]) -> Result<State, Stop> {
    State::fold(Arc::new(Memo::new(Bpe::o200k())), log).map_err(Stop::failed)
}

async fn list(store: &SqliteStore, json: bool) -> Result<u8, Stop> {
    let sessions = store.list().await.map_err(Stop::failed)?;
    if sessions.is_empty() && !json {
        crate::say("there are no sessions yet; `plimsoll run` makes one");
    }
    for session in sessions {
        if json {
            out!("{}", serde_json::to_string(&session).map_err(Stop::failed)?);
        } else {
            let fork = session.fork.map(|fork| format!("  ({})", described(&fork)));
            out!(
                "{:<24}  {:>6} entries  {}{}",
                session.id.as_str(),
                session.entries,
                session.title,
                fork.unwrap_or_default()
            );
        }
    }
    Ok(DONE)
}

async fn show(store: &SqliteStore, id: &str, json: bool) -> Result<u8, Stop> {
    let id = known(store, id).await?;
    let log = store.load(&id).await.map_err(Stop::failed)?;
    let state = fold(&log)?;
    let started = log.iter().rev().find_map(|entry| match entry {
        Entry::Started { model, system, .. } => Some((model.clone(), Arc::clone(system))),
        _ => None,
    });
    let (model, system) = started.unwrap_or_default();
    let items = state.transcript().items();
    if json {
        let input = RenderInput {
            model: &model,
            system: Some(&*system).filter(|text| !text.is_empty()),
            ..RenderInput::default()
        };
        let messages = items.iter().map(|item| item.message.as_ref());
        let (request, _) =
            openai_chat::request(&input, messages, &Dialect::openai()).map_err(Stop::failed)?;
        out!("{}", serde_json::json!({ "messages": request.messages }));
        return Ok(DONE);
    }
    out!("session {id}: {} runs, model {model}", state.runs());
    let info = store.info(&id).await.map_err(Stop::failed)?;
    if let Some(fork) = info.and_then(|info| info.fork) {
        out!(
            "{}, with which it shares what came before",
            described(&fork)
        );
    }
    out!(
        "the model would see {} messages, {} tokens:",
        items.len(),
        state.transcript().tokens()
    );
    for item in items {
        let role = role(&item.message);
        out!(
            "{:>7}  {role:<9}  {:>7}  {}",
            item.seq.to_string(),
            item.tokens,
            preview(&item.message)
        );
    }
    let plans = log.iter().filter_map(|entry| match entry {
        Entry::Planned { plan } => Some(plan),
        _ => None,
    });
    for plan in plans {
        let dropped = plan
            .edits
            .iter()
            .filter(|edit| matches!(edit, Edit::Drop { .. }))
            .count();
        out!(
            "plan ({}): freed {} tokens with {} edits, {dropped} of them drops",
            plan.stages.join(", "),
            plan.frees,
            plan.edits.len(),
        );
    }
    let usage = state.usage();
    out!(
        "used: read {} ({:.0} % cached), wrote {}",
        usage.processed(),
        usage.cache_hit_rate() * 100.0,
        usage.output
    );
    Ok(DONE)
}

/// What a session is a fork of.
fn described(fork: &Fork) -> String {
    format!("fork of {} at entry {}", fork.from, fork.entries)
}

async fn export(store: &SqliteStore, id: &str) -> Result<u8, Stop> {
    let id = known(store, id).await?;
    let out = store
        .export(&id, io::stdout())
        .await
        .map_err(Stop::failed)?;
    let mut out = out;
    out.flush().map_err(Stop::failed)?;
    Ok(DONE)
}

async fn known(store: &SqliteStore, id: &str) -> Result<SessionId, Stop> {
    let id = SessionId::new(id).map_err(Stop::usage)?;
    match store.info(&id).await.map_err(Stop::failed)? {
        Some(_) => Ok(id),
        None => Err(Stop::usage(format!(
            "there is no session {id}; `plimsoll sessions list` lists them"
        ))),
    }
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::System { .. } => "system",
        Message::User { .. } => "user",
        Message::Notice { .. } => "notice",
        Message::Summary { .. } => "summary",
        Message::Assistant { .. } => "assistant",
        Message::ToolResult(_) => "tool",
    }
}
