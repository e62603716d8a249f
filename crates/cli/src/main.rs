//! The binary `plimsoll`: parses the arguments, runs a command and returns its exit code.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod stdout;

mod acp;
mod agent;
mod answer_schema;
mod approvals;
mod args;
mod ask;
mod attach;
mod chat;
mod chat_file;
mod compact;
mod completions;
mod config;
mod context_bar;
mod count;
mod diff;
mod doctor;
#[cfg(feature = "restate")]
mod durable;
mod error;
mod event_printer;
mod explain;
mod flags;
mod input;
mod listing;
mod local;
mod mcp;
mod mcp_command;
mod model_choice;
mod model_facts;
mod models;
mod outcome;
mod paths;
mod repair;
mod rescue;
mod resume;
mod run;
mod run_screen;
mod sandbox;
mod session_host;
mod sessions;
mod settings;
mod status;
mod telemetry;
mod terminal;
mod tool_line;
mod trust;
mod usage;
mod view;
mod which_session;
mod write;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Parser;

use crate::args::{Cli, Command};
use crate::error::CliError;
use crate::terminal::{text::clean, wrapped};

fn main() -> ExitCode {
    // Done before anything is started that could look for keys in this process.
    if let Err(error) = plimsoll::process::deny_inspection() {
        note(&format!(
            "other processes may read the keys of this one: {error}"
        ));
    }
    let is_bare = std::env::args_os().len() == 1;
    let cli = if is_bare && io::stdin().is_terminal() && io::stdout().is_terminal() {
        Cli::parse_from(["plimsoll", "chat"])
    } else {
        Cli::parse()
    };
    // The launcher of a sandbox becomes another program, so it sets up no telemetry.
    if let Command::Sandbox(args) = &cli.command {
        return ended(sandbox::run(args));
    }
    let telemetry = telemetry::begin();
    let code = match &cli.command {
        Command::Compact(args) => compact::run(args),
        Command::Count(args) if args.exact => wait_for(count::exact(args)),
        Command::Count(args) => count::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Rescue(args) => wait_for(rescue::run(args)),
        Command::Config(args) => wait_for(config::run(args)),
        Command::Run(args) => wait_for(run::run(args)),
        Command::Chat(args) => wait_for(chat::run(args)),
        Command::Acp(args) => wait_for(acp::run(args)),
        Command::Sessions(args) => wait_for(sessions::run(args)),
        Command::Usage(args) => wait_for(usage::run(args)),
        Command::Model(args) => wait_for(local::run(args)),
        Command::Models(args) => models::run(args),
        Command::Mcp(args) => wait_for(mcp_command::run(args)),
        Command::Doctor(args) => wait_for(doctor::run(args)),
        #[cfg(feature = "restate")]
        Command::Worker(args) => wait_for(durable::worker::run(args)),
        #[cfg(feature = "restate")]
        Command::Send(args) => wait_for(durable::send::run(args)),
        #[cfg(not(feature = "restate"))]
        Command::Worker(_) => Err(CliError::usage(error::NO_WORKERS)),
        Command::Sandbox(args) => sandbox::run(args),
        Command::Completions(args) => completions::completions(args),
        Command::Schema => schema(),
    };
    let code = ended(code);
    // Done last, so that the output above does not wait for a collector.
    if let Some(warning) = telemetry.finish() {
        say(&warning);
    }
    code
}

/// Prints the error that ended a command, and returns the exit code.
fn ended(code: Result<u8, CliError>) -> ExitCode {
    let code = code.unwrap_or_else(|stop| {
        if !stop.text.is_empty() {
            say(&stop.text);
        }
        stop.code
    });
    ExitCode::from(code)
}

/// Prints the JSON Schema of the events of `run --json`.
fn schema() -> Result<u8, CliError> {
    out!("{:#}", plimsoll::events::event_schema());
    Ok(error::DONE)
}

/// Runs an asynchronous command.
fn wait_for(command: impl Future<Output = Result<u8, CliError>>) -> Result<u8, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(CliError::failed)?;
    let code = runtime.block_on(command);
    // A thread may still read a line from the terminal; it must not delay the exit.
    runtime.shutdown_background();
    code
}

/// Waits for Ctrl-C or a termination signal.
async fn asked_to_end() -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Writes a message to standard error, cleaned because it may contain a server's text. On a
/// terminal, it is broken between words.
fn say(text: &str) {
    let text = clean(&format!("plimsoll: {text}"));
    write_note(&wrapped(&text, &console::Term::stderr()));
}

/// Writes a message without the command's name before it. Errors are ignored (standard error may be
/// closed, or its disk full): the command's work and output must not depend on it.
fn note(text: &str) {
    write_note(&clean(text));
}

fn write_note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Locks a mutex. What a panicking thread left behind is used as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
