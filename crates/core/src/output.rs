//! [`AgentOutput`]: the result of a run.

use std::fmt;

use plimsoll_agent::{Cost, EndReason, Outcome, RunStep, Spend};
use plimsoll_context::{Bytes, Part, Tokens, Usage};

use crate::store::SessionId;

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    /// The session, which can be continued.
    pub session_id: SessionId,
    /// The answer. If a limit ended the run and the model could sum up, its summary. If a user, a hook
    /// or another limit ended it, the text so far, followed by a sentence in brackets with the
    /// reason; see [`EndReason::is_answer`].
    pub text: String,
    /// Why the run ended.
    pub reason: EndReason,
    /// Token usage of the run.
    pub tokens_used: Usage,
    /// The part of `tokens_used` spent on summaries, whose model may have other prices.
    pub summary_usage: Usage,
    /// Our estimate for calls whose provider reported no usage. Not included in `tokens_used`.
    pub estimated: Usage,
    /// Number of answered model calls.
    pub turns: u64,
    /// Number of executed tool calls.
    pub tool_calls: u64,
    /// Number of applied plans.
    pub plans: u64,
    /// Tokens freed by the plans.
    pub freed: Tokens,
    /// Cost of the run, including summaries and sub-agents.
    pub cost: Cost,
    /// Messages that came too late for the run.
    pub undelivered: Vec<Vec<Part>>,
    /// Whether the view was restored to its state before the run.
    pub rolled_back: bool,
    /// Peak memory held by the run, in bytes.
    pub peak_memory: Bytes,
    /// Shortened tool results, limited to the newest [`MAX_STEPS`](crate::MAX_STEPS) and
    /// [`MAX_STEPS_SIZE`](crate::MAX_STEPS_SIZE).
    pub steps: Vec<RunStep>,
    /// Number of older steps that were dropped.
    pub steps_dropped: u64,
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
            text: outcome.text,
            reason: outcome.reason,
            tokens_used: outcome.usage,
            summary_usage: outcome.summary_usage,
            estimated: outcome.estimated,
            turns: outcome.turns,
            tool_calls: outcome.tool_calls,
            plans: outcome.plans,
            freed: outcome.freed,
            cost: outcome.cost,
            undelivered: outcome.undelivered,
            rolled_back: outcome.rolled_back,
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
