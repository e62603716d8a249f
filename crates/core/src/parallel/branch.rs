//! One running branch: an agent that runs the prompt in a fork of the session, within its
//! reservation.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_agent::{EndReason, Entry, ExecutionLimits, RunId};
use plimsoll_context::Part;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::outcome::{BranchEnd, ParallelLoopResult};
use crate::agent::Agent;
use crate::driver::Parts;
use crate::error::Error;
use crate::remote::Remote;
use crate::reservation::{MAX_TURNS_BELOW, Reservation, requested};
use crate::session::{AgentState, Session};
use crate::store::{Fork, ForkFault, Lease, SessionId, SessionStore, StoreError};
use crate::sub_agent::{named_below, until_stopped};

/// How many names are tried for a fork. An evaluation ended by a crash may have taken some.
const NAMES: u64 = 16;

/// An agent that runs the prompt.
#[derive(Clone)]
pub struct Branch {
    pub(super) agent: Agent,
    pub(super) config_id: Option<String>,
}

/// The common starting point of all branches.
pub(super) struct Trunk {
    pub(super) parts: Arc<Parts>,
    pub(super) session: SessionId,
    /// Number of entries of the log, which all forks share.
    pub(super) entries: u64,
    /// Number of the next run.
    pub(super) run: u64,
    pub(super) idle: Option<Duration>,
    pub(super) state: Arc<AgentState>,
    pub(super) prompt: Vec<Part>,
}

/// A branch that has begun, as seen from outside.
pub(super) struct RunningBranch {
    pub(super) session: SessionId,
    pub(super) began: Instant,
    pub(super) reservation: Option<Reservation>,
    /// Set once the session is open.
    pub(super) remote: Arc<OnceLock<Remote>>,
    pub(super) stop: CancellationToken,
}

/// The result of a branch's task.
pub(super) struct BranchResult {
    pub(super) text: String,
    pub(super) reason: EndReason,
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

    pub(super) fn config(&self) -> &str {
        self.config_id
            .as_deref()
            .unwrap_or(&self.agent.setup.config_id)
    }

    /// Reserves what the branch may use: one of `parts` equal parts of each kind that its agent does
    /// not limit.
    pub(super) fn reserve(
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
        if part.limits().max_cost.is_some() && self.agent.setup.sheet.is_none() {
            return Err(
                "the prices of its model are unknown, but the branches share a cost limit; give \
                 its agent prices"
                    .to_owned(),
            );
        }
        if part.limits().max_cost.is_some()
            && let Some(model) = self.agent.parts.unpriced_summarizer(&self.agent.setup)
        {
            return Err(format!(
                "the prices of `{model}`, which writes its summaries, are unknown, but the \
                 branches share a cost limit; set summarizer_prices"
            ));
        }
        Ok((part, limits))
    }

    /// Returns the result of a branch with the given end.
    pub(super) fn result(
        &self,
        index: usize,
        trunk: &Trunk,
        begun: &RunningBranch,
        end: BranchEnd,
        text: String,
    ) -> ParallelLoopResult {
        let spent = begun.reservation.as_ref();
        let spent = spent.map(Reservation::spent).unwrap_or_default();
        ParallelLoopResult {
            branch: index,
            session_id: begun.session.clone(),
            run_id: RunId::new(begun.session.as_str(), self.config(), trunk.run),
            config_id: self.config().to_owned(),
            model: self.agent.setup.model.clone(),
            text,
            end,
            usage: spent.usage,
            cost: spent.cost,
            turns: spent.turns,
            tool_calls: spent.tool_calls,
            duration: begun.began.elapsed(),
            rank: 0,
        }
    }

    /// Runs the prompt in the fork.
    pub(super) async fn run(
        self,
        trunk: Arc<Trunk>,
        lease: Lease,
        (part, limits): (Reservation, ExecutionLimits),
        remote: Arc<OnceLock<Remote>>,
        stop: CancellationToken,
    ) -> Result<BranchResult, Error> {
        let mut agent = self.agent.within(&part, &limits, Some(&trunk.parts), None);
        if let Some(config) = self.config_id {
            agent.setup.config_id = config;
        }
        let mut session = agent.open(lease, trunk.idle).await?;
        session.below(&part);
        attach(&mut session, &trunk.state);
        let reach = session.remote();
        let _ = remote.set(reach.clone());
        let run = session.run_parts(trunk.prompt.clone());
        let output = until_stopped(&reach, run, &stop).await?;
        Ok(BranchResult {
            text: output.text,
            reason: output.reason,
        })
    }
}

impl Trunk {
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
    pub(super) async fn fork(&self, index: usize) -> Result<Lease, Error> {
        let store = &*self.parts.store;
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

/// Attaches the host's context and extensions of the original session to the fork.
fn attach(session: &mut Session, state: &AgentState) {
    let own = session.state_mut();
    own.dynamic_context.clone_from(&state.dynamic_context);
    own.extensions = state.extensions.clone();
}
