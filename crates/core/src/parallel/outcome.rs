//! [`ParallelLoopOutcome`]: what a parallel evaluation came to, and [`ParallelLoopResult`], what each of
//! its branches did. Not the log's record of them.

use std::time::Duration;

use plimsoll_agent::{BranchRecord, Cost, EndReason, LoopId, Spend};
use plimsoll_context::{Part, Usage};

use crate::store::SessionId;

/// What a parallel evaluation came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelLoopOutcome {
    /// The answer or, where there is none, a sentence that says why of each branch.
    pub text: String,
    /// The branch whose answer it is, from 0; `None` where none answered, or where the answer is
    /// made of several.
    pub winner: Option<usize>,
    /// By what it was chosen.
    pub strategy: String,
    /// Whether there is an answer: only then has the session's view changed.
    pub answered: bool,
    /// The branches, in the order in which they were given.
    pub results: Vec<ParallelLoopResult>,
    /// What all of it has used: every branch, and the choice.
    pub tokens_used: Usage,
    /// What all of it has cost.
    pub cost: Cost,
    /// The part of it that the choice has used.
    pub judged: Spend,
    /// What a person should know of the choice.
    pub warnings: Vec<String>,
    /// What was said meanwhile and no branch has read.
    pub undelivered: Vec<Vec<Part>>,
}

/// What one branch did.
#[derive(Debug, Clone, PartialEq)]
pub struct ParallelLoopResult {
    /// The branch, from 0.
    pub branch: usize,
    /// Its session, a fork of the one that was asked.
    pub session_id: SessionId,
    /// Its run there.
    pub loop_id: LoopId,
    /// Its configuration.
    pub config_id: String,
    /// Its model, as `provider/name`.
    pub model: String,
    /// Its answer, or a sentence that says why there is none.
    pub text: String,
    /// How it ended.
    pub end: BranchEnd,
    /// What it has used.
    pub usage: Usage,
    /// What that has cost.
    pub cost: Cost,
    /// Model calls that were answered, those of its sub-agents included.
    pub turns: u64,
    /// Tool calls that ran, those of its sub-agents included.
    pub tool_calls: u64,
    /// How long it took.
    pub duration: Duration,
    /// How many had ended before it.
    pub rank: usize,
}

/// How a branch ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BranchEnd {
    /// Its run came to an end.
    Ended(EndReason),
    /// Another was good enough, or somebody interrupted all of them.
    Cancelled,
    /// It broke down.
    Died {
        /// How.
        why: String,
    },
    /// It could not begin.
    NotStarted {
        /// Why not.
        why: String,
    },
}

impl BranchEnd {
    /// One word for scripts: that of the run's end, or `cancelled`, `died`, `not_started`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ended(reason) => reason.word(),
            Self::Cancelled => "cancelled",
            Self::Died { .. } => "died",
            Self::NotStarted { .. } => "not_started",
        }
    }

    /// Whether it answered.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Ended(reason) if reason.is_answer())
    }
}

impl ParallelLoopResult {
    /// Whether it answered.
    #[must_use]
    pub fn answered(&self) -> bool {
        self.end.is_answer()
    }

    /// What it has used, in one.
    #[must_use]
    pub fn spent(&self) -> Spend {
        Spend {
            usage: self.usage,
            cost: self.cost,
            turns: self.turns,
            tool_calls: self.tool_calls,
            ..Spend::default()
        }
    }

    /// Why there is no answer, where there is none.
    fn why(&self) -> Option<String> {
        match &self.end {
            BranchEnd::Ended(reason) if reason.is_answer() => None,
            BranchEnd::Ended(_) => Some(self.text.clone()),
            BranchEnd::Cancelled => None,
            BranchEnd::Died { why } | BranchEnd::NotStarted { why } => Some(why.clone()),
        }
    }

    /// For the log.
    pub(super) fn record(&self) -> BranchRecord {
        BranchRecord {
            session: self.session_id.to_string(),
            config: self.config_id.clone(),
            model: self.model.clone(),
            outcome: self.end.word().to_owned(),
            why: self.why(),
            spent: self.spent(),
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// A sentence that says why nobody answered.
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
