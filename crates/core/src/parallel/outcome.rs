//! [`ParallelLoopOutcome`], the outcome of a parallel evaluation, and [`ParallelLoopResult`], the
//! result of each branch.

use std::time::Duration;

use plimsoll_agent::{BranchRecord, Cost, EndReason, Spend};
use plimsoll_context::{Part, Usage};

use crate::store::SessionId;

/// The outcome of a parallel evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelLoopOutcome {
    /// The answer or, if there is none, the reason for each branch.
    pub text: String,
    /// Index of the winning branch; `None` if no branch answered or the answer was written from
    /// several.
    pub winner: Option<usize>,
    /// Name of the strategy.
    pub strategy: String,
    /// Whether there is an answer. Only then has the session's view changed.
    pub answered: bool,
    /// The results in the order of the branches.
    pub results: Vec<ParallelLoopResult>,
    /// Usage of all branches and the choice.
    pub tokens_used: Usage,
    /// Cost of all branches and the choice.
    pub cost: Cost,
    /// Usage and cost of the choice alone.
    pub judged: Spend,
    /// Warnings about the choice, for the user.
    pub warnings: Vec<String>,
    /// Messages received meanwhile that no branch has read.
    pub undelivered: Vec<Vec<Part>>,
}

/// The result of one branch.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelLoopResult {
    /// Index of the branch, from 0.
    pub branch: usize,
    /// The session of the branch, a fork of the original one.
    pub session_id: SessionId,
    /// Id of the run.
    pub run_id: String,
    /// Name of the configuration.
    pub config_id: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// The answer, or the reason why there is none.
    pub text: String,
    /// How the branch ended.
    pub end: BranchEnd,
    /// Usage and cost of the branch, including sub-agents.
    pub spent: Spend,
    /// Duration of the branch.
    pub duration: Duration,
}

/// The end of a branch.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BranchEnd {
    /// The run ended.
    Ended(EndReason),
    /// The evaluation was interrupted.
    Cancelled,
    /// The branch failed.
    Died,
    /// The branch could not begin.
    NotStarted,
}

impl BranchEnd {
    /// Returns one word for scripts: that of the run's end, or `cancelled`, `died`, `not_started`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ended(reason) => reason.word(),
            Self::Cancelled => "cancelled",
            Self::Died => "died",
            Self::NotStarted => "not_started",
        }
    }

    /// Returns `true` if the branch answered.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Ended(reason) if reason.is_answer())
    }
}

impl ParallelLoopResult {
    /// Returns `true` if the branch answered.
    #[must_use]
    pub fn answered(&self) -> bool {
        self.end.is_answer()
    }

    /// Returns the reason if there is no answer.
    fn why(&self) -> Option<String> {
        let has_reason = !self.answered() && self.end != BranchEnd::Cancelled;
        has_reason.then(|| self.text.clone())
    }

    /// Returns the record for the log.
    pub(super) fn record(&self) -> BranchRecord {
        BranchRecord {
            session: self.session_id.to_string(),
            config: self.config_id.clone(),
            model: self.model.clone(),
            outcome: self.end.word().to_owned(),
            why: self.why(),
            spent: self.spent,
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Returns a text with the reason why each branch has no answer.
pub(super) fn nobody(results: &[ParallelLoopResult]) -> String {
    let each = results.iter().map(|result| {
        let why = result.why();
        let why = why.as_deref().map_or("no reason was given", str::trim);
        let (config, model, word) = (&result.config_id, &result.model, result.end.word());
        format!("- {config} ({model}), {word}: {why}")
    });
    let each: Vec<String> = each.collect();
    format!("[No branch answered.]\n{}", each.join("\n"))
}
