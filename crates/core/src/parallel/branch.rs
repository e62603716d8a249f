//! One branch: an agent that runs the prompt in a fork of the session, within its reservation.

use std::sync::Arc;

use plimsoll_agent::run_id;
use plimsoll_context::Part;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::outcome::ParallelLoopResult;
use crate::agent::Agent;
use crate::caller::named_below;
use crate::error::contained;
use crate::fork::begin_fork;
use crate::output::AgentOutput;
use crate::reservation::{MAX_TURNS_BELOW, Reservation};
use crate::session::Session;
use crate::store::{ForkFault, Lease, SessionId, StoreError};
use crate::sub_agent::until_stopped;

/// How many names are tried for a fork. An evaluation ended by a crash may have taken some.
const NAMES: u64 = 16;

/// An agent that runs the prompt.
#[derive(Clone)]
pub struct Branch {
    agent: Agent,
}

/// The common starting point of all branches.
pub(super) struct Trunk<'s> {
    pub(super) session: &'s Session,
    /// Number of the next run.
    pub(super) run: u64,
    pub(super) prompt: Vec<Part>,
}

/// A branch from its reservation to its result.
pub(super) struct RunningBranch {
    index: usize,
    agent: Agent,
    session: SessionId,
    /// What the branch may use, or why it may use nothing.
    part: Result<Reservation, String>,
    began: Instant,
}

impl Branch {
    /// Creates a branch with this agent.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self { agent }
    }

    /// Sets the name of the configuration in results and run ids. Default: the agent's.
    #[must_use]
    pub fn config_id(mut self, id: impl Into<String>) -> Self {
        self.agent.setup.config_id = id.into();
        self
    }
}

impl RunningBranch {
    /// Reserves what the branch may use: one of `parts` equal parts of each kind that its agent does
    /// not limit.
    pub(super) fn new(
        (index, branch): (usize, Branch),
        trunk: &Trunk<'_>,
        reservation: &Reservation,
        most_turns: Option<u64>,
        parts: u64,
    ) -> Self {
        let mut agent = branch.agent;
        let mut limits = *agent.setup.limits;
        let turns = limits.max_turns();
        let turns = most_turns.map_or(turns, |most| most.min(turns));
        limits.max_turns = Some(turns);
        // Turns that the reservation limits are divided like the other kinds.
        let is_limited = reservation.left().max_turns.is_some();
        let with_below = turns.saturating_add(MAX_TURNS_BELOW);
        let with_below = (!is_limited).then_some(with_below);
        let part = agent.reserve(reservation, &limits, with_below, parts);
        agent.setup.limits = Arc::new(limits);
        Self {
            index,
            agent,
            session: trunk.name(index, 0),
            part,
            began: Instant::now(),
        }
    }

    /// Runs the branch to its end.
    pub(super) async fn run(
        mut self,
        trunk: &Trunk<'_>,
        stop: &CancellationToken,
    ) -> ParallelLoopResult {
        let (end, text) = match contained(self.answer(trunk, stop)).await {
            Ok(Ok(output)) => (Some(output.outcome.reason), output.outcome.text),
            Ok(Err(why)) => (None, why),
            Err(panic) => (None, format!("it broke down: {panic}")),
        };
        let setup = &self.agent.setup;
        ParallelLoopResult {
            branch: self.index,
            run_id: run_id(self.session.as_str(), &setup.config_id, trunk.run),
            session_id: self.session,
            config_id: setup.config_id.clone(),
            model: setup.model.clone(),
            text,
            end,
            spent: self.part.map(|part| part.spent()).unwrap_or_default(),
            duration: self.began.elapsed(),
        }
    }

    /// Forks the session and runs the prompt in the fork. Returns the reason if that fails.
    async fn answer(
        &mut self,
        trunk: &Trunk<'_>,
        stop: &CancellationToken,
    ) -> Result<AgentOutput, String> {
        let part = self.part.clone()?;
        let lease = trunk.fork(self.index).await;
        let lease = lease.map_err(|error| error.to_string())?;
        self.session = lease.session().clone();
        let limits = &self.agent.setup.limits;
        let agent = self
            .agent
            .within(&part, limits, Some(&trunk.session.parts), None);
        let session = agent.open(lease, trunk.session.idle()).await;
        let mut session = session.map_err(|error| error.to_string())?;
        session.below(&part);
        // The fork has the host's context and extensions of the original session.
        let own = session.state_mut();
        let state = &trunk.session.state;
        own.dynamic_context.clone_from(&state.dynamic_context);
        own.extensions = state.extensions.clone();
        let remote = session.remote();
        let run = session.run_parts(trunk.prompt.clone());
        let output = until_stopped(&remote, run, stop).await;
        output.map_err(|error| error.to_string())
    }
}

impl<'s> Trunk<'s> {
    pub(super) fn of(session: &'s Session, prompt: Vec<Part>) -> Self {
        Self {
            session,
            run: session.view().runs().saturating_add(1),
            prompt,
        }
    }

    /// Returns the name of a branch's session.
    pub(super) fn name(&self, index: usize, attempt: u64) -> SessionId {
        let run = self.run;
        let place = match attempt {
            0 => format!("b{run}-{index}"),
            _ => format!("b{run}-{index}-{attempt}"),
        };
        named_below(self.session.id(), &place)
    }

    /// Creates a fork.
    async fn fork(&self, index: usize) -> Result<Lease, StoreError> {
        let (session, mut attempt) = (self.session, 0);
        let (store, entries) = (&*session.parts.store, session.entries);
        loop {
            let name = self.name(index, attempt);
            attempt += 1;
            match begin_fork(store, session.id(), entries, &name).await {
                Err(
                    StoreError::Busy { .. }
                    | StoreError::CannotFork {
                        why: ForkFault::Taken { .. },
                        ..
                    },
                ) if attempt < NAMES => {}
                begun => return begun,
            }
        }
    }
}
