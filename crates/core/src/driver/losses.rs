//! [`Losses`]: what calls have used whose replies have not come, as their providers say while they
//! answer. It only keeps count between a call and the driver; the machine books it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::{Failure, Input};
use plimsoll_context::Usage;
use tokio::sync::Notify;

use crate::session::Session;

/// What the tries of one call have used.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    used: Mutex<Used>,
    failed: Notify,
}

#[derive(Debug, Default)]
struct Used {
    /// By tries that failed, as far as nobody has taken it.
    lost: Option<Usage>,
    /// By the try under way.
    now: Option<Usage>,
}

/// Of a session's calls that may be under way at once.
#[derive(Debug, Default)]
pub(crate) struct CallLosses {
    pub(super) call: Arc<Losses>,
    pub(super) summary: Arc<Losses>,
}

impl CallLosses {
    /// Until one of them has news.
    pub(super) async fn news(&self) {
        tokio::select! {
            () = self.call.news() => {}
            () = self.summary.news() => {}
        }
    }
}

impl Session {
    /// Tells the machine what calls have used without a reply, as far as this input may make it count.
    pub(super) fn tell_losses(&mut self, input: &Input) {
        let CallLosses { call, summary } = &self.losses;
        let (call, summary) = match input {
            Input::Retried => (call.take(), summary.take()),
            // A run that ends with it cuts a summary off.
            Input::Reply(_) => (call.take(), summary.all()),
            Input::Summarized(_) => (None, summary.take()),
            _ => (call.all(), summary.all()),
        };
        self.run.set_unanswered(call, summary);
    }
}

impl Losses {
    /// The provider says what the try under way has used.
    pub(super) fn hear(&self, usage: Usage) {
        self.lock().now = Some(usage);
    }

    /// The try has its reply, which tells what it used.
    pub(super) fn answered(&self) {
        self.lock().now = None;
    }

    /// The try has failed. A failure that tells what it used is booked by that.
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

    /// Until a try has failed that had used something. What was taken by then is not waited for again.
    pub(super) async fn news(&self) {
        loop {
            self.failed.notified().await;
            if self.lock().lost.is_some() {
                return;
            }
        }
    }

    /// What tries that failed have used; it is given once.
    pub(crate) fn take(&self) -> Option<Usage> {
        self.lock().lost.take()
    }

    /// What all tries have used so far whose end was not told.
    pub(crate) fn all(&self) -> Option<Usage> {
        let used = self.lock();
        let all = [used.lost, used.now];
        all.into_iter().flatten().reduce(Usage::combine)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
