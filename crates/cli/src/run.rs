//! `plimsoll run`: resolves the settings, drives one run and reports its outcome. The run itself is
//! in the library.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use plimsoll::session::run_records;
use plimsoll::store::SqliteStore;
use plimsoll::{AgentOutput, EndReason, Part, SessionId, SessionStore};

use crate::agent;
use crate::answer_schema::AnswerSchema;
use crate::args::RunArgs;
use crate::attach::image;
use crate::error::{self, CliError};
use crate::input;
use crate::outcome::code_of;
use crate::resume;
use crate::run_screen::RunScreen;
use crate::session_host::SessionHost;
use crate::sessions::open_store;
use crate::which_session;

/// Maximum size of a task, in bytes. Catches mistakes such as the log of a year.
const MAX_TASK: usize = 16 * 1024 * 1024;

/// Runs the command.
pub(crate) async fn run(args: &RunArgs) -> Result<u8, CliError> {
    #[cfg(feature = "restate")]
    if let Some(address) = &args.on {
        return crate::durable::submit::run(args, address).await;
    }
    #[cfg(not(feature = "restate"))]
    if args.on.is_some() {
        return Err(CliError::usage(error::NO_WORKERS));
    }
    let task = task(args)?;
    let images: Result<Vec<Part>, CliError> = args.images.iter().map(|path| image(path)).collect();
    let images = images?;
    let schema = args.json_schema.as_deref().map(AnswerSchema::read);
    let schema = schema.transpose()?;
    let store = Arc::new(open_store::local().await?);
    let id = which_session::of_run(&store, &args.session).await?;
    let mut sources = args.sources.clone();
    if task.is_none() {
        is_unfinished(&store, &id).await?;
    }
    resume::restore(&store, &id, &mut sources).await?;
    let config = agent::resolve(&sources, args.is_quiet()).await?;
    let settings = config.settings();
    let mode = settings.permission_mode();
    let screen = RunScreen::new(args, &settings.root, mode, schema.clone())?;
    let (user, is_quiet) = (screen.user.clone(), args.is_quiet());
    let mut host = SessionHost::open(config, sources, user, is_quiet, store, id).await?;
    let recipient = host.recipient();
    let task = task.map(|task| -> Result<_, CliError> {
        let mut parts = recipient.message(task)?;
        recipient.check(&images)?;
        parts.extend(images);
        parts.extend(schema.iter().map(|schema| Part::text(schema.instruction())));
        Ok(parts)
    });
    let task = task.transpose()?;
    screen.begin(&host.headline());
    let remote = host.session.remote();
    let end = async move {
        remote.interrupt().await;
    };
    let output = interruptible(host.run(task), end).await;
    screen.rest();
    let settings = host.ready.config.settings();
    let ended = output.and_then(|output| screen.end(settings, &output, hint(&output)));
    host.close(args.is_quiet()).await;
    ended
}

/// Checks that the last run of a session can be continued without a task.
async fn is_unfinished(store: &SqliteStore, id: &SessionId) -> Result<(), CliError> {
    let id = which_session::known(store, id.as_str()).await?;
    let records = run_records(id.as_str(), store.load(&id).await?);
    let last = records.iter().rev().find(|record| !record.rolled_back);
    match last.and_then(|last| last.outcome.as_ref()) {
        Some(EndReason::Answered) => Err(CliError::usage(format!(
            "the last run of session {id} was answered; give a task to go on"
        ))),
        _ => Ok(()),
    }
}

/// Returns a hint how to continue a session whose run ended early. `None` if the same command would
/// end in the same way.
fn hint(output: &AgentOutput) -> Option<String> {
    let again = format!("plimsoll run --session {}", output.session_id);
    match &output.reason {
        EndReason::Interrupted => Some(format!("continue with: {again}")),
        _ if output.rolled_back => Some(format!(
            "try again with a higher limit: {again} \"the task\""
        )),
        reason if reason.is_limit() => Some(format!("continue with: {again}")),
        EndReason::Failed { .. } if code_of(&output.reason) == error::MODEL => Some(format!(
            "try again with: {again}\nor on another model: add --model PROVIDER/NAME"
        )),
        _ => None,
    }
}

/// Does some work. The first Ctrl-C ends it cleanly, and the second one ends the process at once.
pub(crate) async fn interruptible<T>(
    work: impl Future<Output = T>,
    end: impl Future<Output = ()> + Send + 'static,
) -> T {
    let interrupts = tokio::spawn(async {
        let pressed = async || tokio::signal::ctrl_c().await.is_ok();
        if !pressed().await {
            return;
        }
        let again = async {
            if pressed().await {
                std::process::exit(i32::from(error::INTERRUPTED));
            }
        };
        tokio::join!(end, again);
    });
    let output = work.await;
    interrupts.abort();
    output
}

/// Returns the task from the argument or standard input. `None` if a session is continued without
/// one.
pub(crate) fn task(args: &RunArgs) -> Result<Option<String>, CliError> {
    let task = match args.task.as_deref() {
        Some("-") => piped()?,
        Some(task) if task.trim().is_empty() || io::stdin().is_terminal() => task.to_owned(),
        Some(task) => match piped()? {
            data if data.trim().is_empty() => task.to_owned(),
            data => format!("{task}\n\n{data}"),
        },
        None if args.session.is_made() => return Ok(None),
        None => {
            return Err(CliError::usage(
                "no task: give one, as in plimsoll run \"Read README.md and sum it up\"",
            ));
        }
    };
    if task.trim().is_empty() {
        return Err(CliError::usage(
            "the task is empty; describe what the agent should do",
        ));
    }
    Ok(Some(task))
}

/// Reads standard input to its end. Says so if that takes a moment, because a pipe that nobody
/// closes looks like a program that hangs.
fn piped() -> Result<String, CliError> {
    let (done, wait) = mpsc::channel::<()>();
    thread::spawn(move || {
        if wait.recv_timeout(Duration::from_secs(2)) == Err(RecvTimeoutError::Timeout) {
            say!("reading standard input to its end (without input: add < /dev/null)");
        }
    });
    let text = input::whole(input::open(None)?)?;
    drop(done);
    if text.len() > MAX_TASK {
        return Err(CliError::usage(
            "standard input is larger than 16 MiB; put it in a file and let the agent read it",
        ));
    }
    Ok(text)
}
