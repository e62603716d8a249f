//! `plimsoll sessions import`: imports exported sessions, or creates one from a session or chat of
//! another client. Nothing is run; `plimsoll run --session` continues it with any model.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use plimsoll::foreign::{self, Target};
use plimsoll::logs::{Agent, SessionLog};
use plimsoll::machine::{Entry, LOG_FORMAT, State};
use plimsoll::store::{Export, SqliteStore};
use plimsoll::tokens::Chars4;
use plimsoll::{SessionId, SessionStore};

use crate::chat_file;
use crate::error::{CliError, DONE};
use crate::input::{self, InputChat};
use crate::terminal::text::counted;
use crate::which_session::new_name;

/// The arguments of `plimsoll sessions import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Output of `plimsoll sessions export`, a session log of another agent, or a chat as `plimsoll
    /// repair` reads it; `-` is standard input
    #[arg(required_unless_present = "from")]
    file: Option<PathBuf>,
    /// Import the newest session of this agent: claude-code, codex, opencode, pi or gemini
    #[arg(long, value_name = "AGENT", value_parser = crate::rescue::agent, conflicts_with = "file")]
    from: Option<Agent>,
    /// Name of the new session [default: the name in an export, else generated]
    #[arg(long, value_name = "NEW")]
    to: Option<String>,
    /// The protocol [default: detected]
    #[arg(long, value_name = "NAME", value_parser = Target::PROTOCOLS)]
    protocol: Option<String>,
    /// Remove all thinking, for when the provider refuses a signature
    #[arg(long)]
    drop_thinking: bool,
}

/// Runs the command. The new session's name goes to standard output, the repairs to standard error.
pub(crate) async fn run(store: &SqliteStore, args: &ImportArgs) -> Result<u8, CliError> {
    let mut input = match log(args)? {
        Some(log) => InputChat::of_log(log),
        None => {
            let text = input::whole(input::open(args.file.as_deref())?)?;
            if Export::is_one(&text) {
                return exported(store, args, &text).await;
            }
            InputChat::of_body(text)
        }
    };
    let before = std::mem::take(&mut input.repairs);
    let (chat, target) = chat_file::read(&mut input, None, args.protocol.as_deref())?;
    let reasoning = chat_file::reasoning(args.drop_thinking);
    let (messages, more) = foreign::import(chat, &target, reasoning).map_err(chat_file::unread)?;
    let repairs = [before, more].concat();
    if messages.is_empty() {
        return Err(CliError::failed("there is no message in it"));
    }
    let id = new_name(args.to.as_deref())?;
    let lease = store.acquire(&id).await?;
    if store.head(&id).await?.is_some() {
        return Err(CliError::usage(format!(
            "there is a session {id} already, so nothing was imported; give another name (--to)"
        )));
    }
    let count = messages.len();
    let mut log = vec![Entry::Opened { format: LOG_FORMAT }];
    log.extend(messages.into_iter().map(|message| Entry::Message {
        message: Arc::new(message),
        queued: None,
    }));
    store.append(&lease, &log).await?;
    for one in &repairs {
        say!("repaired: {one}");
    }
    out!("{id}");
    note!(
        "{}; continue with: plimsoll run --session {id} --model PROVIDER/NAME \"...\"",
        counted(count, "message")
    );
    Ok(DONE)
}

/// Reads the session log of another agent. Returns `None` if the file is something else.
fn log(args: &ImportArgs) -> Result<Option<SessionLog>, CliError> {
    let log = match &args.file {
        None => Some(crate::rescue::newest(args.from)?),
        Some(path) => input::session_log(path)?,
    };
    Ok(log.map(|log| {
        let mut log = match args.drop_thinking {
            true => log.before_encrypted(),
            false => log,
        };
        // The instructions mention tools of the other agent.
        log.instructions = None;
        log
    }))
}

/// Imports an export of Plimsoll. The sessions are restored unchanged.
async fn exported(store: &SqliteStore, args: &ImportArgs, text: &str) -> Result<u8, CliError> {
    if args.protocol.is_some() || args.drop_thinking {
        return Err(CliError::usage(
            "an export is imported unchanged; leave out --protocol and --drop-thinking",
        ));
    }
    let mut export = Export::parse(text)?;
    if let Some(to) = args.to.as_deref() {
        match export.sessions_mut() {
            [only] => only.id = SessionId::new(to)?,
            many => {
                return Err(CliError::usage(format!(
                    "--to names one session, but the file contains {}; leave it out",
                    many.len()
                )));
            }
        }
    }
    let (mut ids, mut entries) = (Vec::new(), 0);
    for session in export.sessions() {
        // A session must be continuable. The tokens do not matter, so the fastest counter is used.
        let state = State::fold(Arc::new(Chars4), session.entries());
        state.map(drop).map_err(|error| {
            let cure = "the export is incomplete; export it again";
            CliError::failed(format!("session {}: {error}; {cure}", session.id))
        })?;
        ids.push(session.id.clone());
        entries += session.entries().len() as u64;
    }
    store.import(export).await?;
    for id in &ids {
        out!("{id}");
    }
    let text = match ids.as_slice() {
        [id] => format!("continue with: plimsoll run --session {id} \"...\""),
        _ => counted(ids.len(), "session"),
    };
    note!("{}; {text}", counted(entries, "entry"));
    Ok(DONE)
}
