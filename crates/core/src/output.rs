//! [`AgentOutput`]: the result of a run.

use std::fmt;
use std::ops::Deref;

use plimsoll_agent::{Outcome, RunStep, Spend};
use plimsoll_context::Bytes;

use crate::store::SessionId;

/// The result of a run. The fields of its [`Outcome`] are read like its own, as in `output.text`.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    /// The session, which can be continued.
    pub session_id: SessionId,
    /// How the run ended, and what it used.
    pub outcome: Outcome,
    /// Peak memory held by the run, in bytes.
    pub peak_memory: Bytes,
    /// Shortened tool results, limited to the newest [`MAX_STEPS`](crate::MAX_STEPS) and
    /// [`MAX_STEPS_SIZE`](crate::MAX_STEPS_SIZE).
    pub steps: Vec<RunStep>,
    /// Number of older steps that were dropped.
    pub steps_dropped: u64,
}

impl Deref for AgentOutput {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
}

impl fmt::Display for AgentOutput {
    /// Formats the reason and the usage, such as "answered: 3 turns, 2 tool calls, read 120 (50 %
    /// cached), wrote 40, $0.0012". The answer is in `text`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.word(), self.spend())
    }
}

impl AgentOutput {
    /// Creates the output from an outcome alone. Steps and memory are empty, since only the process
    /// of the run knows them.
    #[must_use]
    pub fn new(session_id: SessionId, outcome: Outcome) -> Self {
        Self {
            session_id,
            outcome,
            peak_memory: Bytes(0),
            steps: Vec::new(),
            steps_dropped: 0,
        }
    }

    /// Returns everything that the run spent.
    pub(crate) fn spend(&self) -> Spend {
        Spend {
            usage: self.tokens_used,
            estimated: self.estimated,
            cost: self.cost,
            turns: self.turns,
            tool_calls: self.tool_calls,
        }
    }
}
