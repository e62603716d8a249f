//! `plimsoll run`: resolves the settings, drives one run and reports its outcome. The run itself is
//! in the library.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use plimsoll::config::AgentSettings;
use plimsoll::store::SessionReader;
use plimsoll::{AgentOutput, EndReason, Error, Observer, Part, Remote, Session, SessionEvent};

use crate::agent::{self, ReadyAgent, TEXT_LIMIT, unreadable};
use crate::answer_schema::AnswerSchema;
use crate::approvals::Approvals;
use crate::args::RunArgs;
use crate::ask;
use crate::attach::{Recipient, image};
use crate::event_printer::EventPrinter;
use crate::exit::{self, Stop};
use crate::lock;
use crate::out;
use crate::outcome::{code_of, reason_text, stop_of, summary};
use crate::paths;
use crate::preview::Previews;
use crate::resume;
use crate::retention;
use crate::terminal::style::colours;
use crate::terminal::{Terminal, Verbosity};
use crate::which_session;

/// Runs the command.
pub(crate) async fn run(args: &RunArgs) -> Result<u8, Stop> {
    #[cfg(feature = "restate")]
    if let Some(address) = &args.on {
        return crate::durable::on::run(args, address).await;
    }
    let task = task(args)?;
    let images: Result<Vec<Part>, Stop> = args.images.iter().map(|path| image(path)).collect();
    let images = images?;
    let schema = args.json_schema.as_deref().map(AnswerSchema::read);
    let schema = schema.transpose()?;
    let said = Verbosity::of(args.json || args.quiet);
    let store = agent::store().await?;
    let id = which_session::of_run(&store, &args.session).await?;
    let mut sources = args.sources.clone();
    sources.consent(args.yes);
    if store.info(&id).await?.is_some() {
        resume::restore(&store, &id, &mut sources).await?;
    } else if task.is_none() {
        return Err(Stop::usage(format!(
            "there is no session {id}; `plimsoll sessions list` lists all"
        )));
    }
    let mut prepared = agent::prepare(&sources, said, store.clone(), None).await?;
    let settings = prepared.config.settings();
    let root = &settings.root;
    let task = task.map(|task| -> Result<_, Stop> {
        let recipient = Recipient::new(&prepared.choice, root);
        let mut parts = recipient.message(task)?;
        recipient.check(&images)?;
        parts.extend(images);
        parts.extend(schema.iter().map(|schema| Part::text(schema.instruction())));
        Ok(parts)
    });
    let task = task.transpose()?;
    let terminal = Arc::new(match said {
        Verbosity::Everything => Terminal::direct(colours()),
        Verbosity::Answers => Terminal::plain(said),
    });
    let previews = Arc::new(Previews::new(root));
    let approvals = Approvals::open(&paths::data()?, root, Arc::clone(&previews));
    let gate = ask::gate(
        settings.permission_mode(),
        Arc::clone(&terminal),
        Arc::clone(&previews),
        approvals,
    );
    let mut observers: Vec<Arc<dyn Observer>> = Vec::new();
    if said == Verbosity::Everything {
        let printer = EventPrinter::new(Arc::clone(&terminal), None, previews);
        observers.push(Arc::new(printer));
    }
    let lines = Arc::new(JsonLines::default());
    if args.json {
        observers.push(Arc::clone(&lines) as Arc<dyn Observer>);
    }
    if let Some(schema) = schema.clone() {
        let check = move |answer: String| schema.check(&answer).map(drop);
        prepared.builder = prepared.builder.check_answer(check);
    }
    let ready = prepared.build(gate, observers)?;
    let mut session = ready.session(id.clone()).await?;
    let ReadyAgent {
        config,
        choice,
        mcp,
        ..
    } = ready;
    resume::save(&store, &id, &sources, &choice, session.cost()).await?;
    let headline = agent::headline(config.settings(), &choice, &session);
    terminal.note(&terminal.dim(&headline));
    let interrupts = tokio::spawn(interrupt(session.remote()));
    let output = drive(&mut session, task).await;
    mcp.close().await;
    terminal.status(None);
    terminal.flush();
    interrupts.abort();
    // The run keeps its outcome even if this fails.
    if let Err(stop) = resume::save(&store, &id, &sources, &choice, session.cost()).await {
        say!("{stop}");
    }
    let output = output.map_err(|error| stop_of(&error))?;
    if let Some(error) = lines.failed() {
        return Err(out::failed(&error));
    }
    retention::apply(&store, config.retention(), said == Verbosity::Answers).await;
    let answer = match &schema {
        Some(schema) => schema.check(&output.text),
        None => Ok(output.text.as_str()),
    };
    close(args, config.settings(), &terminal, &output, answer)
}

async fn drive(session: &mut Session, task: Option<Vec<Part>>) -> Result<AgentOutput, Error> {
    let output = match task {
        Some(task) => session.run_parts(task).await,
        None => session.carry_on().await,
    };
    output.or_else(Error::into_output)
}

/// Reports the outcome. `answer` is the printed answer, or the reason why it does not match the
/// request.
fn close(
    args: &RunArgs,
    settings: &AgentSettings,
    terminal: &Terminal,
    output: &AgentOutput,
    answer: Result<&str, String>,
) -> Result<u8, Stop> {
    let mut code = code_of(&output.reason);
    let answered = matches!(code, exit::DONE | exit::LIMIT);
    let answer = match answer {
        Ok(answer) => Some(answer),
        Err(why) => {
            if code == exit::DONE {
                code = exit::FAILED;
                say!("the answer does not match --json-schema: {why}");
            }
            None
        }
    };
    if args.json {
        if !answered {
            crate::say(&reason_text(settings, &output.reason));
        }
        return Ok(code);
    }
    // A streamed answer is on the terminal already, unless the terminal was too slow.
    if answered
        && let Some(answer) = answer
        && (!terminal.is_live() || terminal.is_incomplete())
    {
        out!("{answer}");
    }
    if !answered {
        crate::say(&reason_text(settings, &output.reason));
    }
    if !args.quiet {
        terminal.note(&terminal.dim(&summary(output)));
        terminal.flush();
    }
    if let (Some(hint), false) = (hint(output), args.quiet) {
        crate::note(&hint);
    }
    Ok(code)
}

/// Returns a hint how to continue a session whose run ended early. `None` if the same command would
/// end in the same way.
fn hint(output: &AgentOutput) -> Option<String> {
    let again = format!("plimsoll run --session {}", output.session_id);
    match &output.reason {
        EndReason::Interrupted => Some(format!("continue with: {again}")),
        reason if reason.is_limit() => Some(format!("continue with: {again}")),
        EndReason::Failed { .. } if code_of(&output.reason) == exit::MODEL => Some(format!(
            "try again with: {again}\nor on another model: add --model PROVIDER/NAME"
        )),
        _ => None,
    }
}

/// Ends the run cleanly on the first Ctrl-C, and at once on the second.
async fn interrupt(remote: Remote) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    remote.interrupt().await;
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(i32::from(exit::INTERRUPTED));
    }
}

/// Returns the task from the argument or standard input. `None` if a session is continued without
/// one.
pub(crate) fn task(args: &RunArgs) -> Result<Option<String>, Stop> {
    let task = match args.task.as_deref() {
        Some("-") => {
            let text = io::read_to_string(io::stdin().lock().take(TEXT_LIMIT + 1));
            let text = text.map_err(|error| {
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
        None if args.session.is_made() => return Ok(None),
        None => {
            return Err(Stop::usage(
                "no task: give one, as in plimsoll run \"Read README.md and sum it up\"",
            ));
        }
    };
    if task.trim().is_empty() {
        return Err(Stop::usage(
            "the task is empty; describe what the agent should do",
        ));
    }
    Ok(Some(task))
}

/// Prints events as JSON lines on standard output.
#[derive(Default)]
pub(crate) struct JsonLines {
    failed: Mutex<Option<io::Error>>,
}

impl JsonLines {
    pub(crate) fn failed(&self) -> Option<io::Error> {
        lock(&self.failed).take()
    }
}

impl Observer for JsonLines {
    fn see(&self, seen: &SessionEvent) {
        let mut failed = lock(&self.failed);
        if failed.is_some() {
            return;
        }
        let line = serde_json::to_string(seen).map_err(io::Error::from);
        let written = line.and_then(|line| out::write(&mut io::stdout().lock(), &(line + "\n")));
        *failed = written.err();
    }
}
