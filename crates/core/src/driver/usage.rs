//! Books what a session's run and its tool calls use.

use std::sync::Arc;

use plimsoll_agent::CallKey;
use plimsoll_context::CallId;

use crate::caller::Caller;
use crate::reservation::Reservation;
use crate::session::Session;

impl Session {
    /// Charges the next run to a reservation.
    pub(crate) fn below(&mut self, reservation: &Reservation) {
        self.usage.under = Some(reservation.clone());
    }

    /// Opens the reservation of a new run: its own limits, or its part of another agent's.
    pub(super) fn open_ledger(&mut self) {
        let ledger = self.run.tracker();
        let usage = &mut self.usage;
        usage.calls.clear();
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

    /// Returns the reservation and the caller of a new tool call.
    pub(super) fn for_call(&mut self, call: &CallId) -> (Reservation, Option<Arc<Caller>>) {
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
        let key = CallKey::of(&self.run.setup().session, self.run.state(), call);
        let caller = key.map(|key| {
            let files_of = self.parts.files_of.as_ref().unwrap_or(self.id());
            Arc::new(Caller {
                key,
                beside: open_calls.min(at_once).max(1),
                files_of: files_of.clone(),
                parts: Arc::clone(&self.parts),
            })
        });
        (part, caller)
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
