//! `plimsoll run --on`: submits a task to the workers of a server, and shows its run. The run
//! continues if this command ends.

use std::collections::HashSet;
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
use plimsoll::store::{OpenQuestion, RunMessageKind};
use plimsoll::{AgentOutput, EndReason, PermissionMode, ToolCall};

use super::{message, server};
use crate::args::RunArgs;
use crate::ask;
use crate::attach::mentions_image;
use crate::error::CliError;
use crate::paths;
use crate::run::{interruptible, task};
use crate::run_screen::RunScreen;
use crate::settings::Sources;
use crate::terminal::text::lines_of;

/// Maximum number of consecutive failures to reach the server. A request is run only once.
const FAILURES: u32 = 20;
/// The pause before an unreachable server is asked again.
const PAUSE: Duration = Duration::from_millis(300);
/// How long one request waits for news, in milliseconds.
const WAIT_MS: u64 = 10_000;

/// A session on a server, and the screen that shows its run and asks its questions.
struct ServerRun<'a> {
    server: Restate,
    address: &'a str,
    session: &'a str,
    screen: RunScreen,
    /// Whether questions are answered here.
    is_answered: bool,
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
    let mode = match args.sources.flags.consents() {
        true => PermissionMode::Yes,
        false => PermissionMode::Ask,
    };
    let run = ServerRun {
        server,
        address,
        session,
        screen: RunScreen::new(args, &paths::here()?, mode, None)?,
        is_answered: mode == PermissionMode::Yes || ask::can_ask(),
    };
    let headline = [format!("on {address}"), format!("session {session}")];
    run.screen.begin(&lines_of(&headline));
    let end = end(run.server.clone(), session.to_owned());
    let outcome = interruptible(run.follow(&key, before, &invocation), end).await;
    run.screen.rest();
    let output = AgentOutput::new(id.clone(), outcome?);
    let has_more = output.reason.is_limit() || output.reason == EndReason::Interrupted;
    let hint = has_more
        .then(|| format!("continue with: plimsoll run --on {address} --session {id} \"Go on\""));
    run.screen.end(config.settings(), &output, hint)
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

impl ServerRun<'_> {
    /// Follows the run of a request through the session's log, which had so many entries before.
    async fn follow(
        &self,
        request: &str,
        before: u64,
        invocation: &str,
    ) -> Result<Outcome, CliError> {
        let mut log = LogFollower::new(self.session, request);
        let mut asked = HashSet::new();
        let mut request = EventsRequest {
            after: before,
            wait_ms: WAIT_MS,
            questions: 0,
        };
        loop {
            let events = async || self.server.events(self.session, &request).await;
            let reply = patiently(events).await?;
            let is_quiet = reply.entries.is_empty();
            for (number, entry) in &reply.entries {
                request.after = *number;
                for event in log.see(entry) {
                    self.screen.user.observer.see(&event);
                }
            }
            request.questions = reply.questions.len();
            for question in reply.questions {
                if asked.insert(question.key.clone()) {
                    self.ask(question).await?;
                }
            }
            if let Some(outcome) = log.outcome() {
                return Ok(outcome.clone());
            }
            if is_quiet && request.wait_ms == 0 {
                return Err(CliError::failed(format!(
                    "the run of session {} has ended, but its log contains no outcome: a hook of the \
                     worker may have refused it",
                    self.session
                )));
            }
            if is_quiet && self.has_ended(invocation).await? {
                request.wait_ms = 0;
            }
        }
    }

    /// Checks whether the worker has ended the request, successfully or not.
    async fn has_ended(&self, invocation: &str) -> Result<bool, CliError> {
        match self.server.output(invocation).await {
            Ok(answered) => Ok(matches!(answered, RequestState::Ended(_))),
            Err(RestateError::Unreachable { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks the user, or prints the command that answers if there is no terminal.
    async fn ask(&self, open: OpenQuestion) -> Result<(), CliError> {
        let (key, session) = (open.key, self.session);
        if !self.is_answered {
            note!(
                "`{}` waits for a yes or no: plimsoll send --on {} {session} --approve {key}, or \
                 --deny {key}",
                open.tool,
                self.address
            );
            return Ok(());
        }
        let question = Question {
            call: ToolCall {
                id: CallId(key.clone()),
                name: open.tool,
                arguments: open.arguments,
                opaque: None,
            },
            asks_hook: false,
            asks_gate: true,
            key: CallKey::default(),
            is_protected: open.is_protected,
        };
        let answer = self.screen.user.gate.decide(&question).await;
        match self
            .server
            .approve(session, &Approval { key, answer })
            .await
        {
            // The run has ended in the meantime.
            Ok(()) | Err(RestateError::Refused { status: 404, .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Ends a run on the workers of a server.
async fn end(server: Restate, session: String) {
    let message = message(RunMessageKind::Interrupt, "");
    if let Err(error) = server.post(&session, &message).await {
        say!("{error}");
    }
}

/// Returns the settings of the flags only, without files.
fn limits_only(sources: &Sources) -> Result<AgentConfig, CliError> {
    let other = sources
        .flags
        .entries()
        .filter(|flag| flag.flag != "--yes")
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
