//! [`EvaluationStrategy`]: which of several answers it is, and the three ways to say so without a
//! model. Not the running of the branches.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use plimsoll_context::TokenCounter;

use super::outcome::ParallelLoopResult;
use crate::allowance::Allowance;

/// Says which of several answers it is.
#[async_trait]
pub trait EvaluationStrategy: Send + Sync {
    /// What it is called in events and in the log.
    fn name(&self) -> &str;

    /// Whether what has ended so far decides it; then the rest may be cancelled. `None` where a
    /// branch has not ended.
    fn is_decided(&self, so_far: &[Option<ParallelLoopResult>]) -> bool {
        let _ = so_far;
        false
    }

    /// How many branches' share of what may be used it wants for itself.
    fn shares(&self) -> u64 {
        0
    }

    /// Chooses. Asked only if at least one branch answered. A choice of a branch without an answer is
    /// refused with a warning, and the cheapest answer is taken.
    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice;
}

/// What is chosen from.
pub struct Evaluation<'a> {
    /// What was asked.
    pub prompt: &'a str,
    /// What each branch did, in the order in which they were given.
    pub results: &'a [ParallelLoopResult],
    /// What the choice may use; what it reserves from it counts in the total.
    pub allowance: &'a Allowance,
    pub(super) counter: Arc<dyn TokenCounter>,
    pub(super) warnings: Mutex<Vec<String>>,
}

/// Which it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The answer of this branch, from 0.
    Branch(usize),
    /// An answer that is made of several.
    Merged {
        /// The answer.
        text: String,
        /// The model that wrote it, as `provider/name`.
        model: String,
    },
    /// None of them.
    Nothing {
        /// Why.
        why: String,
    },
}

/// The first branch, in the order in which they were given, that answered; or the one that answered
/// first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PickFirst {
    /// In the order in which they were given.
    #[default]
    Configured,
    /// In the order of time.
    Fastest,
}

/// Of the branches that answered, the one that took the fewest tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEfficient;

/// Your own: a function of what each branch did.
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
    /// The branches that answered.
    pub fn answered(&self) -> impl Iterator<Item = &ParallelLoopResult> {
        self.results.iter().filter(|result| result.answered())
    }

    /// Says something that a person should know.
    pub fn warn(&self, text: impl Into<String>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.push(text.into());
    }

    /// What is chosen where a strategy fails: the fewest tokens.
    pub(super) fn fall_back(&self, why: &str) -> Choice {
        self.warn(format!(
            "{why}; of the answers, the one that took the fewest tokens is taken"
        ));
        self.cheapest()
    }

    fn cheapest(&self) -> Choice {
        let cheapest = self
            .answered()
            .min_by_key(|result| (result.usage.total_tokens(), result.branch));
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
        match self {
            Self::Configured => "pick_first",
            Self::Fastest => "pick_fastest",
        }
    }

    fn is_decided(&self, so_far: &[Option<ParallelLoopResult>]) -> bool {
        let answered = |result: &&ParallelLoopResult| result.answered();
        match self {
            // All before it have ended without an answer.
            Self::Configured => so_far
                .iter()
                .map_while(Option::as_ref)
                .any(|r| r.answered()),
            Self::Fastest => so_far.iter().flatten().any(|result| answered(&result)),
        }
    }

    async fn evaluate(&self, evaluation: &Evaluation<'_>) -> Choice {
        let mut answered = evaluation.answered();
        chosen(match self {
            Self::Configured => answered.next(),
            Self::Fastest => answered.min_by_key(|result| result.rank),
        })
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
    /// A strategy that does what a function says; `None` is none of them.
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
        let choose = AssertUnwindSafe(|| (self.choose)(evaluation.results));
        match std::panic::catch_unwind(choose) {
            Ok(Some(branch)) => Choice::Branch(branch),
            Ok(None) => Choice::Nothing {
                why: format!("`{}` took none of the answers", self.name),
            },
            Err(_) => evaluation.fall_back(&format!("`{}` broke down", self.name)),
        }
    }
}
