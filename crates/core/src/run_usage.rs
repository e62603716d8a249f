//! [`RunUsage`]: the usage of a run's calls and tools under way, which the log does not contain yet,
//! and the reservation that they are charged to. The machine decides on the consequences.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::{Failure, Input, PartialAnswer, Spend};
use plimsoll_context::{CallId, Delta, Message, Reply, Tokens};
use tokio::sync::Notify;

use crate::reservation::Reservation;

/// The open usage and the reservation of a session's run.
#[derive(Debug, Default)]
pub(crate) struct RunUsage {
    /// Of the run's own call.
    pub(crate) call: Arc<CallUsage>,
    /// Of a call for a summary.
    pub(crate) summary: Arc<CallUsage>,
    /// Of the tool calls.
    pub(crate) calls: HashMap<CallId, Reservation>,
    /// Of the run and everything below it.
    pub(crate) reservation: Option<Reservation>,
    /// The part of the run's usage that is recorded there, and its tokens as the limits count them.
    pub(crate) booked: (Spend, Tokens),
    /// The reservation for this run, if it works for another agent.
    pub(crate) under: Option<Reservation>,
}

/// The attempts of one call without a reply, as far as they have arrived.
#[derive(Debug, Default)]
pub(crate) struct CallUsage {
    attempts: Mutex<Attempts>,
    failed: Notify,
}

#[derive(Debug, Default)]
struct Attempts {
    /// Failed ones, until taken.
    lost: Vec<PartialAnswer>,
    /// The current one.
    now: Option<PartialAnswer>,
    /// The longest answer that the limits of the run allow the next one.
    max_output: Option<Tokens>,
}

impl RunUsage {
    /// Waits until an attempt of one of the calls has failed that used something.
    pub(crate) async fn news(&self) {
        tokio::select! {
            () = self.call.news() => {}
            () = self.summary.news() => {}
        }
    }

    /// Returns the attempts of the run's own call and of a call for a summary without a reply, as far as
    /// this input affects them.
    pub(crate) fn of_calls(&self, input: &Input) -> (Vec<PartialAnswer>, Vec<PartialAnswer>) {
        let Self { call, summary, .. } = self;
        match input {
            Input::Retried => (call.take(), summary.take()),
            Input::Reply(_) => (call.take(), Vec::new()),
            Input::Summarized(_) => (Vec::new(), summary.take()),
            _ => (call.all(), summary.all()),
        }
    }

    /// Returns the usage of the tool calls that this input may cut off. Settles a call that it
    /// ends.
    pub(crate) fn of_tools(&mut self, input: &Input) -> HashMap<CallId, Spend> {
        match input {
            Input::Interrupt | Input::Tick => {
                let calls = self.calls.iter();
                calls
                    .map(|(call, part)| (call.clone(), part.spent()))
                    .collect()
            }
            Input::ToolDone { result, .. } => {
                self.calls.remove(&result.call);
                HashMap::new()
            }
            _ => HashMap::new(),
        }
    }

    /// Drops the usage of the calls, which were cut off.
    pub(crate) fn forget_calls(&mut self) {
        self.call = Arc::default();
        self.summary = Arc::default();
    }

    /// Settles the tool calls under way, which were cut off.
    pub(crate) fn forget_tools(&mut self) {
        self.calls.clear();
    }
}

impl CallUsage {
    /// Begins an attempt. From now on it is charged, even if nothing arrives.
    pub(crate) fn sent(&self) {
        self.lock().now = Some(PartialAnswer::default());
    }

    /// Records a piece of the answer of the current attempt, or its usage.
    pub(crate) fn record(&self, delta: &Delta) {
        let mut attempts = self.lock();
        let now = attempts.now.get_or_insert_default();
        match delta {
            Delta::Text { text } => now.text.push_str(text),
            Delta::Thinking { text } | Delta::CallArguments { text, .. } => now.rest.push_str(text),
            Delta::CallStarted { name, .. } => now.rest.push_str(name),
            Delta::Used { usage } => now.usage = Some(*usage),
            _ => {}
        }
    }

    /// Records a reply that the machine has not received yet. It is charged if the run ends before.
    pub(crate) fn arrived(&self, reply: &Result<Reply, Failure>) {
        let reported = match reply {
            Ok(reply) => reply.usage,
            Err(failure) => failure.usage(),
        };
        let written = match reply {
            Ok(reply) if reported.is_none() => reply.parts.clone(),
            _ => Vec::new(),
        };
        let answer = PartialAnswer {
            usage: reported,
            text: String::new(),
            rest: Message::Assistant { parts: written }.text(),
        };
        self.lock().now = Some(answer).filter(|answer| !answer.is_empty());
    }

    /// Clears the current attempt: its reply is charged.
    pub(crate) fn answered(&self) {
        self.lock().now = None;
    }

    /// Records a failed attempt. It is charged if a part of its answer had arrived. If the failure
    /// contains the usage, it is accounted for there.
    pub(crate) fn failed(&self, failure: &Failure) {
        let now = self.lock().now.take();
        if failure.usage().is_none() {
            self.lose(now.filter(|answer| !answer.is_empty()));
        }
    }

    /// Records that the current attempt was cut off here. It is charged although nothing may have
    /// arrived.
    pub(crate) fn cut_off(&self) {
        let now = self.lock().now.take();
        self.lose(now);
    }

    fn lose(&self, answer: Option<PartialAnswer>) {
        let mut attempts = self.lock();
        attempts.lost.extend(answer);
        if !attempts.lost.is_empty() {
            self.failed.notify_one();
        }
    }

    /// Waits until an attempt has failed that is charged. Attempts that are taken meanwhile do not
    /// count.
    pub(crate) async fn news(&self) {
        loop {
            self.failed.notified().await;
            if !self.lock().lost.is_empty() {
                return;
            }
        }
    }

    /// Takes the failed attempts.
    pub(crate) fn take(&self) -> Vec<PartialAnswer> {
        std::mem::take(&mut self.lock().lost)
    }

    /// Returns all attempts that have not been accounted for.
    pub(crate) fn all(&self) -> Vec<PartialAnswer> {
        let attempts = self.lock();
        attempts.lost.iter().chain(&attempts.now).cloned().collect()
    }

    /// Limits the answer of the next attempt.
    pub(crate) fn limit_output(&self, max_output: Option<Tokens>) {
        self.lock().max_output = max_output;
    }

    /// Returns the limit of the next attempt's answer for a request with this limit.
    pub(crate) fn max_output(&self, asked: Option<Tokens>) -> Option<Tokens> {
        [asked, self.lock().max_output].into_iter().flatten().min()
    }

    fn lock(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
