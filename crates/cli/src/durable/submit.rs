//! `plimsoll run --on`: submits a task to the workers of a server, and shows its run. The run
//! continues if this command ends.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll::config::{self, AgentConfig, Config};
use plimsoll::durable::{
    Approval, EventsRequest, FORMAT, LogFollower, RequestState, Restate, RestateError, RunRequest,
};
use plimsoll::limits::CallKey;
use plimsoll::machine::Outcome;
use plimsoll::model::CallId;
use plimsoll::permissions::Question;
use plimsoll::session::new_session_id;
use plimsoll::store::{OpenQuestion, RunMessage, RunMessageKind};
use plimsoll::{AgentOutput, EndReason, Gate, PermissionMode, SessionId, ToolCall};

use super::server;
use crate::args::RunArgs;
use crate::ask;
use crate::attach::mentions_image;
use crate::error::CliError;
use crate::outcome::code_of;
use crate::run::{on_interrupt, task};
use crate::run_screen::RunScreen;
use crate::settings::Sources;
use crate::terminal::text::lines_of;

/// Maximum number of consecutive failures to reach the server. A request is run only once.
const FAILURES: u32 = 20;
/// The pause before an unreachable server is asked again.
const PAUSE: Duration = Duration::from_millis(300);
/// How long one request waits for news, in milliseconds.
const WAIT_MS: u64 = 10_000;

/// Shows a run and asks its questions.
struct Screen<'a> {
    /// The server's address.
    address: &'a str,
    run: RunScreen,
    /// `None` if nobody can be asked.
    gate: Option<Arc<dyn Gate>>,
}

/// Runs the command.
pub(crate) async fn run(args: &RunArgs, address: &str) -> Result<u8, CliError> {
    let Some(prompt) = task(args)? else {
        return Err(CliError::usage(
            "no task: give one; a run that was started on a server continues by itself",
        ));
    };
    if !args.images.is_empty() || mentions_image(&prompt) {
        return Err(CliError::usage(
            "--on accepts no images; put them into a place that the workers can read, and name \
             them without an @",
        ));
    }
    if args.json_schema.is_some() {
        return Err(CliError::usage(
            "--on does not support --json-schema, because workers do not check answers; leave it \
             out",
        ));
    }
    let id = match args.session.named()? {
        Some(id) => id,
        None => new_session_id(),
    };
    let config = limits_only(&args.sources)?;
    let key = new_session_id().to_string();
    let request = RunRequest {
        format: FORMAT,
        key: Some(key.clone()),
        prompt,
        limits: config.settings().builder.limits,
    };
    let server = server(address)?;
    let session = id.as_str();
    let before = server.status(session).await?.entries;
    let invocation = patiently(async || server.submit(session, &request).await).await?;
    let screen = Screen::new(args, address)?;
    let headline = lines_of(&[format!("on {address}"), format!("session {session}")]);
    let terminal = &screen.run.terminal;
    terminal.note(&terminal.dim(&headline));
    let interrupts = tokio::spawn(on_interrupt(end(server.clone(), id.clone())));
    let outcome = follow(&server, session, (&key, before), &invocation, &screen).await;
    screen.run.rest();
    interrupts.abort();
    let output = AgentOutput::new(id, outcome?);
    screen.run.check()?;
    let answer = Some(output.text.as_str());
    screen.run.close(config.settings(), &output, answer)?;
    let has_more = output.reason.is_limit() || output.reason == EndReason::Interrupted;
    if has_more && !screen.run.is_quiet {
        let id = &output.session_id;
        note!("continue with: plimsoll run --on {address} --session {id} \"Go on\"");
    }
    Ok(code_of(&output.reason))
}

/// Asks a server, again and again while it is unreachable.
async fn patiently<T>(ask: impl AsyncFn() -> Result<T, RestateError>) -> Result<T, RestateError> {
    let mut failures = 0;
    loop {
        match ask().await {
            Err(RestateError::Unreachable { .. }) if failures < FAILURES => failures += 1,
            answer => return answer,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Follows the run of a request through its session's log, which had so many entries before.
async fn follow(
    server: &Restate,
    session: &str,
    (request, before): (&str, u64),
    invocation: &str,
    screen: &Screen<'_>,
) -> Result<Outcome, CliError> {
    let mut log = LogFollower::new(session, request);
    let mut asked = HashSet::new();
    let mut request = EventsRequest {
        after: before,
        wait_ms: WAIT_MS,
        questions: 0,
    };
    loop {
        let reply = patiently(async || server.events(session, &request).await).await?;
        let is_quiet = reply.entries.is_empty();
        for (number, entry) in &reply.entries {
            request.after = *number;
            for event in log.see(entry) {
                screen.run.observer.see(&event);
            }
        }
        request.questions = reply.questions.len();
        for question in reply.questions {
            if asked.insert(question.key.clone()) {
                screen.ask(server, session, question).await?;
            }
        }
        if let Some(outcome) = log.outcome() {
            return Ok(outcome.clone());
        }
        if is_quiet && request.wait_ms == 0 {
            return Err(CliError::failed(format!(
                "the run of session {session} has ended, but its log contains no outcome: a hook \
                 of the worker may have refused it"
            )));
        }
        if is_quiet && has_ended(server, invocation).await? {
            request.wait_ms = 0;
        }
    }
}

/// Checks whether the worker has ended the request, successfully or not.
async fn has_ended(server: &Restate, invocation: &str) -> Result<bool, CliError> {
    match server.output(invocation).await {
        Ok(answered) => Ok(matches!(answered, RequestState::Ended(_))),
        Err(RestateError::Unreachable { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl<'a> Screen<'a> {
    fn new(args: &RunArgs, address: &'a str) -> Result<Self, CliError> {
        let root = std::env::current_dir()?;
        let run = RunScreen::new(args, &root);
        let gate = match (args.yes, ask::can_ask()) {
            (true, _) => Some(run.gate(PermissionMode::Yes, &root)?),
            (false, true) => Some(run.gate(PermissionMode::Ask, &root)?),
            (false, false) => None,
        };
        Ok(Self { address, run, gate })
    }

    /// Asks the user, or prints the command that answers if there is no terminal.
    async fn ask(
        &self,
        server: &Restate,
        session: &str,
        open: OpenQuestion,
    ) -> Result<(), CliError> {
        let Some(gate) = &self.gate else {
            let OpenQuestion { tool, key, .. } = open;
            note!(
                "`{tool}` waits for a yes or no: plimsoll send --on {} {session} --approve {key}, \
                 or --deny {key}",
                self.address
            );
            return Ok(());
        };
        let question = Question {
            call: ToolCall {
                id: CallId(open.key.clone()),
                name: open.tool,
                arguments: open.arguments,
                opaque: None,
            },
            asks_hook: false,
            asks_gate: true,
            key: CallKey::default(),
            is_protected: open.is_protected,
        };
        let answer = gate.decide(&question).await;
        let key = open.key;
        match server.approve(session, &Approval { key, answer }).await {
            // The run has ended in the meantime.
            Ok(()) | Err(RestateError::Refused { status: 404, .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Ends a run on the workers of a server.
async fn end(server: Restate, id: SessionId) {
    let message = RunMessage {
        id: new_session_id().to_string(),
        kind: RunMessageKind::Interrupt,
        text: String::new(),
    };
    if let Err(error) = server.post(id.as_str(), &message).await {
        say!("{error}");
    }
}

/// Returns the settings of the flags only, without files.
fn limits_only(sources: &Sources) -> Result<AgentConfig, CliError> {
    let other = sources
        .flags
        .entries()
        .find(|flag| config::key(&flag.key).is_none_or(|key| !key.is_limit()));
    if let Some(flag) = other {
        return Err(CliError::usage(format!(
            "{} is a setting of the worker: give it to `plimsoll worker`; with --on, `run` \
             accepts only limits",
            flag.flag
        )));
    }
    let over = sources.flags.overrides();
    Ok(Config::default().resolve(None, &over)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_every_limit_and_no_other_setting() {
        let mut sources = Sources::default();
        for (key, text) in [("max_memory", "1000"), ("max_identical_tool_calls", "4")] {
            sources.flags.set("--set x", key, text);
        }
        let config = limits_only(&sources).unwrap();
        let limits = &config.settings().builder.limits;
        assert_eq!(limits.max_identical_tool_calls, Some(4));
        sources
            .flags
            .set("--max-parallel-tools", "max_parallel_tools", "3");
        let error = limits_only(&sources).unwrap_err().to_string();
        assert!(
            error.contains("--max-parallel-tools is a setting of the worker"),
            "{error}"
        );
    }
}
