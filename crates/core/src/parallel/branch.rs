//! One branch: an agent that runs the prompt in a fork of the session, within its reservation.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::{EndReason, Entry, ExecutionLimits, RunId};
use plimsoll_context::Part;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::outcome::{BranchEnd, ParallelLoopResult};
use crate::agent::Agent;
use crate::agent_state::AgentState;
use crate::caller::{Host, named_below};
use crate::error::Error;
use crate::error::panic_message;
use crate::output::AgentOutput;
use crate::reservation::{MAX_TURNS_BELOW, Reservation, requested};
use crate::session::Session;
use crate::store::{Fork, ForkFault, Lease, SessionId, SessionStore, StoreError};
use crate::sub_agent::until_stopped;

/// How many names are tried for a fork. An evaluation ended by a crash may have taken some.
const NAMES: u64 = 16;

/// An agent that runs the prompt.
#[derive(Clone)]
pub struct Branch {
    agent: Agent,
    config_id: Option<String>,
}

/// The common starting point of all branches.
pub(super) struct Trunk {
    host: Host,
    pub(super) session: SessionId,
    /// Number of entries of the log, which all forks share.
    entries: u64,
    /// Number of the next run.
    pub(super) run: u64,
    idle: Option<Duration>,
    state: Arc<AgentState>,
    pub(super) prompt: Vec<Part>,
}

/// A branch from its preparation to its result.
pub(super) struct RunningBranch {
    index: usize,
    branch: Branch,
    session: SessionId,
    /// `None` if nothing could be reserved for it.
    reservation: Option<Reservation>,
    limits: ExecutionLimits,
    began: Instant,
}

impl Branch {
    /// Creates a branch with this agent.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self {
            agent,
            config_id: None,
        }
    }

    /// Sets the name of the configuration in results and run ids. Default: the agent's.
    #[must_use]
    pub fn config_id(mut self, id: impl Into<String>) -> Self {
        self.config_id = Some(id.into());
        self
    }

    /// Reserves what the branch may use: one of `parts` equal parts of each kind that its agent does
    /// not limit.
    fn reserve(
        &self,
        reservation: &Reservation,
        most_turns: Option<u64>,
        parts: u64,
    ) -> Result<(Reservation, ExecutionLimits), String> {
        let mut limits = ExecutionLimits::clone(&self.agent.setup.limits);
        let turns = limits.max_turns();
        let turns = most_turns.map_or(turns, |most| most.min(turns));
        limits.max_turns = Some(turns);
        // Turns that the reservation limits are divided like the other kinds.
        let is_limited = reservation.left().max_turns.is_some();
        let with_below = turns.saturating_add(MAX_TURNS_BELOW);
        let with_below = (!is_limited).then_some(with_below);
        let part = reservation
            .reserve_part(&requested(&limits, with_below), parts)
            .map_err(|nothing| format!("{nothing} for it"))?;
        match self.agent.unpriced_model() {
            Some(model) if part.limits().max_cost.is_some() => Err(format!(
                "the prices of `{model}` are unknown, but the branches share a cost limit; give its \
                 agent prices, or summarizer_prices if it only writes summaries"
            )),
            _ => Ok((part, limits)),
        }
    }
}

impl RunningBranch {
    /// Reserves the branch's part and forks the session. Returns the reason if that fails.
    pub(super) async fn prepare(
        (index, branch): (usize, Branch),
        trunk: &Trunk,
        reservation: &Reservation,
        most_turns: Option<u64>,
        parts: u64,
    ) -> (Self, Result<Lease, String>) {
        let name = trunk.name(index, 0);
        let reserved = branch.reserve(reservation, most_turns, parts);
        let mut running = Self {
            index,
            session: name.unwrap_or_else(|| trunk.session.clone()),
            branch,
            reservation: None,
            limits: ExecutionLimits::default(),
            began: Instant::now(),
        };
        let (part, limits) = match reserved {
            Ok(reserved) => reserved,
            Err(why) => return (running, Err(why)),
        };
        (running.reservation, running.limits) = (Some(part), limits);
        let lease = trunk.fork(index).await.map_err(|error| error.to_string());
        if let Ok(lease) = &lease {
            running.session = lease.session().clone();
        }
        (running, lease)
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Runs the branch to its end.
    pub(super) async fn run(
        &self,
        trunk: &Trunk,
        lease: Result<Lease, String>,
        stop: &CancellationToken,
    ) -> ParallelLoopResult {
        let lease = match lease {
            Ok(lease) => lease,
            Err(why) => {
                let end = BranchEnd::NotStarted { why: why.clone() };
                return self.result(trunk, end, why);
            }
        };
        let run = AssertUnwindSafe(self.answer(trunk, lease, stop)).catch_unwind();
        let why = match run.await {
            Ok(Ok(output)) => {
                let was_stopped = stop.is_cancelled() && output.reason == EndReason::Interrupted;
                let end = if was_stopped {
                    BranchEnd::Cancelled
                } else {
                    BranchEnd::Ended(output.reason)
                };
                return self.result(trunk, end, output.text);
            }
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("it broke down: {}", panic_message(&*panic)),
        };
        self.result(trunk, BranchEnd::Died { why: why.clone() }, why)
    }

    async fn answer(
        &self,
        trunk: &Trunk,
        lease: Lease,
        stop: &CancellationToken,
    ) -> Result<AgentOutput, Error> {
        let part = self.reservation.clone();
        let part = part.unwrap_or_else(Reservation::unlimited);
        let agent = &self.branch.agent;
        let mut agent = agent.within(&part, &self.limits, Some(&trunk.host), None);
        agent.setup.config_id = self.config().to_owned();
        let mut session = agent.open(lease, trunk.idle).await?;
        session.below(&part);
        // The fork has the host's context and extensions of the original session.
        let own = session.state_mut();
        own.dynamic_context.clone_from(&trunk.state.dynamic_context);
        own.extensions = trunk.state.extensions.clone();
        let remote = session.remote();
        until_stopped(&remote, session.run_parts(trunk.prompt.clone()), stop).await
    }

    fn config(&self) -> &str {
        let own = self.branch.config_id.as_ref();
        own.unwrap_or(&self.branch.agent.setup.config_id)
    }

    /// Returns the result of the branch with the given end.
    pub(super) fn result(&self, trunk: &Trunk, end: BranchEnd, text: String) -> ParallelLoopResult {
        let spent = self.reservation.as_ref().map(Reservation::spent);
        let spent = spent.unwrap_or_default();
        ParallelLoopResult {
            branch: self.index,
            session_id: self.session.clone(),
            run_id: RunId::new(self.session.as_str(), self.config(), trunk.run),
            config_id: self.config().to_owned(),
            model: self.branch.agent.setup.model.clone(),
            text,
            end,
            usage: spent.usage,
            cost: spent.cost,
            turns: spent.turns,
            tool_calls: spent.tool_calls,
            duration: self.began.elapsed(),
        }
    }
}

impl Trunk {
    pub(super) fn of(session: &Session, prompt: Vec<Part>) -> Self {
        Self {
            host: session.parts.host(),
            session: session.id().clone(),
            entries: session.entries,
            run: session.view().runs().saturating_add(1),
            idle: session.idle(),
            state: Arc::clone(&session.state),
            prompt,
        }
    }

    /// Returns the name of a branch's session.
    pub(super) fn name(&self, index: usize, attempt: u64) -> Option<SessionId> {
        let run = self.run;
        named_below(
            &self.session,
            &match attempt {
                0 => format!("b{run}-{index}"),
                _ => format!("b{run}-{index}-{attempt}"),
            },
        )
    }

    /// Creates a fork. The shared entries are not copied.
    async fn fork(&self, index: usize) -> Result<Lease, Error> {
        let store = &*self.host.store;
        let mut attempt = 0;
        loop {
            let Some(name) = self.name(index, attempt) else {
                return Err(Error::Build(vec!["a branch's session has no name".into()]));
            };
            attempt += 1;
            match self.begin(store, &name).await {
                Err(StoreError::Busy { .. }) if attempt < NAMES => {}
                Err(StoreError::CannotFork {
                    why: ForkFault::Taken { .. },
                    ..
                }) if attempt < NAMES => {}
                begun => return Ok(begun?),
            }
        }
    }

    async fn begin(&self, store: &dyn SessionStore, to: &SessionId) -> Result<Lease, StoreError> {
        let lease = store.acquire(to).await?;
        let of = Fork {
            from: self.session.clone(),
            entries: self.entries,
        };
        store.fork(&lease, &of, &[self.forked()]).await?;
        Ok(lease)
    }

    fn forked(&self) -> Entry {
        Entry::Forked {
            from: self.session.to_string(),
            entries: self.entries,
        }
    }
}
