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
    /// The end of the run. `None`: the branch failed or could not begin.
    pub end: Option<EndReason>,
    /// Usage and cost of the branch, including sub-agents.
    pub spent: Spend,
    /// Duration of the branch.
    pub duration: Duration,
}

impl ParallelLoopResult {
    /// Returns `true` if the branch answered.
    #[must_use]
    pub fn answered(&self) -> bool {
        self.end.as_ref().is_some_and(EndReason::is_answer)
    }

    /// Returns one word for scripts: that of the run's end, or `died`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.end.as_ref().map_or("died", EndReason::word)
    }

    /// Returns the record for the log.
    pub(super) fn record(&self) -> BranchRecord {
        BranchRecord {
            session: self.session_id.to_string(),
            config: self.config_id.clone(),
            model: self.model.clone(),
            outcome: self.word().to_owned(),
            why: (!self.answered()).then(|| self.text.clone()),
            spent: self.spent,
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Returns a text with the reason why each branch has no answer.
pub(super) fn nobody(results: &[ParallelLoopResult]) -> String {
    let each = results.iter().map(|result| {
        let (config, model, word) = (&result.config_id, &result.model, result.word());
        format!("- {config} ({model}), {word}: {}", result.text.trim())
    });
    let each: Vec<String> = each.collect();
    format!("[No branch answered.]\n{}", each.join("\n"))
}
