//! [`RunUsage`]: the usage of a run's calls and tools under way, which the log does not contain yet,
//! and the reservation that they are charged to. The machine decides on the consequences.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_agent::{CallKey, Failure, Input, PartialAnswer, Spend};
use plimsoll_context::{CallId, Delta, Message, Reply, Tokens};
use tokio::sync::Notify;

use crate::reservation::Reservation;
use crate::session::Session;
use crate::sub_agent::{Caller, Origin};

/// The open usage and the reservation of a session's run.
#[derive(Debug, Default)]
pub(crate) struct RunUsage {
    /// Of the run's own call.
    pub(super) call: Arc<CallUsage>,
    /// Of a call for a summary.
    pub(super) summary: Arc<CallUsage>,
    /// Of the tool calls.
    calls: HashMap<CallId, Reservation>,
    /// Of the run and everything below it.
    reservation: Option<Reservation>,
    /// The part of the run's usage that is recorded there, and its tokens as the limits count them.
    booked: (Spend, Tokens),
    /// The reservation for this run, if it works for another agent.
    under: Option<Reservation>,
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
    pub(super) async fn news(&self) {
        tokio::select! {
            () = self.call.news() => {}
            () = self.summary.news() => {}
        }
    }

    /// Returns the attempts of the run's own call and of a call for a summary without a reply, as far as
    /// this input affects them.
    pub(super) fn of_calls(&self, input: &Input) -> (Vec<PartialAnswer>, Vec<PartialAnswer>) {
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
    pub(super) fn of_tools(&mut self, input: &Input) -> HashMap<CallId, Spend> {
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
    pub(super) fn forget_calls(&mut self) {
        self.call = Arc::default();
        self.summary = Arc::default();
    }

    /// Settles the tool calls under way, which were cut off.
    pub(super) fn forget_tools(&mut self) {
        self.calls.clear();
    }
}

impl Session {
    /// Charges the next run to a reservation.
    pub(crate) fn below(&mut self, reservation: &Reservation) {
        self.usage.under = Some(reservation.clone());
    }

    /// Opens the reservation of a new run: its own limits, or its part of another agent's.
    pub(super) fn open_ledger(&mut self) {
        let ledger = self.run.tracker();
        let usage = &mut self.usage;
        usage.forget_tools();
        let under = usage.under.clone();
        let reservation = under.unwrap_or_else(|| Reservation::of_run(&ledger.limits));
        // Usage by sub-agents and tools before a crash, for a run that continues after it.
        reservation.spend(&ledger.of_tools);
        usage.booked = Default::default();
        usage.reservation = Some(reservation);
        self.book();
    }

    /// Records the usage of the run.
    pub(super) fn book(&mut self) {
        if let Some(reservation) = &self.usage.reservation {
            let (own, keeps) = (self.run.tracker().own(), self.run.keeps());
            reservation.book(own, keeps, &mut self.usage.booked);
        }
    }

    /// Returns the reservation and the origin of a new tool call.
    pub(super) fn for_call(&mut self, call: &CallId) -> (Reservation, Origin) {
        self.book();
        let last_answer = self
            .run
            .tracker()
            .deadlines()
            .map(|(last_answer, _)| last_answer);
        let until = last_answer.and_then(|at| self.started.checked_add(at));
        let reservation = self.usage.reservation.as_ref();
        let part = reservation.map_or_else(Reservation::unlimited, |all| all.for_call(until));
        self.usage.calls.insert(call.clone(), part.clone());
        let at_once = self.run.setup().max_parallel_tools.max(1) as u64;
        let open_calls = self.run.state().open_calls();
        let origin = Origin {
            of: CallKey::of(&self.run.setup().session, self.run.state(), call).map(|key| Caller {
                session: self.id().clone(),
                parts: Arc::clone(&self.parts),
                key,
                beside: open_calls.min(at_once).max(1),
            }),
        };
        (part, origin)
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
    pub(super) fn arrived(&self, reply: &Result<Reply, Failure>) {
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
    pub(super) async fn news(&self) {
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
    pub(super) fn limit_output(&self, max_output: Option<Tokens>) {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use plimsoll_agent::{ExecutionLimits, Failure, Request};
    use plimsoll_context::{Delta, Reply, Tokens};
    use serde_json::json;

    use crate::reservation::Reservation;
    use crate::telemetry::ServerAddress;
    use crate::testing::{ScriptedProvider, Turn};
    use crate::{Agent, Provider, SessionId};

    /// A provider that panics outside of its calls after it has answered one.
    struct Breaks(ScriptedProvider, AtomicUsize);

    #[async_trait::async_trait]
    impl Provider for Breaks {
        fn model(&self) -> &str {
            self.0.model()
        }

        fn server(&self) -> Option<ServerAddress> {
            let before = self.1.fetch_add(1, Ordering::Relaxed);
            assert!(before == 0, "out of rum");
            None
        }

        async fn call(
            &self,
            request: &Request,
            deltas: &(dyn Fn(Delta) + Send + Sync),
        ) -> Result<Reply, Failure> {
            self.0.call(request, deltas).await
        }
    }

    /// However sub-agents end, no reservation remains and their usage is recorded.
    #[tokio::test(start_paused = true)]
    async fn nothing_stays_reserved_however_a_sub_agent_ends() {
        let hangs = || ScriptedProvider::new([]).then_always(Turn::Hang);
        let calls = ScriptedProvider::new([Turn::call("look", json!({}))]);
        let broken = Agent::builder(Breaks(calls, AtomicUsize::new(0)));
        let children = [
            Agent::builder(ScriptedProvider::new([Turn::say("fine")])),
            broken,
            Agent::builder(ScriptedProvider::new([])),
            Agent::builder(hangs()),
        ];
        let mut captain = Agent::builder(
            ScriptedProvider::new([Turn::calls([
                ("child0", json!({"task": "x"})),
                ("child1", json!({"task": "x"})),
                ("child2", json!({"task": "x"})),
                ("child3", json!({"task": "x"})),
            ])])
            .then_always(Turn::call("child3", json!({"task": "y"}))),
        )
        .execution_limits(ExecutionLimits {
            max_total_tokens: Some(Tokens(80_000)),
            max_duration: Some(Duration::from_secs(100)),
            ..ExecutionLimits::turns(9)
        })
        .max_parallel_tools(4);
        for (index, child) in children.into_iter().enumerate() {
            let child = child.build().unwrap();
            let tool = child.as_tool(format!("child{index}"), "");
            captain = captain.tool(tool.timeout(Duration::from_secs(30)));
        }
        let captain = captain.build().unwrap();
        let mut session = captain.session(SessionId::new("s").unwrap()).await.unwrap();
        let output = session.run("go").await.unwrap();
        assert!(output.reason.is_limit(), "{output:?}");
        let reservation = || -> &Reservation { session.usage.reservation.as_ref().unwrap() };
        // A sub-agent that was cut off closes its log in its own task.
        for _ in 0..1_000 {
            if reservation().at_work() == 0 {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(reservation().at_work(), 0);
        // The calls that were cut off with their sub-agents are charged when these close their logs.
        let all = output.tokens_used.combine(output.estimated);
        let (limits, left) = (reservation().limits(), reservation().left());
        let used = limits
            .max_total_tokens
            .unwrap()
            .minus(left.max_total_tokens.unwrap());
        assert!(used >= all.total_tokens());
        assert_eq!(reservation().spent().usage, output.tokens_used);
    }
}
