//! [`CurrentRun`] and [`RequestAttempt`]: facts that begin anew with each run and with each request.

use plimsoll_context::{Recall, Seq, StopReason, Usage};

use crate::event::TurnTrigger;
use crate::outcome::EndReason;

/// The facts of the current run that are not in the log.
#[derive(Debug, Default)]
pub(crate) struct CurrentRun {
    /// Set once the model has been asked to finish: the reason why the run will end.
    pub(crate) finalizing: Option<EndReason>,
    /// Consecutive empty answers.
    pub(crate) empty_replies: u32,
    /// The first message of this run has at least this number.
    pub(crate) asked_at: Seq,
    /// Whether markers may offer recall. Cleared when the archive fails.
    pub(crate) recall: Recall,
    /// The archive has failed in this run, and the user was warned.
    pub(crate) archive_failed: bool,
    /// The reason for the next turn.
    pub(crate) cause: TurnTrigger,
    /// The reason why the newest answer is incomplete, if it is.
    pub(crate) cut_off: Option<StopReason>,
    /// The turn whose call is answered and whose tools may still be running.
    pub(crate) turn_end: Option<TurnAnswer>,
    /// The run was accepted and announced.
    pub(crate) opened: bool,
    /// The reason why a filter rejected the last input.
    pub(crate) rejected: Option<String>,
}

impl CurrentRun {
    /// Returns the facts at the beginning of a run.
    pub(crate) fn new(recall: Recall) -> Self {
        Self {
            recall,
            ..Self::default()
        }
    }
}

/// A turn whose model call is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnAnswer {
    pub(crate) turn: u64,
    pub(crate) stop: StopReason,
    pub(crate) usage: Option<Usage>,
}

/// Facts about the next request. They begin anew once it is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestAttempt {
    /// The host has vetoed its plan.
    pub(crate) vetoed: bool,
    /// It does not fit by the usual estimate of the provider's count, so it is planned with the lowest
    /// possible count.
    pub(crate) hopeful: bool,
}
