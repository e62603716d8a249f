//! [`EvaluationStrategy`]: chooses one of several answers. This module contains the strategies that
//! need no model.

use std::sync::Mutex;

use async_trait::async_trait;

use super::outcome::ParallelLoopResult;
use crate::error::lock;
use crate::reservation::Reservation;

/// Chooses one of several answers. A function of the results is a strategy as well:
///
/// ```
/// use plimsoll_core::{EvaluationStrategy, ParallelLoopResult};
/// let longest = |results: &[ParallelLoopResult]| {
///     let answered = results.iter().filter(|result| result.answered());
///     answered.max_by_key(|result| result.text.len()).map(|result| result.branch)
/// };
/// assert_eq!(longest.name(), "custom");
/// ```
#[async_trait]
pub trait EvaluationStrategy: Send + Sync {
    /// Returns the name used in events and in the log.
    fn name(&self) -> &str;

    /// Returns the size of the strategy's own share of the limits, counted in shares of a branch.
    fn shares(&self) -> u64 {
        0
    }

    /// Chooses an answer. Only called if at least one branch answered. Choosing a branch without an
    /// answer causes a warning, and the answer with the fewest tokens is taken.
    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice;
}

/// The input of a choice.
pub struct Evaluation<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The results in the order of the branches.
    pub results: &'a [ParallelLoopResult],
    /// What the choice may use. Its usage counts towards the total.
    pub reservation: &'a Reservation,
    pub(super) warnings: Mutex<Vec<String>>,
}

/// A chosen answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The answer of this branch, from 0.
    Branch(usize),
    /// An answer written from several.
    Merged {
        /// The answer.
        text: String,
        /// The model that wrote it, as `provider/name`.
        model: String,
    },
    /// None of the answers.
    Nothing {
        /// The reason.
        why: String,
    },
}

/// Chooses the first branch that answered, in the order of the branches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PickFirst;

/// Chooses the answer with the fewest tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEfficient;

impl Evaluation<'_> {
    /// Returns the results with an answer.
    pub fn answered(&self) -> impl Iterator<Item = &ParallelLoopResult> {
        self.results.iter().filter(|result| result.answered())
    }

    /// Adds a warning for the user.
    pub fn warn(&self, text: impl Into<String>) {
        lock(&self.warnings).push(text.into());
    }

    /// Warns and chooses the answer with the fewest tokens, after a strategy has failed.
    pub(super) fn fall_back(&self, why: &str) -> Choice {
        self.warn(format!(
            "{why}; of the answers, the one that took the fewest tokens is taken"
        ));
        self.cheapest()
    }

    fn cheapest(&self) -> Choice {
        let tokens = |result: &&ParallelLoopResult| result.spent.usage.total_tokens();
        let cheapest = self.answered().min_by_key(tokens);
        chosen(cheapest.map(|result| result.branch), "no branch answered")
    }
}

fn chosen(branch: Option<usize>, why_not: &str) -> Choice {
    let nothing = || Choice::Nothing {
        why: why_not.to_owned(),
    };
    branch.map_or_else(nothing, Choice::Branch)
}

#[async_trait]
impl EvaluationStrategy for PickFirst {
    fn name(&self) -> &str {
        "pick_first"
    }

    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice {
        let first = evaluation.answered().next();
        chosen(first.map(|result| result.branch), "no branch answered")
    }
}

#[async_trait]
impl EvaluationStrategy for TokenEfficient {
    fn name(&self) -> &str {
        "token_efficient"
    }

    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice {
        evaluation.cheapest()
    }
}

/// The strategy `custom`: a function of the results. If it returns `None`, no answer is chosen.
#[async_trait]
impl<F> EvaluationStrategy for F
where
    F: Fn(&[ParallelLoopResult]) -> Option<usize> + Send + Sync,
{
    fn name(&self) -> &str {
        "custom"
    }

    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice {
        let branch = self(evaluation.results);
        chosen(branch, "the function took none of the answers")
    }
}
