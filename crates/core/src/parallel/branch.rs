//! One branch: an agent that runs the prompt in a fork of the session, within its reservation.

use std::sync::Arc;

use plimsoll_agent::run_id;
use plimsoll_context::Part;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::outcome::ParallelLoopResult;
use crate::agent::Agent;
use crate::caller::named_below;
use crate::error::{Error, contained};
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
    pub(super) agent: Agent,
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

    /// Reserves what the branch may use: one of `parts` equal parts of each kind that its agent does
    /// not limit.
    ///
    /// # Errors
    /// The reason why the branch may use nothing.
    pub(super) fn reserve(
        &mut self,
        reservation: &Reservation,
        most_turns: Option<u64>,
        parts: u64,
    ) -> Result<Reservation, String> {
        let mut limits = *self.agent.setup.limits;
        let turns = limits.max_turns();
        let turns = most_turns.map_or(turns, |most| most.min(turns));
        limits.max_turns = Some(turns);
        self.agent.setup.limits = Arc::new(limits);
        // Turns that the reservation limits are divided like the other kinds.
        let is_limited = reservation.left().max_turns.is_some();
        let with_below = turns.saturating_add(MAX_TURNS_BELOW);
        let with_below = (!is_limited).then_some(with_below);
        self.agent.reserve(reservation, with_below, parts)
    }

    /// Runs the branch with this index to its end.
    pub(super) async fn run(
        self,
        index: usize,
        part: Result<Reservation, String>,
        trunk: &Session,
        prompt: &[Part],
        stop: &CancellationToken,
    ) -> ParallelLoopResult {
        let (began, mut session_id) = (Instant::now(), name(trunk, index, 0));
        let answer = async {
            let part = part.as_ref().map_err(String::clone)?;
            let lease = fork(trunk, index)
                .await
                .map_err(|error| error.to_string())?;
            session_id = lease.session().clone();
            let output = self.answer(part, lease, trunk, prompt, stop).await;
            output.map_err(|error| error.to_string())
        };
        let (end, text) = match contained(answer).await {
            Ok(Ok(output)) => (Some(output.outcome.reason), output.outcome.text),
            Ok(Err(why)) => (None, why),
            Err(panic) => (None, format!("it broke down: {panic}")),
        };
        let setup = &self.agent.setup;
        ParallelLoopResult {
            branch: index,
            run_id: run_id(session_id.as_str(), &setup.config_id, next_run(trunk)),
            session_id,
            config_id: setup.config_id.clone(),
            model: setup.model.clone(),
            text,
            end,
            spent: part.map(|part| part.spent()).unwrap_or_default(),
            duration: began.elapsed(),
        }
    }

    /// Runs the prompt in a fork.
    async fn answer(
        &self,
        part: &Reservation,
        lease: Lease,
        trunk: &Session,
        prompt: &[Part],
        stop: &CancellationToken,
    ) -> Result<AgentOutput, Error> {
        let permissions = &trunk.run.setup().permissions;
        let agent = self.agent.within(part, Some((&trunk.parts, permissions)));
        let mut session = agent.open(lease, trunk.idle()).await?;
        session.below(part);
        // The fork has the host's context and extensions of the original session.
        let (own, state) = (session.state_mut(), &trunk.state);
        own.dynamic_context.clone_from(&state.dynamic_context);
        own.extensions = state.extensions.clone();
        let remote = session.remote();
        until_stopped(&remote, session.run_parts(prompt.to_vec()), stop).await
    }
}

/// Returns the number of the session's next run.
fn next_run(trunk: &Session) -> u64 {
    trunk.view().runs().saturating_add(1)
}

/// Returns the name of a branch's session.
pub(super) fn name(trunk: &Session, index: usize, attempt: u64) -> SessionId {
    let run = next_run(trunk);
    let place = match attempt {
        0 => format!("b{run}-{index}"),
        _ => format!("b{run}-{index}-{attempt}"),
    };
    named_below(trunk.id().as_str(), &place)
}

/// Creates the fork of a branch.
async fn fork(trunk: &Session, index: usize) -> Result<Lease, StoreError> {
    let (store, mut attempt) = (&*trunk.parts.store, 0);
    loop {
        let name = name(trunk, index, attempt);
        attempt += 1;
        match begin_fork(store, trunk.id(), trunk.entries, &name).await {
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
