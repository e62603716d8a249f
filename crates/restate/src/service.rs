//! The virtual object: a handler that runs requests, one at a time per session, and handlers that
//! affect the active run from outside. The run itself is implemented in `core`.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::Entry;
use plimsoll_core::{
    Agent, AgentLoopConfig, AgentOutput, Error, JournaledRun, PAGE_ENTRIES, SessionId,
    SessionStore, StoreError, refuse_journaled,
};
use plimsoll_store::{PostgresStore, RunMessage, RunMessageKind};
use restate_sdk::prelude::*;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::journal::RestateJournal;
use crate::mailbox::{Arrivals, Mailbox};
use crate::outage::Outages;
use crate::protocol::{
    Approval, EventsReply, EventsRequest, FORMAT, RunReply, RunRequest, SessionStatus,
};
use crate::redacted::shown;

/// The key of the state with the active run's request.
const RUN: &str = "run";
/// The maximum wait of `events`, regardless of the request.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// The pause between two checks whether a session has news for `events`.
const PAUSE: Duration = Duration::from_secs(1);
/// The size at which a reply of `events` gets no further entry.
const ENOUGH: usize = 1024 * 1024;

/// The sessions as a virtual object.
pub(crate) struct Sessions {
    pub(crate) agent: Agent,
    pub(crate) store: PostgresStore,
    pub(crate) arrivals: Arrivals,
    pub(crate) outages: Arc<Outages>,
    /// Cancelled when the worker stops.
    pub(crate) stop: CancellationToken,
}

// A step may take as long as a model, a tool or a person. Restate must not abort the run in the
// meantime.
#[restate_sdk::object(
    name = "plimsoll",
    inactivity_timeout = "30 days",
    abort_timeout = "1 day",
    idempotency_retention = "7 days",
    // A database may be unreachable for days.
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
            // Another worker continues the run.
            () = self.stop.cancelled() => Err(Error::Stale),
        };
        if output
            .as_ref()
            .err()
            .is_none_or(|error| !error.is_passing())
        {
            // A leftover row is never read.
            let _ = self.store.forget_run(&id, &key).await;
            ctx.clear(RUN);
        }
        let output = output.map_err(failed)?;
        let entries = self.used(self.store.progress(&id).await)?.entries;
        Ok(Json(RunReply {
            session: id.to_string(),
            entries,
            reason: output.reason.word().to_owned(),
        }))
    }

    /// Sends a message to the active run, or ends it.
    #[handler(journal_retention = "0s")]
    async fn post(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(message): Json<RunMessage>,
    ) -> HandlerResult<()> {
        let id = session(ctx.key())?;
        let Some(run) = ctx.get::<String>(RUN).await? else {
            return Err(refused(
                409,
                format!("session {id} has no current run; start one with `plimsoll run`"),
            ));
        };
        if message.kind != RunMessageKind::Interrupt && message.text.trim().is_empty() {
            return Err(refused(400, "the message is empty; give a text".to_owned()));
        }
        match self.store.post(&id, &run, &message).await {
            Err(StoreError::Io { path, why }) if path.starts_with("session ") => {
                Err(refused(413, why))
            }
            posted => self.used(posted),
        }
    }

    /// Answers a question about a tool call.
    #[handler(journal_retention = "0s")]
    async fn approve(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(approval): Json<Approval>,
    ) -> HandlerResult<()> {
        let id = session(ctx.key())?;
        let Approval { key, answer } = approval;
        if self.used(self.store.answer(&id, &key, &answer).await)? {
            Ok(())
        } else {
            Err(refused(
                404,
                format!(
                    "session {id} has no question `{key}`; its status lists those that are open"
                ),
            ))
        }
    }

    /// Returns the status of the session.
    #[handler(journal_retention = "0s")]
    async fn status(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<Json<SessionStatus>> {
        let id = session(ctx.key())?;
        Ok(Json(SessionStatus {
            run: ctx.get::<String>(RUN).await?,
            entries: self.used(self.store.progress(&id).await)?.entries,
            questions: self.used(self.store.questions(&id).await)?,
        }))
    }

    /// Returns the entries of the log after a given entry, or waits for them.
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
            let progress = self.used(self.store.progress(&id).await)?;
            let mut entries = Vec::new();
            if progress.entries > after {
                entries = self.shown_after(&id, &mut after).await?;
                if entries.is_empty() && progress.entries > after {
                    continue;
                }
            }
            let has_news = !entries.is_empty() || progress.questions != request.questions;
            if has_news || Instant::now() >= until {
                let questions = match progress.questions {
                    0 => Vec::new(),
                    _ => self.used(self.store.questions(&id).await)?,
                };
                return Ok(Json(EventsReply { entries, questions }));
            }
            tokio::time::sleep_until(until.min(Instant::now() + PAUSE)).await;
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
            outages: &self.outages,
        };
        let mut session = match self.agent.session(id.clone()).await {
            Ok(session) => session,
            Err(error) => {
                if let Error::Store(error) = &error {
                    self.outages.failed(error);
                }
                return Err(refuse_journaled(&journal, error).await);
            }
        };
        let config = AgentLoopConfig {
            execution_limits: request.limits.within(&session.tracker().limits),
            ..AgentLoopConfig::default()
        };
        let request = JournaledRun {
            key: key.to_owned(),
            message: request.prompt.as_str().into(),
            config,
        };
        let remote = session.remote();
        let _mailbox = Mailbox::open(&self.arrivals, id.clone(), key.to_owned(), remote);
        let output = session.run_journaled(&request, &journal).await;
        output.or_else(Error::into_output)
    }

    /// Returns the shown entries after `after`, one page per call, and moves `after` to the last
    /// entry that was read.
    async fn shown_after(
        &self,
        id: &SessionId,
        after: &mut u64,
    ) -> HandlerResult<Vec<(u64, Entry)>> {
        let mut entries = Vec::new();
        let mut size = 0;
        for line in self.used(self.store.read(id, *after, PAGE_ENTRIES).await)? {
            let number = line.n;
            *after = number;
            let Some(entry) = shown(line.entry) else {
                continue;
            };
            size += serde_json::to_string(&entry).map_or(0, |json| json.len());
            entries.push((number, entry));
            if size >= ENOUGH {
                break;
            }
        }
        Ok(entries)
    }

    /// Reports an error of the database. If it cannot be reached, Restate retries the call.
    fn used<T>(&self, done: Result<T, StoreError>) -> HandlerResult<T> {
        done.map_err(|error| {
            self.outages.failed(&error);
            failed(Error::Store(error))
        })
    }
}

/// Parses the session name in a key.
fn session(key: &str) -> HandlerResult<SessionId> {
    SessionId::new(key).map_err(|error| refused(400, error.to_string()))
}

/// Creates an error that Restate does not retry.
fn refused(status: u16, why: String) -> HandlerError {
    TerminalError::new_with_code(status, why).into()
}

fn failed(error: Error) -> HandlerError {
    if error.is_passing() {
        HandlerError::from(error)
    } else {
        refused(500, error.to_string())
    }
}
