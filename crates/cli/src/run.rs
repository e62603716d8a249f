//! `plimsoll run`: settings resolved once, one run driven, its outcome said. The run itself is in
//! the library.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll::config::AgentSettings;
use plimsoll::{AgentOutput, Error, Event, Remote, Session, SessionId, new_session_id};

use crate::agent::{self, Prepared, TEXT_LIMIT, unreadable};
use crate::args::RunArgs;
use crate::ask;
use crate::choice::Said;
use crate::exit::{self, Stop};
use crate::out::{self, out};
use crate::outcome::{code_of, reason_text, stop_of, summary};
use crate::screen::Screen;

/// Runs the command.
pub(crate) async fn run(args: &RunArgs) -> Result<u8, Stop> {
    let task = task(args)?;
    let id = match &args.session {
        Some(id) => SessionId::new(id).map_err(Stop::usage)?,
        None => new_session_id(),
    };
    let said = match args.json || args.quiet {
        true => Said::Nothing,
        false => Said::Everything,
    };
    // Without a task there must be something to go on with.
    let goes_on = task.is_none().then_some(&id);
    let Prepared {
        config,
        builder,
        choice,
        asked,
        mcp,
        ..
    } = agent::prepare(&args.sources, said, goes_on, None).await?;
    let screen = (!args.json && !args.quiet).then(|| Arc::new(Screen::new()));
    let consent = ask::consent(args.yes);
    let gate = ask::gate(consent, screen.clone());
    asked.set(Arc::clone(&gate));
    let mut builder = builder.shared_gate(gate);
    if let Some(screen) = &screen {
        builder = builder.shared_observer(Arc::clone(screen) as Arc<dyn plimsoll::Observer>);
    }
    let lines = Arc::new(Lines::default());
    if args.json {
        builder = builder.shared_observer(Arc::clone(&lines) as Arc<dyn plimsoll::Observer>);
    }
    let agent = builder
        .build()
        .map_err(|error| Stop::usage(config.place(&error)))?;
    let mut session = agent.session(id).await.map_err(|error| stop_of(&error))?;
    if let Some(screen) = &screen {
        screen.say(&agent::headline(config.settings(), &choice, &session));
    }
    let interrupts = tokio::spawn(interrupt(session.remote()));
    let output = drive(&mut session, task.as_deref()).await;
    interrupts.abort();
    mcp.close().await;
    if let Some(screen) = &screen {
        screen.close();
    }
    let output = output.map_err(|error| stop_of(&error))?;
    if let Some(error) = lines.failed() {
        return Err(out::failed(&error));
    }
    close(args, config.settings(), screen.as_deref(), &output)
}

async fn drive(session: &mut Session, task: Option<&str>) -> Result<AgentOutput, Error> {
    match task {
        Some(task) => session.run(task).await,
        None => session.carry_on().await,
    }
}

/// Says how it ended.
fn close(
    args: &RunArgs,
    settings: &AgentSettings,
    screen: Option<&Screen>,
    output: &AgentOutput,
) -> Result<u8, Stop> {
    let code = code_of(&output.reason);
    let answered = matches!(code, exit::DONE | exit::LIMIT);
    if args.json {
        if !answered {
            crate::say(&reason_text(settings, &output.reason));
        }
        return Ok(code);
    }
    // What streamed to a terminal is there already.
    if answered && !screen.is_some_and(Screen::has_streamed) {
        out!("{}", output.text);
    }
    if !answered {
        crate::say(&reason_text(settings, &output.reason));
    }
    if screen.is_some() {
        crate::note(&summary(output));
    }
    if code != exit::DONE && !args.quiet {
        crate::note(&format!(
            "carry on with: plimsoll run --session {}",
            output.session_id
        ));
    }
    Ok(code)
}

/// The first Ctrl-C ends the run cleanly, the second at once.
async fn interrupt(remote: Remote) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    remote.interrupt().await;
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(i32::from(exit::INTERRUPTED));
    }
}

/// The task: an argument, standard input, or none where a session goes on.
fn task(args: &RunArgs) -> Result<Option<String>, Stop> {
    let task = match args.task.as_deref() {
        Some("-") => {
            let mut text = String::new();
            let read = io::stdin()
                .lock()
                .take(TEXT_LIMIT + 1)
                .read_to_string(&mut text);
            read.map_err(|error| {
                Stop::usage(format!(
                    "the task cannot be read from standard input: {}",
                    unreadable(&error)
                ))
            })?;
            if text.len() as u64 > TEXT_LIMIT {
                return Err(Stop::usage(
                    "the task on standard input is larger than 16 MiB; put it in a file and let the agent read it",
                ));
            }
            text
        }
        Some(task) => task.to_owned(),
        None if args.session.is_some() => return Ok(None),
        None => {
            return Err(Stop::usage(
                "no task: say what the agent is to do, as in plimsoll run \"Read README.md and sum it up\"",
            ));
        }
    };
    if task.trim().is_empty() {
        return Err(Stop::usage(
            "the task is empty; say what the agent is to do",
        ));
    }
    Ok(Some(task))
}

/// Events as JSON lines on standard output.
#[derive(Default)]
struct Lines {
    failed: Mutex<Option<io::Error>>,
}

impl Lines {
    fn failed(&self) -> Option<io::Error> {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl plimsoll::Observer for Lines {
    fn see(&self, event: &Event) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some() {
            return;
        }
        let line = serde_json::to_string(event).map_err(io::Error::from);
        let written = line.and_then(|line| out::write(&mut io::stdout().lock(), &(line + "\n")));
        *failed = written.err();
    }
}
