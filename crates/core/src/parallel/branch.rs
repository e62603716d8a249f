//! One branch: an agent that runs the prompt in a fork of the session, within its reservation.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::{EndReason, run_id};
use plimsoll_context::{Part, SettingFault};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::outcome::ParallelLoopResult;
use crate::agent::Agent;
use crate::agent_state::AgentState;
use crate::caller::named_below;
use crate::error::Error;
use crate::error::panic_message;
use crate::fork::begin_fork;
use crate::output::AgentOutput;
use crate::parts::Parts;
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
pub(super) struct Trunk {
    parts: Arc<Parts>,
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
    pub(super) index: usize,
    agent: Agent,
    session: SessionId,
    /// What the branch may use. Nothing is charged to it before something is reserved.
    part: Reservation,
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
    /// Reserves the branch's part and forks the session. Returns the reason if that fails.
    pub(super) async fn prepare(
        (index, branch): (usize, Branch),
        trunk: &Trunk,
        reservation: &Reservation,
        most_turns: Option<u64>,
        parts: u64,
    ) -> (Self, Result<Lease, String>) {
        let name = trunk.name(index, 0);
        let mut running = Self {
            index,
            agent: branch.agent,
            session: name.unwrap_or_else(|| trunk.session.clone()),
            part: Reservation::unlimited(),
            began: Instant::now(),
        };
        if let Err(why) = running.reserve(reservation, most_turns, parts) {
            return (running, Err(why));
        }
        let lease = trunk.fork(index).await.map_err(|error| error.to_string());
        if let Ok(lease) = &lease {
            running.session = lease.session().clone();
        }
        (running, lease)
    }

    /// Reserves what the branch may use: one of `parts` equal parts of each kind that its agent does
    /// not limit.
    fn reserve(
        &mut self,
        reservation: &Reservation,
        most_turns: Option<u64>,
        parts: u64,
    ) -> Result<(), String> {
        let mut limits = *self.agent.setup.limits;
        let turns = limits.max_turns();
        let turns = most_turns.map_or(turns, |most| most.min(turns));
        limits.max_turns = Some(turns);
        // Turns that the reservation limits are divided like the other kinds.
        let is_limited = reservation.left().max_turns.is_some();
        let with_below = turns.saturating_add(MAX_TURNS_BELOW);
        let with_below = (!is_limited).then_some(with_below);
        self.part = self
            .agent
            .reserve(reservation, &limits, with_below, parts)?;
        self.agent.setup.limits = Arc::new(limits);
        Ok(())
    }

    /// Runs the branch to its end.
    pub(super) async fn run(
        self,
        trunk: &Trunk,
        lease: Result<Lease, String>,
        stop: &CancellationToken,
    ) -> ParallelLoopResult {
        let lease = match lease {
            Ok(lease) => lease,
            Err(why) => return self.result(trunk, None, why),
        };
        let run = AssertUnwindSafe(self.answer(trunk, lease, stop)).catch_unwind();
        let why = match run.await {
            Ok(Ok(output)) => return self.result(trunk, Some(output.reason), output.text),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("it broke down: {}", panic_message(&*panic)),
        };
        self.result(trunk, None, why)
    }

    async fn answer(
        &self,
        trunk: &Trunk,
        lease: Lease,
        stop: &CancellationToken,
    ) -> Result<AgentOutput, Error> {
        let limits = &self.agent.setup.limits;
        let agent = self
            .agent
            .within(&self.part, limits, Some(&trunk.parts), None);
        let mut session = agent.open(lease, trunk.idle).await?;
        session.below(&self.part);
        // The fork has the host's context and extensions of the original session.
        let own = session.state_mut();
        own.dynamic_context.clone_from(&trunk.state.dynamic_context);
        own.extensions = trunk.state.extensions.clone();
        let remote = session.remote();
        until_stopped(&remote, session.run_parts(trunk.prompt.clone()), stop).await
    }

    /// Returns the result of the branch with the given end.
    pub(super) fn result(
        &self,
        trunk: &Trunk,
        end: Option<EndReason>,
        text: String,
    ) -> ParallelLoopResult {
        let setup = &self.agent.setup;
        ParallelLoopResult {
            branch: self.index,
            session_id: self.session.clone(),
            run_id: run_id(self.session.as_str(), &setup.config_id, trunk.run),
            config_id: setup.config_id.clone(),
            model: setup.model.clone(),
            text,
            end,
            spent: self.part.spent(),
            duration: self.began.elapsed(),
        }
    }
}

impl Trunk {
    pub(super) fn of(session: &Session, prompt: Vec<Part>) -> Self {
        Self {
            parts: Arc::clone(&session.parts),
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
        let (store, mut attempt) = (&*self.parts.store, 0);
        loop {
            let Some(name) = self.name(index, attempt) else {
                let fault = SettingFault::new(&[], "a branch's session has no name");
                return Err(Error::Build(vec![fault]));
            };
            attempt += 1;
            match begin_fork(store, &self.session, self.entries, &name).await {
                Err(
                    StoreError::Busy { .. }
                    | StoreError::CannotFork {
                        why: ForkFault::Taken { .. },
                        ..
                    },
                ) if attempt < NAMES => {}
                begun => return Ok(begun?),
            }
        }
    }
}
