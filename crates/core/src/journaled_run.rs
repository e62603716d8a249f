//! Runs with journaled steps, which can be continued on another worker.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_agent::{Entry, Input, Outcome, UserMessage};

use crate::driver::Driven;
use crate::error::Error;
use crate::journal::{JOURNAL_FORMAT, Journal, JournalFault, LogChain, LogHead, RunStart, StepEnd};
use crate::loop_config::AgentLoopConfig;
use crate::output::AgentOutput;
use crate::remote::checked;
use crate::session::Session;

/// The request for a journaled run.
#[derive(Debug, Clone)]
pub struct JournaledRun {
    /// The permanent key of the request. A request whose key is already in the session's log is
    /// treated as a repetition.
    pub key: String,
    /// The user's message.
    pub message: UserMessage,
    /// The configuration of the run. Must be the same when another worker continues it.
    pub config: AgentLoopConfig,
}

/// A journaled run in this process.
struct Stepper {
    /// Starts or continues the run in the first step that is executed here.
    input: Option<Input>,
    /// Whether the journal belongs to this log, as far as it was read.
    usable: Result<(), JournalFault>,
    /// Present once a step has been executed here.
    driven: Option<Driven>,
    /// Present once the run has ended, here or according to the log.
    outcome: Option<Outcome>,
}

impl Session {
    /// Runs a request, executing each of its steps once, even if processes die.
    ///
    /// If the process dies, a later call with the same request and the same journal continues the
    /// run. A step ends when the log contains a new reply of the model, result of a tool or end of
    /// the run. A request whose run has ended is not run again.
    ///
    /// The effect of a tool call that a crash interrupted is unknown. If the tool is not
    /// idempotent, the call is not repeated, and the model is informed. Limits apply to the whole
    /// run; its time counts from its beginning, by the clocks of the workers.
    ///
    /// # Errors
    /// As for [`Self::run`]. [`Error::Journal`] if the journal was written by a newer version or
    /// for another log, or ends the run. [`Error::is_passing`] tells whether a later call may
    /// succeed.
    pub async fn run_journaled(
        &mut self,
        request: &JournaledRun,
        journal: &dyn Journal,
    ) -> Result<AgentOutput, Error> {
        let mut stepper = match self.stepper(request).await {
            Ok(stepper) => stepper,
            Err(error) => return Err(refuse_journaled(journal, error).await),
        };
        let outcome = stepper.follow(self, journal).await;
        if let Some(driven) = stepper.driven {
            driven.end(self, &outcome);
        }
        self.chain = None;
        let output = outcome.and_then(|outcome| self.output(outcome));
        self.restore();
        output
    }

    async fn stepper(&mut self, request: &JournaledRun) -> Result<Stepper, Error> {
        let message = checked(request.message.clone())?;
        self.configure(&request.config, None).await?;
        let log = self.parts.store.load(self.id()).await?;
        let keys = log.iter().filter_map(|entry| match entry {
            Entry::Accepted { key } => Some(key.clone()),
            _ => None,
        });
        self.inbox.knows(keys);
        self.chain = Some(LogChain::of(&log));
        let key = &request.key;
        let is_its = |entry: &Entry| matches!(entry, Entry::Accepted { key: of } if of == key);
        let at = log.iter().rposition(is_its).unwrap_or(log.len());
        let own = log.get(at..).unwrap_or_default();
        let is_prompt = |entry: &Entry| match entry {
            Entry::Message { message, queued } => queued.is_none() && message.is_user(),
            _ => false,
        };
        // If a crash occurred between the key and the message, the message is sent again.
        let input = if own.iter().any(is_prompt) {
            Input::Continue
        } else {
            Input::User(message.with_key(key))
        };
        let outcome = own.iter().find_map(|entry| match entry {
            Entry::RunEnded { outcome } => Some(outcome.clone()),
            _ => None,
        });
        Ok(Stepper {
            input: Some(input),
            usable: Ok(()),
            driven: None,
            outcome,
        })
    }
}

/// Ends a run that cannot continue here. Returns the error that ended it.
///
/// The end is recorded in the first step that the journal does not contain, because a journal with
/// steps accepts no earlier end. A temporary error does not end the run.
pub async fn refuse_journaled(journal: &dyn Journal, error: Error) -> Error {
    if error.is_passing() {
        return error;
    }
    if let Err(error) = journal.begin(RunStart::now(LogHead::default())).await {
        return error;
    }
    for number in 1.. {
        let why = error.clone();
        match journal.step(number, Box::pin(async { Err(why) })).await {
            Ok(end) if end.is_last => break,
            Ok(_) => {}
            Err(error) => return error,
        }
    }
    error
}

impl Stepper {
    async fn follow(
        &mut self,
        session: &mut Session,
        journal: &dyn Journal,
    ) -> Result<Outcome, Error> {
        let start = journal.begin(RunStart::now(head(session))).await?;
        if start.format > JOURNAL_FORMAT {
            // The journal is left unchanged, since a newer worker can still continue the run.
            return Err(JournalFault::Newer {
                session: session.id().clone(),
                found: start.format,
            }
            .into());
        }
        self.usable = check(session, &start.head);
        let elapsed = Duration::from_millis(now_ms().saturating_sub(start.at_ms));
        let mut number = 0;
        loop {
            number += 1;
            let work = Box::pin(self.step(session, elapsed));
            let end = journal.step(number, work).await?;
            // A step executed now is certainly in the log; a recorded step must be checked against
            // it. A fault ends the run at the next step to execute.
            if self.usable.is_ok() {
                self.usable = check(session, &end.head);
            }
            if end.is_last {
                self.usable.clone()?;
                let fault = JournalFault::Mismatch {
                    session: session.id().clone(),
                    entry: end.head.entries,
                    why: "the run has not ended there".to_owned(),
                };
                return self.outcome.take().ok_or(fault.into());
            }
        }
    }

    /// Executes one step of a run that had taken `elapsed` before this process took over.
    async fn step(&mut self, session: &mut Session, elapsed: Duration) -> Result<StepEnd, Error> {
        self.usable.clone()?;
        if self.outcome.is_none()
            && let Some(input) = self.input.take()
        {
            self.driven = Some(Driven::begin(session, input, elapsed));
        }
        if let Some(driven) = &mut self.driven {
            self.outcome = driven.advance(session).await?;
        }
        Ok(StepEnd {
            head: head(session),
            is_last: self.outcome.is_some(),
        })
    }
}

impl RunStart {
    fn now(head: LogHead) -> Self {
        Self {
            format: JOURNAL_FORMAT,
            at_ms: now_ms(),
            head,
        }
    }
}

fn head(session: &Session) -> LogHead {
    let chain = session.chain.as_ref();
    chain.map(LogChain::head).unwrap_or_default()
}

fn check(session: &Session, head: &LogHead) -> Result<(), JournalFault> {
    let chain = session.chain.as_ref();
    chain.map_or(Ok(()), |chain| chain.check(session.id(), head))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.unwrap_or_default().as_millis();
    u64::try_from(millis).unwrap_or(u64::MAX)
}
