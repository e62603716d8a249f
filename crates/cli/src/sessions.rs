//! `plimsoll sessions`: lists, shows and changes the sessions of a store, with their views and
//! logs.

mod args;
pub(crate) mod check;
pub(crate) mod entries;
mod export;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod import;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod recall;
pub(crate) mod runs;

pub(crate) mod open_store;
pub(crate) mod removal;
mod salvage;
pub(crate) mod search;
mod unpin;

use std::sync::Arc;

use plimsoll::SessionId;
use plimsoll::machine::{Entry, State};
use plimsoll::store::SessionReader;
use plimsoll::tokens::{Bpe, Memo};

use crate::context_use;
use crate::count::preview;
use crate::error::{CliError, DONE};
use crate::listing;
use crate::paths;
use crate::stdout;
use crate::terminal::text::counted;
use crate::view::{openai, started};
use crate::which_session::known;

pub(crate) use args::SessionsArgs;
use args::{AnyStoreCommand, SessionsCommand};
use list::described;
use open_store::OpenStore;

/// Maximum length of a title, in characters. Titles taken from messages have the same limit.
const MAX_TITLE: usize = 120;

/// Runs the command.
pub(crate) async fn run(args: &SessionsArgs) -> Result<u8, CliError> {
    if args.command.needs_files() {
        args.place.only_files()?;
    }
    match &args.command {
        // These commands must not change anything, which opening a store may do.
        SessionsCommand::Check { json } => check::run(&paths::data()?, *json).await,
        SessionsCommand::Salvage(args) => salvage::run(&paths::data()?, args).await,
        SessionsCommand::Undo(args) => {
            let store = open_store::local().await?;
            runs::undo(&store, &known(&store, &args.id).await?, args).await
        }
        SessionsCommand::Files(args) => {
            let store = open_store::local().await?;
            files::run(&store, &known(&store, &args.id).await?, args).await
        }
        SessionsCommand::Import(args) => import::run(&open_store::local().await?, args).await,
        SessionsCommand::Any(command) => match args.place.open().await? {
            OpenStore::Files(store) => of_any(&*store, command).await,
            #[cfg(feature = "restate")]
            OpenStore::Database(store) => {
                let done = of_any(&store, command).await;
                // A session that this command held is free at once.
                store.close().await;
                done
            }
        },
    }
}

/// Runs a command that every store supports.
async fn of_any(store: &impl SessionReader, command: &AnyStoreCommand) -> Result<u8, CliError> {
    let known = async |id: &str| known(store, id).await;
    match command {
        AnyStoreCommand::List { here, json } => list::run(store, *here, *json).await,
        AnyStoreCommand::Search(args) => search::run(store, args).await,
        AnyStoreCommand::Rename { id, title } => rename(store, id, title).await,
        AnyStoreCommand::Delete(args) => removal::delete(store, args).await,
        AnyStoreCommand::Prune(args) => removal::prune(store, args).await,
        AnyStoreCommand::Show { id, context, .. } if *context => {
            let log = store.load(&known(id).await?).await?;
            out!("{}", context_use::of_log(&log)?.join("\n"));
            Ok(DONE)
        }
        AnyStoreCommand::Show { id, json, .. } => show(store, &known(id).await?, *json).await,
        AnyStoreCommand::Export(args) => export::run(store, args).await,
        AnyStoreCommand::Runs(of) => runs::list(store, &known(&of.id).await?, of.json).await,
        AnyStoreCommand::Fork { id, at, to } => {
            fork::run(store, &known(id).await?, *at, to.as_deref()).await
        }
        AnyStoreCommand::Ledger(of) => ledger::run(store, &known(&of.id).await?, of.json).await,
        AnyStoreCommand::Unpin { id, item } => unpin::run(store, &known(id).await?, item).await,
        AnyStoreCommand::Recall(args) => recall::run(store, &known(&args.id).await?, args).await,
    }
}

async fn rename(store: &impl SessionReader, id: &str, title: &str) -> Result<u8, CliError> {
    let id = known(store, id).await?;
    let title = title.trim();
    if title.is_empty() || title.contains('\n') || title.chars().count() > MAX_TITLE {
        return Err(CliError::usage(format!(
            "a title is one line of 1 to {MAX_TITLE} characters"
        )));
    }
    store.rename(&id, title).await?;
    Ok(DONE)
}

/// Computes the state of a log, with the token counts of an agent.
pub(crate) fn fold(log: &[Entry]) -> Result<State, CliError> {
    Ok(State::fold(Arc::new(Memo::new(Bpe::o200k())), log)?)
}

async fn show(store: &impl SessionReader, id: &SessionId, json: bool) -> Result<u8, CliError> {
    let log = store.load(id).await?;
    let state = fold(&log)?;
    let (model, system) = started(&log);
    let items = state.transcript().items();
    if json {
        out!("{}", openai(&model, &system, &state)?);
        return Ok(DONE);
    }
    match state.runs() {
        0 => out!("session {id}: no run yet"),
        runs => {
            let runs = counted(runs, "run");
            stdout::prose(&format!("session {id}: {runs}, model {model}"))?;
        }
    }
    let info = store.head(id).await?;
    if let Some(fork) = info.and_then(|info| info.fork) {
        out!("{}, which shares its first entries", described(&fork));
    }
    let messages = counted(items.len(), "message");
    let tokens = counted(state.transcript().tokens().0, "token");
    stdout::prose(&format!("the model would see {messages}, {tokens}:"))?;
    let rows = items.iter().map(|item| {
        let role = match item.pin {
            Some(_) => "pinned",
            None => item.message.role(),
        };
        [
            item.seq.recall_id(),
            role.to_owned(),
            item.tokens.to_string(),
            preview(&item.message),
        ]
    });
    listing::print_columns([">item", "role", ">tokens", "message"], rows)?;
    Ok(DONE)
}
