//! [`agent_loop_parallel`]: several agents run the same prompt, each in a fork of a session.
//!
//! The session takes over the answer of one of them, or one answer written from all. To run several
//! tasks at once, use one session for each.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use plimsoll_agent::{Entry, Event, ExecutionLimits, Outcome, Spend, UserMessage};
use plimsoll_context::{Message, Money, Part, SettingFault, StopReason, Tokens, Usage};
use tokio_util::sync::CancellationToken;

use crate::driver;
use crate::error::{Error, lock};
use crate::remote::checked;
use crate::reservation::Reservation;
use crate::session::Session;

mod branch;
mod judge;
mod outcome;
mod strategy;

pub use branch::Branch;
pub use judge::{Elaborate, JUDGE_TIMEOUT, JUDGEMENT, LlmJudge, MAX_ELABORATED, MAX_JUDGED};
pub use outcome::{ParallelLoopOutcome, ParallelLoopResult};
pub use strategy::{Choice, Evaluation, EvaluationStrategy, PickFirst, TokenEfficient};

/// Maximum number of branches in one evaluation. A judge cannot distinguish more.
pub const MAX_BRANCHES: usize = 8;
/// Options of a parallel evaluation.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParallelOptions {
    /// Limits for all branches and the choice together: tokens, money, tool calls and time.
    /// `max_turns` applies to each branch.
    ///
    /// Amounts that a branch's own agent does not limit are shared equally. Default: each branch has
    /// only its own limits.
    pub limits: Option<ExecutionLimits>,
}

/// Runs a prompt with several agents, each in a fork of the session, and takes over the answer that
/// `strategy` chooses.
///
/// The other branches remain as sessions of their own, `{session}.b{run}-{branch}`. A branch that
/// fails, panics or reaches a limit loses. If no branch answers, the session's view does not
/// change, and the outcome contains the reason for each branch.
///
/// An interrupt of the session interrupts all branches. Messages sent meanwhile are not delivered.
///
/// ```
/// use plimsoll_core::testing::{ScriptedProvider, Turn};
/// use plimsoll_core::{
///     Agent, Branch, ParallelOptions, TokenEfficient, agent_loop_parallel, new_session_id,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let long = ScriptedProvider::new([Turn::say("The answer, after long thought, is 42.")]);
/// let short = ScriptedProvider::new([Turn::say("42.")]);
/// let agent = Agent::builder(long).build()?;
/// let other = Agent::builder(short).build()?;
///
/// let mut session = agent.session(new_session_id()).await?;
/// let branches = vec![
///     Branch::new(agent).config_id("long"),
///     Branch::new(other).config_id("short"),
/// ];
/// let options = ParallelOptions::default();
/// let outcome =
///     agent_loop_parallel(&mut session, "6 × 7?", branches, &TokenEfficient, options).await?;
/// assert_eq!((outcome.winner, outcome.text.as_str()), (Some(1), "42."));
/// assert_eq!(session.view().transcript().items().len(), 2);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the prompt is empty, if there are no branches or more than [`MAX_BRANCHES`], or if the
/// session's log cannot be read or written.
pub async fn agent_loop_parallel(
    session: &mut Session,
    prompt: impl Into<UserMessage>,
    branches: Vec<Branch>,
    strategy: &dyn EvaluationStrategy,
    options: ParallelOptions,
) -> Result<ParallelLoopOutcome, Error> {
    let prompt = checked(prompt)?.parts;
    check(&branches, &options)?;
    let opened = session.between_runs(|run| {
        run.open_log();
        Ok(())
    });
    opened.await?;
    let reservation = Reservation::new(&ExecutionLimits {
        max_turns: None,
        ..options.limits.unwrap_or_default()
    });
    let name = strategy.name().to_owned();
    let names = (0..branches.len()).map(|index| branch::name(session, index, 0));
    session.parts.tell(Event::ParallelStarted {
        strategy: name.clone(),
        branches: names.map(String::from).collect(),
    });
    let open = session.inbox.open();
    let turns = options.limits.and_then(|limits| limits.max_turns);
    // The reservation is divided by the number of branches and the shares of the choice.
    let parts = (1..=branches.len() as u64 + strategy.shares()).rev();
    let branches = branches.into_iter().zip(parts).map(|(mut branch, parts)| {
        let part = branch.reserve(&reservation, turns, parts);
        (branch, part)
    });
    let (results, interrupted) = run_all(session, &prompt, branches.collect()).await;
    let judging = reservation.for_call(None);
    let evaluation = Evaluation {
        prompt: &Part::texts(&prompt),
        results: &results,
        reservation: &judging,
        warnings: Mutex::default(),
    };
    let choice = if interrupted || evaluation.answered().next().is_none() {
        let why = outcome::nobody(&results);
        Choice::Nothing { why }
    } else {
        choose(session, strategy, &evaluation).await
    };
    let warnings = std::mem::take(&mut *lock(&evaluation.warnings));
    drop(open);
    let undelivered = session.close_inbox();
    let judged = judging.spent();
    let adopted = adopt(session, prompt, &choice, name.clone(), &results, judged);
    let (winner, text) = adopted.await?;
    let spent = results.iter().map(|result| result.spent);
    let spent = spent.fold(judged, Spend::combine);
    session.parts.warn(warnings.clone());
    session.parts.tell(Event::ParallelEnded { winner, spent });
    Ok(ParallelLoopOutcome {
        text,
        winner,
        strategy: name,
        answered: !matches!(choice, Choice::Nothing { .. }),
        results,
        tokens_used: spent.usage,
        cost: spent.cost,
        judged,
        warnings,
        undelivered,
    })
}

/// Runs all branches to their end. Returns their results, and whether they were interrupted.
async fn run_all(
    session: &Session,
    prompt: &[Part],
    branches: Vec<(Branch, Result<Reservation, String>)>,
) -> (Vec<ParallelLoopResult>, bool) {
    let stop = CancellationToken::new();
    let runs = branches.into_iter().enumerate();
    let runs = runs.map(async |(index, (branch, part))| {
        let result = branch.run(index, part, session, prompt, &stop).await;
        session.parts.tell(Event::BranchEnded {
            branch: index,
            record: result.record(),
        });
        result
    });
    let mut runs = join_all(runs);
    loop {
        tokio::select! {
            biased;
            results = &mut runs => return (results, stop.is_cancelled()),
            _ = session.inbox.next(false) => stop.cancel(),
        }
    }
}

/// Asks the strategy. There is a choice even if the strategy names no answer.
async fn choose(
    session: &Session,
    strategy: &dyn EvaluationStrategy,
    evaluation: &Evaluation<'_>,
) -> Choice {
    let choice = tokio::select! {
        biased;
        choice = strategy.evaluate(evaluation) => choice,
        _ = session.inbox.next(false) => Choice::Nothing {
            why: "[Interrupted before one was chosen.]".to_owned(),
        },
    };
    let results = evaluation.results;
    match choice {
        Choice::Branch(index) if !results.get(index).is_some_and(ParallelLoopResult::answered) => {
            let why = format!("branch {index} was chosen, which has no answer");
            evaluation.fall_back(&why)
        }
        Choice::Merged { text, .. } if text.trim().is_empty() => {
            evaluation.fall_back("the answer made of all is empty")
        }
        choice => choice,
    }
}

/// Records the evaluation and takes over the chosen answer, in a single write of the log. Returns the
/// branch of the answer, and the answer or the reason why there is none.
async fn adopt(
    session: &mut Session,
    prompt: Vec<Part>,
    choice: &Choice,
    strategy: String,
    results: &[ParallelLoopResult],
    judged: Spend,
) -> Result<(Option<usize>, String), Error> {
    let (winner, text, entries) = match choice {
        Choice::Branch(index) => match results.get(*index) {
            Some(result) => {
                let mut log = session.parts.store.load(&result.session_id).await?;
                let is_fork = |entry: &Entry| matches!(entry, Entry::Forked { .. });
                let begins = log.iter().rposition(is_fork).map_or(0, |at| at + 1);
                let own = log.split_off(begins);
                (Some(*index), result.text.clone(), own)
            }
            None => (None, outcome::nobody(results), Vec::new()),
        },
        Choice::Merged { text, model } => {
            (None, text.clone(), merged(session, prompt, text, model))
        }
        Choice::Nothing { why } => (None, why.clone(), Vec::new()),
    };
    let branched = Entry::Branched {
        strategy,
        branches: results.iter().map(ParallelLoopResult::record).collect(),
        winner,
        judged,
    };
    session.run.adopt(branched, entries)?;
    let written = driver::settle(session).await;
    // Tool results of the branch are not steps of a run of this session.
    let _ = session.steps.take();
    written.map(|()| (winner, text))
}

/// Returns the entries for the prompt and a merged answer. Their usage is part of the record of the
/// branches and of the choice.
fn merged(session: &Session, prompt: Vec<Part>, text: &str, model: &str) -> Vec<Entry> {
    vec![
        Entry::RunStarted {
            run: session.view().runs().saturating_add(1),
            model: model.to_owned(),
            system: "".into(),
            tools: Vec::new(),
            config: None,
        },
        Entry::Message {
            message: Arc::new(Message::User { parts: prompt }),
            queued: None,
        },
        Entry::Reply {
            message: Arc::new(Message::Assistant {
                parts: vec![Part::text(text)],
            }),
            stop: StopReason::Stop,
            usage: None,
            estimated: Usage::default(),
            counted: Tokens::ZERO,
            cost: Some(Money(0)),
        },
        Entry::RunEnded {
            outcome: Outcome::answered(text),
        },
    ]
}

fn check(branches: &[Branch], options: &ParallelOptions) -> Result<(), Error> {
    let (mut faults, count) = (Vec::new(), branches.len());
    if !(1..=MAX_BRANCHES).contains(&count) {
        let text = format!("there are {count} branches; give 1 to {MAX_BRANCHES}");
        faults.push(SettingFault::new(&[], text));
    }
    let limits = options.limits.iter();
    faults.extend(limits.flat_map(ExecutionLimits::faults));
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Error::Build(faults))
    }
}
