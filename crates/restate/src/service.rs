//! The virtual object: a handler that runs, one at a time for each session, and handlers that reach into the
//! run from outside. What a run does is in `core`.

use std::time::Duration;

use plimsoll_core::{
    Agent, AgentLoopConfig, AgentOutput, Error, JournaledRun, SessionId, StoreError,
    refuse_journaled,
};
use plimsoll_store::{PostgresStore, RunMessage, RunMessageKind};
use restate_sdk::prelude::*;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::journal::RestateJournal;
use crate::mailbox::{Arrivals, Mailbox};
use crate::protocol::{
    Approval, EventsReply, EventsRequest, FORMAT, Message, RunReply, RunRequest, SessionStatus,
};
use crate::shown::shown;

/// The key of the state that names the request whose run is under way.
const RUN: &str = "run";
/// How long `events` waits, at most, whatever it is asked for.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// Between two looks at the log.
const LOOK: Duration = Duration::from_millis(200);
/// The size of one answer of `events` that gets no further entry.
const ENOUGH: usize = 1024 * 1024;

/// Sessions as a virtual object.
pub(crate) struct Sessions {
    pub(crate) agent: Agent,
    pub(crate) store: PostgresStore,
    pub(crate) arrivals: Arrivals,
    /// Cancelled when the worker stops.
    pub(crate) stop: CancellationToken,
}

// A step may take as long as a model, a tool or a person: Restate must not take the run away meanwhile.
#[restate_sdk::object(
    name = "plimsoll",
    inactivity_timeout = "30 days",
    abort_timeout = "1 day",
    idempotency_retention = "7 days",
    // A database may be away for days.
    invocation_retry_policy(
        initial_interval = "200ms",
        factor = 2.0,
        max_interval = "10s",
        max_attempts = 100000,
        on_max_attempts = "pause"
    )
)]
impl Sessions {
    /// Runs a request to its end. A request with a key is run once.
    #[handler]
    async fn run(
        &self,
        ctx: ObjectContext<'_>,
        Json(request): Json<RunRequest>,
    ) -> HandlerResult<Json<RunReply>> {
        if request.format > FORMAT {
            return Err(refused(
                426,
                format!(
                    "the request has format {}, and this worker reads up to {FORMAT}; update the worker",
                    request.format
                ),
            ));
        }
        let id = session(ctx.key())?;
        let key = request.key.as_deref().unwrap_or(ctx.invocation_id());
        let key = key.to_owned();
        ctx.set(RUN, key.clone());
        let output = tokio::select! {
            output = self.drive(&ctx, &id, &key, &request) => output,
            // Another worker goes on.
            () = self.stop.cancelled() => Err(Error::Stale),
        };
        if output
            .as_ref()
            .err()
            .is_none_or(|error| !error.is_passing())
        {
            // A row that stays is read by nobody.
            let _ = self.store.forget_run(&id, &key).await;
            ctx.clear(RUN);
        }
        let output = output.map_err(failed)?;
        let entries = self.store.entries(&id).await.map_err(away)?;
        Ok(Json(RunReply {
            session: id.to_string(),
            entries,
            reason: output.reason.word().to_owned(),
        }))
    }

    /// Says something to the run that is under way, before its next model call.
    #[handler(journal_retention = "0s")]
    async fn steer(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(message): Json<Message>,
    ) -> HandlerResult<()> {
        self.post(&ctx, RunMessageKind::Steer, message).await
    }

    /// Says something to the run that is under way, for when it has its answer.
    #[handler(journal_retention = "0s")]
    async fn follow_up(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(message): Json<Message>,
    ) -> HandlerResult<()> {
        self.post(&ctx, RunMessageKind::FollowUp, message).await
    }

    /// Ends the run that is under way; its session can be carried on.
    #[handler(journal_retention = "0s")]
    async fn interrupt(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(message): Json<Message>,
    ) -> HandlerResult<()> {
        self.post(&ctx, RunMessageKind::Interrupt, message).await
    }

    /// Answers whether a call may run.
    #[handler(journal_retention = "0s")]
    async fn approve(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(approval): Json<Approval>,
    ) -> HandlerResult<()> {
        let id = session(ctx.key())?;
        let Approval { key, answer } = approval;
        match self.store.answer(&id, &key, &answer).await.map_err(away)? {
            true => Ok(()),
            false => Err(refused(
                404,
                format!(
                    "session {id} has no question `{key}`; its status lists those that are open"
                ),
            )),
        }
    }

    /// Says how the session stands.
    #[handler(journal_retention = "0s")]
    async fn status(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<Json<SessionStatus>> {
        let id = session(ctx.key())?;
        Ok(Json(SessionStatus {
            run: ctx.get::<String>(RUN).await?,
            entries: self.store.entries(&id).await.map_err(away)?,
            questions: self.store.questions(&id).await.map_err(away)?,
        }))
    }

    /// Returns what the log has behind an entry, or waits for it.
    #[handler(journal_retention = "0s")]
    async fn events(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(request): Json<EventsRequest>,
    ) -> HandlerResult<Json<EventsReply>> {
        let id = session(ctx.key())?;
        let wait = Duration::from_millis(request.wait_ms).min(LONGEST_WAIT);
        let until = Instant::now() + wait;
        let mut after = request.after;
        loop {
            let mut reply = EventsReply {
                entries: Vec::new(),
                questions: self.store.questions(&id).await.map_err(away)?,
            };
            let mut size = 0;
            for (number, entry) in self.store.entries_after(&id, after).await.map_err(away)? {
                after = number;
                let Some(entry) = shown(entry) else { continue };
                size += serde_json::to_string(&entry).map_or(0, |json| json.len());
                reply.entries.push((number, entry));
                if size >= ENOUGH {
                    break;
                }
            }
            let has_asked = reply.questions.len() != request.questions;
            let has_news = !reply.entries.is_empty() || has_asked;
            if has_news || Instant::now() >= until {
                return Ok(Json(reply));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Sessions {
    async fn drive(
        &self,
        ctx: &ObjectContext<'_>,
        id: &SessionId,
        key: &str,
        request: &RunRequest,
    ) -> Result<AgentOutput, Error> {
        let journal = RestateJournal {
            context: ctx,
            session: id.clone(),
        };
        let mut session = match self.agent.session(id.clone()).await {
            Ok(session) => session,
            Err(error) => return Err(refuse_journaled(&journal, error).await),
        };
        let config = AgentLoopConfig {
            execution_limits: request.limits.within(&session.tracker().limits),
            ..AgentLoopConfig::default()
        };
        let request = JournaledRun {
            key: key.to_owned(),
            said: request.prompt.as_str().into(),
            config,
        };
        let remote = session.remote();
        let _mailbox = Mailbox::open(&self.arrivals, id.clone(), key.to_owned(), remote);
        let output = session.run_journaled(&request, &journal).await;
        output.or_else(Error::into_output)
    }

    async fn post(
        &self,
        ctx: &SharedObjectContext<'_>,
        kind: RunMessageKind,
        message: Message,
    ) -> HandlerResult<()> {
        let id = session(ctx.key())?;
        let Some(run) = ctx.get::<String>(RUN).await? else {
            return Err(refused(
                409,
                format!("session {id} has no run under way; begin one with `plimsoll run`"),
            ));
        };
        let Message { id: name, text } = message;
        if kind != RunMessageKind::Interrupt && text.trim().is_empty() {
            return Err(refused(
                400,
                "the message is empty; say something".to_owned(),
            ));
        }
        let message = RunMessage {
            id: name,
            kind,
            text,
        };
        let posted = self.store.post(&id, &run, &message).await;
        posted.map_err(|error| match error {
            StoreError::Io { path, why } if path.starts_with("session ") => refused(413, why),
            error => away(error),
        })
    }
}

/// The session that a key names.
fn session(key: &str) -> HandlerResult<SessionId> {
    SessionId::new(key).map_err(|error| refused(400, error.to_string()))
}

/// An answer that is no success, which trying again would not change.
fn refused(status: u16, why: String) -> HandlerError {
    TerminalError::new_with_code(status, why).into()
}

/// The database could not be asked; Restate tries again.
fn away(error: StoreError) -> HandlerError {
    failed(Error::Store(error))
}

fn failed(error: Error) -> HandlerError {
    match error.is_passing() {
        true => HandlerError::from(error),
        false => refused(500, error.to_string()),
    }
}
