//! `plimsoll send`: sends messages to a run on a server's workers, ends it, answers its questions,
//! or shows its status.

use std::time::Duration;

use clap::Args;
use plimsoll::SessionId;
use plimsoll::durable::{Approval, EventsRequest, Restate, SessionStatus, message_key};
use plimsoll::machine::Entry;
use plimsoll::permissions::Answer;
use plimsoll::store::RunMessageKind;
use tokio::time::Instant;

use super::{message, server};
use crate::ask::{self, Reply};
use crate::error::{CliError, DONE, FAILED};
use crate::terminal::text::{clean, counted, one_line};

/// Maximum wait until a message is delivered. It is delivered after the running tools have
/// finished.
const TAKEN: Duration = Duration::from_secs(30);
/// How long one request waits for news, in milliseconds.
const WAIT_MS: u64 = 5_000;

/// The arguments of `plimsoll send`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/send.txt").trim_ascii_end())]
pub(crate) struct SendArgs {
    /// The session
    session: String,
    /// What to say to its run, before the next model call [default: nothing; show how it stands]
    text: Option<String>,
    /// The server, as in restate://127.0.0.1:8080
    #[arg(long, value_name = "URL")]
    on: String,
    /// Say it when the run has its answer
    #[arg(long, requires = "text")]
    later: bool,
    /// End the run; the session can be carried on
    #[arg(long, conflicts_with_all = ["text", "approve", "deny"])]
    interrupt: bool,
    /// Allow a call that waits for a yes or no
    #[arg(long, value_name = "CALL", conflicts_with_all = ["text", "deny"])]
    approve: Option<String>,
    /// Do not allow it
    #[arg(long, value_name = "CALL", conflicts_with = "text")]
    deny: Option<String>,
    /// With --deny: the reason, for the model to read
    #[arg(long, value_name = "TEXT", requires = "deny")]
    why: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(args: &SendArgs) -> Result<u8, CliError> {
    let id = SessionId::new(args.session.as_str())?;
    let server = server(&args.on)?;
    let session = id.as_str();
    if args.interrupt {
        let end = message(RunMessageKind::Interrupt, "");
        server.post(session, &end).await?;
        return Ok(DONE);
    }
    if let Some(approval) = approval(args) {
        server.approve(session, &approval).await?;
        return Ok(DONE);
    }
    let status = server.status(session).await?;
    let Some(text) = &args.text else {
        return show(&id, &status);
    };
    let kind = match args.later {
        true => RunMessageKind::FollowUp,
        false => RunMessageKind::Steer,
    };
    let message = message(kind, text);
    server.post(session, &message).await?;
    let run = status.run.unwrap_or_default();
    taken(
        &server,
        &id,
        status.entries,
        &message_key(&run, &message.id),
    )
    .await
}

fn approval(args: &SendArgs) -> Option<Approval> {
    if let Some(key) = args.approve.clone() {
        let answer = Answer::Allow;
        return Some(Approval { key, answer });
    }
    let key = args.deny.clone()?;
    let answer = ask::answer("", Reply::No(args.why.clone()));
    Some(Approval { key, answer })
}

fn show(id: &SessionId, status: &SessionStatus) -> Result<u8, CliError> {
    let run = match status.run {
        Some(_) => "a run is in progress",
        None => "there is no current run",
    };
    out!("session {id}: {run}, {}", counted(status.entries, "entry"));
    for question in &status.questions {
        let arguments = one_line(&clean(&question.arguments));
        let tool = clean(&question.tool);
        out!("waits for a yes or no: {} {tool} {arguments}", question.key);
    }
    Ok(DONE)
}

/// Waits until the run has received a message, or has ended without it.
async fn taken(server: &Restate, id: &SessionId, after: u64, key: &str) -> Result<u8, CliError> {
    let until = Instant::now() + TAKEN;
    let mut request = EventsRequest {
        after,
        wait_ms: WAIT_MS,
        questions: 0,
    };
    while Instant::now() < until {
        let reply = server.events(id.as_str(), &request).await?;
        request.questions = reply.questions.len();
        for (number, entry) in reply.entries {
            request.after = number;
            match entry {
                Entry::Accepted { key: taken } if taken == key => return Ok(DONE),
                Entry::RunEnded { .. } => {
                    crate::say("not delivered: the run had ended");
                    return Ok(FAILED);
                }
                _ => {}
            }
        }
    }
    crate::note("the message waits until a worker continues the run");
    Ok(DONE)
}
