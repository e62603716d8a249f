//! [`RestateJournal`]: the steps of a run in the journal of a Restate invocation.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use plimsoll_core::{Error, Journal, JournalFault, RunStart, SessionId, StepEnd};
use restate_sdk::prelude::*;

use crate::outage::Outages;

/// The journal of one invocation.
pub(crate) struct RestateJournal<'a> {
    pub(crate) context: &'a ObjectContext<'a>,
    pub(crate) session: SessionId,
    pub(crate) outages: &'a Outages,
}

impl RestateJournal<'_> {
    fn ended(&self, error: &TerminalError) -> Error {
        let fault = JournalFault::Ended {
            session: self.session.clone(),
            why: error.message().to_owned(),
        };
        fault.into()
    }
}

#[async_trait]
impl Journal for RestateJournal<'_> {
    async fn begin(&self, start: RunStart) -> Result<RunStart, Error> {
        let context: &ObjectContext<'_> = self.context;
        let begun = context
            .run(|| async move { Ok(Json(start)) })
            .name("begin")
            .await;
        begun
            .map(Json::into_inner)
            .map_err(|error| self.ended(&error))
    }

    async fn step(
        &self,
        number: u64,
        work: BoxFuture<'_, Result<StepEnd, Error>>,
    ) -> Result<StepEnd, Error> {
        let context: &ObjectContext<'_> = self.context;
        let failed: Mutex<Option<Error>> = Mutex::default();
        let (kept, outages) = (&failed, self.outages);
        let done = context
            .run(|| async move {
                let done = work.await;
                if let Err(error) = &done {
                    outages.step_failed(error);
                }
                match done {
                    Ok(end) => Ok(Json(end)),
                    // Restate retries the step, on any available worker.
                    Err(error) if error.is_passing() => Err(HandlerError::from(error)),
                    Err(error) => {
                        let terminal = TerminalError::new(error.to_string());
                        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                        Err(terminal.into())
                    }
                }
            })
            .name(format!("step {number}"))
            .await;
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.map(Json::into_inner)
            .map_err(|error| failed.unwrap_or_else(|| self.ended(&error)))
    }
}
