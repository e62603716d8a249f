//! [`RunBudget`]: the allowance of a session's run and its tool calls, and their known usage. The
//! machine decides on the consequences.

use std::collections::HashMap;

use plimsoll_agent::{CallKey, Input, Spend};
use plimsoll_context::CallId;

use crate::allowance::{Allowance, BudgetLedger, Meter};
use crate::session::Session;
use crate::sub_agent::{Caller, Origin};

/// The allowance of a session's run.
#[derive(Debug, Default)]
pub(crate) struct RunBudget {
    ledger: Option<BudgetLedger>,
    /// The reservation for this run, if it works for another agent.
    under: Option<Allowance>,
    /// Meters of the calls under way.
    meters: HashMap<CallId, Meter>,
}

impl RunBudget {
    /// Returns the usage of the tool calls that this input may cut off. Drops the meter of a call that
    /// it ends.
    pub(super) fn at(&mut self, input: &Input) -> HashMap<CallId, Spend> {
        match input {
            Input::Interrupt | Input::Tick => {
                let meters = self.meters.iter();
                meters
                    .map(|(call, meter)| (call.clone(), meter.total()))
                    .collect()
            }
            Input::ToolDone { result, .. } => {
                self.meters.remove(&result.call);
                HashMap::new()
            }
            _ => HashMap::new(),
        }
    }
}

impl Session {
    /// Charges the next run to a reservation.
    pub(crate) fn below(&mut self, allowance: &Allowance) {
        self.budget.under = Some(allowance.clone());
    }

    /// Opens the ledger of a new run.
    pub(super) fn open_ledger(&mut self) {
        let (tracker, own) = (self.run.tracker(), self.run.own());
        let budget = &mut self.budget;
        budget.meters.clear();
        let mut ledger = BudgetLedger::of_run(&tracker.limits, budget.under.as_ref());
        ledger.carry(&own);
        ledger.book(&own);
        budget.ledger = Some(ledger);
    }

    /// Records the usage of the run.
    pub(super) fn book(&mut self) {
        let own = self.run.own();
        if let Some(ledger) = &mut self.budget.ledger {
            ledger.book(&own);
        }
    }

    /// Returns the allowance and the origin of a new tool call.
    pub(super) fn for_call(&mut self, call: &CallId) -> (Allowance, Origin) {
        self.book();
        let (own, tracker) = (self.run.own(), self.run.tracker());
        let last_answer = tracker.deadlines().map(|(last_answer, _)| last_answer);
        let until = last_answer.and_then(|at| self.started.checked_add(at));
        let ledger = self.budget.ledger.as_ref();
        let allowance = ledger.map_or_else(Allowance::unlimited, |ledger| ledger.for_call(until));
        let meter = allowance.meter().clone();
        self.budget.meters.insert(call.clone(), meter);
        let at_once = self.run.setup().max_parallel_tools.max(1) as u64;
        let origin = Origin {
            of: CallKey::of(&self.run.setup().session, self.run.state(), call).map(|key| Caller {
                session: self.id().clone(),
                parts: std::sync::Arc::clone(&self.parts),
                key,
                beside: own.open_calls.min(at_once).max(1),
            }),
        };
        (allowance, origin)
    }

    /// Drops the meters of the calls under way, which were cut off.
    pub(super) fn forget_calls(&mut self) {
        self.budget.meters.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use plimsoll_agent::{ExecutionLimits, Failure, Request};
    use plimsoll_context::{Delta, Reply, Tokens};
    use serde_json::json;

    use crate::allowance::{Allowance, UsedAmounts};
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
        let allowance = || -> &Allowance { session.budget.ledger.as_ref().unwrap().allowance() };
        // A sub-agent that was cut off closes its log in its own task.
        for _ in 0..1_000 {
            if allowance().reserved() == UsedAmounts::default() {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(allowance().reserved(), UsedAmounts::default());
        assert_eq!(allowance().at_work(), 0);
        assert_eq!(
            allowance().used().tokens,
            output.tokens_used.total_tokens().0
        );
        assert_eq!(allowance().meter().total().usage, output.tokens_used);
    }
}
