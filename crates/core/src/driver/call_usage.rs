//! [`CallUsage`]: usage of calls without a reply, as reported by the providers while they answer.
//!
//! It collects numbers between a call and the driver; the machine accounts for them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::{Failure, Input};
use plimsoll_context::{Reply, Usage};
use tokio::sync::Notify;

/// Usage of the attempts of one call.
#[derive(Debug, Default)]
pub(crate) struct CallUsage {
    used: Mutex<AttemptUsage>,
    failed: Notify,
}

#[derive(Debug, Default)]
struct AttemptUsage {
    /// Of failed attempts, until taken.
    lost: Option<Usage>,
    /// Of the current attempt.
    now: Option<Usage>,
}

/// Usage of a session's calls that may be under way at the same time.
#[derive(Debug, Default)]
pub(crate) struct OpenCallUsage {
    pub(super) call: Arc<CallUsage>,
    pub(super) summary: Arc<CallUsage>,
}

impl OpenCallUsage {
    /// Waits until an attempt of one of the calls has failed that used something.
    pub(super) async fn news(&self) {
        tokio::select! {
            () = self.call.news() => {}
            () = self.summary.news() => {}
        }
    }

    /// Returns the usage of the run's own call and of a call for a summary without a reply, as far as
    /// this input affects them.
    pub(super) fn at(&self, input: &Input) -> (Option<Usage>, Option<Usage>) {
        let Self { call, summary } = self;
        match input {
            Input::Retried => (call.take(), summary.take()),
            // If the run ends with this reply, a summary under way is cut off.
            Input::Reply(_) => (call.take(), summary.all()),
            Input::Summarized(_) => (None, summary.take()),
            _ => (call.all(), summary.all()),
        }
    }
}

impl CallUsage {
    /// Records the reported usage of the current attempt.
    pub(super) fn hear(&self, usage: Usage) {
        self.lock().now = Some(usage);
    }

    /// Records the usage of a reply that the machine has not received yet. It is counted if the run ends
    /// before.
    pub(super) fn arrived(&self, reply: &Result<Reply, Failure>) {
        self.lock().now = match reply {
            Ok(reply) => reply.usage,
            Err(failure) => failure.usage(),
        };
    }

    /// Clears the current attempt: its reply contains the usage.
    pub(super) fn answered(&self) {
        self.lock().now = None;
    }

    /// Records a failed attempt. If the failure contains the usage, it is accounted for there.
    pub(super) fn failed(&self, failure: &Failure) {
        let mut used = self.lock();
        if failure.usage().is_some() {
            used.now = None;
        }
        let lost = [used.lost, used.now.take()];
        used.lost = lost.into_iter().flatten().reduce(Usage::combine);
        if used.lost.is_some() {
            self.failed.notify_one();
        }
    }

    /// Waits until an attempt that used something has failed. Usage that is taken meanwhile does
    /// not count.
    pub(super) async fn news(&self) {
        loop {
            self.failed.notified().await;
            if self.lock().lost.is_some() {
                return;
            }
        }
    }

    /// Takes the usage of the failed attempts.
    pub(crate) fn take(&self) -> Option<Usage> {
        self.lock().lost.take()
    }

    /// Returns the usage of all attempts that has not been accounted for.
    pub(crate) fn all(&self) -> Option<Usage> {
        let used = self.lock();
        let all = [used.lost, used.now];
        all.into_iter().flatten().reduce(Usage::combine)
    }

    fn lock(&self) -> MutexGuard<'_, AttemptUsage> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
