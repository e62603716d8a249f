//! [`EvaluationStrategy`]: chooses one of several answers. This module contains the strategies that
//! need no model.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_context::TokenCounter;

use super::outcome::ParallelLoopResult;
use crate::reservation::Reservation;

/// Chooses one of several answers.
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
    pub(super) counter: Arc<dyn TokenCounter>,
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

/// A strategy made from a function of the results.
///
/// ```
/// use plimsoll_core::{Custom, ParallelLoopResult};
/// let longest = Custom::new("longest", |results: &[ParallelLoopResult]| {
///     let answered = results.iter().filter(|result| result.answered());
///     answered.max_by_key(|result| result.text.len()).map(|result| result.branch)
/// });
/// ```
pub struct Custom<F> {
    name: String,
    choose: F,
}

impl Evaluation<'_> {
    /// Returns the results with an answer.
    pub fn answered(&self) -> impl Iterator<Item = &ParallelLoopResult> {
        self.results.iter().filter(|result| result.answered())
    }

    /// Adds a warning for the user.
    pub fn warn(&self, text: impl Into<String>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(text.into());
    }

    /// Warns and chooses the answer with the fewest tokens, after a strategy has failed.
    pub(super) fn fall_back(&self, why: &str) -> Choice {
        self.warn(format!(
            "{why}; of the answers, the one that took the fewest tokens is taken"
        ));
        self.cheapest()
    }

    fn cheapest(&self) -> Choice {
        let cheapest = self
            .answered()
            .min_by_key(|result| (result.spent.usage.total_tokens(), result.branch));
        chosen(cheapest)
    }
}

fn chosen(result: Option<&ParallelLoopResult>) -> Choice {
    match result {
        Some(result) => Choice::Branch(result.branch),
        None => Choice::Nothing {
            why: "no branch answered".to_owned(),
        },
    }
}

#[async_trait]
impl EvaluationStrategy for PickFirst {
    fn name(&self) -> &str {
        "pick_first"
    }

    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice {
        chosen(evaluation.answered().next())
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

impl<F> Custom<F>
where
    F: Fn(&[ParallelLoopResult]) -> Option<usize> + Send + Sync,
{
    /// Creates a strategy from a function. If it returns `None`, no answer is chosen.
    pub fn new(name: impl Into<String>, choose: F) -> Self {
        Self {
            name: name.into(),
            choose,
        }
    }
}

#[async_trait]
impl<F> EvaluationStrategy for Custom<F>
where
    F: Fn(&[ParallelLoopResult]) -> Option<usize> + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice {
        match (self.choose)(evaluation.results) {
            Some(branch) => Choice::Branch(branch),
            None => Choice::Nothing {
                why: format!("`{}` took none of the answers", self.name),
            },
        }
    }
}
