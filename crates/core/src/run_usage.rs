//! [`RunUsage`]: the usage of a run's calls and tools under way, which the log does not contain yet,
//! and the reservation that they are charged to. The machine decides on the consequences.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use plimsoll_agent::{Input, PartialAnswer, Spend};
use plimsoll_context::{CallId, Delta, Message, Reply, Tokens, Usage};
use tokio::sync::Notify;

use crate::error::lock;
use crate::reservation::Reservation;

/// The open usage and the reservation of a session's run.
#[derive(Debug, Default)]
pub(crate) struct RunUsage {
    /// Of the model call.
    pub(crate) call: Arc<CallUsage>,
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
    /// Begins a model call.
    pub(crate) fn begin_call(&mut self) -> Arc<CallUsage> {
        self.forget_call();
        Arc::clone(&self.call)
    }

    /// Returns the attempts of the model call without a reply, as far as this input affects them.
    pub(crate) fn of_call(&self, input: &Input) -> Vec<PartialAnswer> {
        match input {
            Input::Retried | Input::Reply(_) | Input::Summarized(_) => self.call.take(),
            _ => self.call.all(),
        }
    }

    /// Returns the usage of the tool calls that this input may cut off. Settles a call that it
    /// ends.
    pub(crate) fn of_tools(&mut self, input: &Input) -> HashMap<CallId, Spend> {
        match input {
            Input::Interrupt | Input::Tick => {
                let calls = self.calls.iter();
                let spent = calls.map(|(call, part)| (call.clone(), part.spent()));
                return spent.collect();
            }
            Input::ToolDone { result, .. } => drop(self.calls.remove(&result.call)),
            _ => {}
        }
        HashMap::new()
    }

    /// Drops the usage of the model call, which has ended or was cut off.
    pub(crate) fn forget_call(&mut self) {
        self.call = Arc::default();
    }
}

impl CallUsage {
    /// Begins an attempt. From now on it is charged, even if nothing arrives.
    pub(crate) fn sent(&self) {
        lock(&self.attempts).now = Some(PartialAnswer::default());
    }

    /// Records a piece of the answer of the current attempt, or its usage.
    pub(crate) fn record(&self, delta: &Delta) {
        let mut attempts = lock(&self.attempts);
        let now = attempts.now.get_or_insert_default();
        match delta {
            Delta::Text { text } => now.text.push_str(text),
            Delta::Thinking { text } | Delta::CallArguments { text, .. } => now.rest.push_str(text),
            Delta::CallStarted { name, .. } => now.rest.push_str(name),
            Delta::Used { usage } => now.usage = Some(*usage),
            _ => {}
        }
    }

    /// Returns the usage of the current attempt that was reported so far.
    pub(crate) fn reported(&self) -> Option<Usage> {
        lock(&self.attempts).now.as_ref()?.usage
    }

    /// Records a reply that the machine has not received yet. It is charged if the run ends before.
    pub(crate) fn arrived(&self, reply: &Reply) {
        let parts = reply
            .usage
            .map_or_else(|| reply.parts.clone(), |_| Vec::new());
        lock(&self.attempts).now = Some(PartialAnswer {
            usage: reply.usage,
            text: String::new(),
            rest: Message::Assistant { parts }.text(),
        });
    }

    /// Clears the current attempt: its reply is charged.
    pub(crate) fn answered(&self) {
        lock(&self.attempts).now = None;
    }

    /// Records a failed attempt. It is charged if a part of its answer had arrived, or if it was `cut` off
    /// here.
    pub(crate) fn failed(&self, cut: bool) {
        let mut attempts = lock(&self.attempts);
        let now = attempts.now.take();
        let charged = now.filter(|answer| cut || !answer.is_empty());
        attempts.lost.extend(charged);
        self.failed.notify_one();
    }

    /// Waits until an attempt has failed.
    pub(crate) async fn news(&self) {
        self.failed.notified().await;
    }

    /// Takes the failed attempts.
    pub(crate) fn take(&self) -> Vec<PartialAnswer> {
        std::mem::take(&mut lock(&self.attempts).lost)
    }

    /// Returns all attempts that have not been accounted for.
    pub(crate) fn all(&self) -> Vec<PartialAnswer> {
        let attempts = lock(&self.attempts);
        attempts.lost.iter().chain(&attempts.now).cloned().collect()
    }

    /// Limits the answer of the next attempt.
    pub(crate) fn limit_output(&self, max_output: Option<Tokens>) {
        lock(&self.attempts).max_output = max_output;
    }

    /// Returns the limit of the next attempt's answer for a request with this limit.
    pub(crate) fn max_output(&self, asked: Option<Tokens>) -> Option<Tokens> {
        [asked, lock(&self.attempts).max_output]
            .into_iter()
            .flatten()
            .min()
    }
}
