//! [`agent_loop_parallel`]: several agents run the same prompt, each in a fork of a session.
//!
//! The session takes over the answer of one of them, or one answer written from all. To run several
//! tasks at once, use one session for each.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::{Event, ExecutionLimits, Spend};
use plimsoll_context::Part;

use crate::driver;
use crate::error::Error;
use crate::remote::{RemoteCommand, UserMessage};
use crate::reservation::Reservation;
use crate::session::Session;
use crate::sub_agent::MAX_DEPTH;
use crate::telemetry::evaluation;

mod adopt;
mod branch;
mod judge;
mod outcome;
mod race;
mod strategy;

pub use branch::Branch;
pub use judge::{
    Elaborate, JUDGE_TIMEOUT, JUDGEMENT, JudgeModel, LlmJudge, MAX_ELABORATED, MAX_JUDGED,
};
pub use outcome::{BranchEnd, ParallelLoopOutcome, ParallelLoopResult};
pub use strategy::{Choice, Custom, Evaluation, EvaluationStrategy, PickFirst, TokenEfficient};

use adopt::{ChosenAnswer, adopt};
use branch::Trunk;
use race::Race;

/// Maximum number of branches in one evaluation. A judge cannot distinguish more.
pub const MAX_BRANCHES: usize = 8;
/// Default number of concurrent branches.
pub const BRANCHES_AT_ONCE: usize = 4;
/// Timeout for choosing an answer.
pub const EVALUATION_TIMEOUT: Duration = Duration::from_secs(300);

/// Options of a parallel evaluation.
#[derive(Debug, Clone, Default)]
pub struct ParallelOptions {
    /// Limits for all branches and the choice together: tokens, money, tool calls and time.
    /// `max_turns` applies to each branch.
    ///
    /// Amounts that a branch's own agent does not limit are shared equally, and unused amounts are
    /// available to later branches. Default: each branch has only its own limits.
    pub limits: Option<ExecutionLimits>,
    /// The reservation to charge, if this is part of a larger task, such as a tool call.
    pub reservation: Option<Reservation>,
    /// Maximum number of concurrent branches. Default [`BRANCHES_AT_ONCE`].
    pub at_once: Option<usize>,
    /// What happens to the remaining branches after the decision.
    pub losers: Losers,
}

/// The handling of the remaining branches after the decision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Losers {
    /// They continue to their end. Their answers are in their sessions and cost money.
    #[default]
    Finish,
    /// They are cancelled, and waiting branches do not begin.
    Cancel,
}

/// Runs a prompt with several agents, each in a fork of the session, and takes over the answer that
/// `strategy` chooses.
///
/// The other branches remain as sessions of their own, `{session}.b{run}-{branch}`. A branch that
/// fails, panics or reaches a limit loses. If no branch answers, the session's view does not
/// change, and the outcome contains the reason for each branch.
///
/// An interrupt of the session interrupts all branches. Messages sent meanwhile go to each branch.
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
    let (id, count) = (session.id().clone(), branches.len());
    let work = evaluate(session, prompt.into(), branches, strategy, options);
    let outcome = evaluation(&id, strategy.name(), count, work).await;
    session.parts.observers.catch_up().await;
    outcome
}

async fn evaluate(
    session: &mut Session,
    prompt: UserMessage,
    branches: Vec<Branch>,
    strategy: &dyn EvaluationStrategy,
    options: ParallelOptions,
) -> Result<ParallelLoopOutcome, Error> {
    let prompt = prompt.checked()?;
    check(&branches, &options)?;
    driver::between_runs(session).await?;
    session.run.open_log();
    driver::settle(session).await?;
    let trunk = Arc::new(trunk(session, prompt).await?);
    let reservation = match reserve(&options) {
        Ok(reservation) => reservation,
        Err(fault) => return Err(Error::Build(vec![fault])),
    };
    let names = (0..branches.len()).filter_map(|index| trunk.name(index, 0));
    session.parts.tell(Event::ParallelStarted {
        strategy: strategy.name().to_owned(),
        branches: names.map(String::from).collect(),
    });
    let open = session.inbox.open();
    let mut race = Race::new(session, Arc::clone(&trunk), branches, strategy, options);
    race.run(&reservation).await;
    let Race {
        results,
        interrupted,
        mut undelivered,
        ..
    } = race;
    let mut results: Vec<ParallelLoopResult> = results.into_iter().flatten().collect();
    results.sort_by_key(|result| result.branch);
    let mut warnings = Vec::new();
    let judging = reservation.for_call(None);
    let choice = if interrupted || !results.iter().any(ParallelLoopResult::answered) {
        Choice::Nothing {
            why: outcome::nobody(&results),
        }
    } else {
        let chosen = choose(session, strategy, &trunk, &results, &judging);
        let (choice, told, late) = chosen.await;
        warnings = told;
        undelivered.extend(late);
        choice
    };
    drop(open);
    undelivered.extend(session.inbox.close().into_iter().map(|spoken| spoken.parts));
    undelivered
        .iter()
        .for_each(|parts| session.parts.too_late(parts));
    let judged = judging.spent();
    let (text, taken) = match &choice {
        Choice::Branch(index) => match results.get(*index) {
            Some(result) => (result.text.clone(), ChosenAnswer::Branch(result)),
            None => (outcome::nobody(&results), ChosenAnswer::Nothing),
        },
        Choice::Merged { text, model } => (text.clone(), ChosenAnswer::Merged { text, model }),
        Choice::Nothing { why } => (why.clone(), ChosenAnswer::Nothing),
    };
    let winner = match taken {
        ChosenAnswer::Branch(result) => Some(result.branch),
        _ => None,
    };
    let answered = !matches!(taken, ChosenAnswer::Nothing);
    adopt(session, &trunk, taken, strategy.name(), &results, judged).await?;
    let spent = results.iter().map(ParallelLoopResult::spent);
    let spent = spent.fold(judged, Spend::combine);
    for text in &warnings {
        let text = text.clone();
        session.parts.tell(Event::Warning { text });
    }
    session.parts.tell(Event::ParallelEnded { winner, spent });
    Ok(ParallelLoopOutcome {
        text,
        winner,
        strategy: strategy.name().to_owned(),
        answered,
        results,
        tokens_used: spent.usage,
        cost: spent.cost,
        judged,
        warnings,
        undelivered,
    })
}

/// Collects the common starting point of all branches.
async fn trunk(session: &Session, prompt: Vec<Part>) -> Result<Trunk, Error> {
    Ok(Trunk {
        parts: Arc::clone(&session.parts),
        session: session.id().clone(),
        entries: session.entries,
        run: session.view().runs().saturating_add(1),
        idle: session.idle(),
        state: Arc::clone(&session.state),
        prompt,
    })
}

/// Asks the strategy. There is a choice even if the strategy fails.
async fn choose(
    session: &Session,
    strategy: &dyn EvaluationStrategy,
    trunk: &Trunk,
    results: &[ParallelLoopResult],
    reservation: &Reservation,
) -> (Choice, Vec<String>, Vec<Vec<Part>>) {
    let texts = trunk.prompt.iter().filter_map(Part::as_text);
    let prompt = texts.collect::<Vec<&str>>().join("\n");
    let evaluation = Evaluation {
        prompt: &prompt,
        results,
        reservation,
        counter: Arc::clone(session.view().transcript().counter()),
        warnings: Mutex::default(),
    };
    let choosing = AssertUnwindSafe(strategy.evaluate(&evaluation)).catch_unwind();
    let mut late = Vec::new();
    let choice = tokio::select! {
        biased;
        choosing = tokio::time::timeout(EVALUATION_TIMEOUT, choosing) => match choosing {
            Ok(Ok(choice)) => choice,
            Ok(Err(_)) => evaluation.fall_back("the choice broke down"),
            Err(_) => evaluation.fall_back("there was no choice in time"),
        },
        () = interrupted(session, &mut late) => Choice::Nothing {
            why: "[Interrupted before one was chosen.]".to_owned(),
        },
    };
    let choice = match choice {
        Choice::Branch(index) if !results.get(index).is_some_and(ParallelLoopResult::answered) => {
            let why = format!("branch {index} was chosen, which has no answer");
            evaluation.fall_back(&why)
        }
        Choice::Merged { text, .. } if text.trim().is_empty() => {
            evaluation.fall_back("the answer made of all is empty")
        }
        choice => choice,
    };
    let warnings = evaluation.warnings.into_inner();
    let warnings = warnings.unwrap_or_else(PoisonError::into_inner);
    (choice, warnings, late)
}

/// Completes on an interrupt. Messages received meanwhile are too late and are collected in `late`.
async fn interrupted(session: &Session, late: &mut Vec<Vec<Part>>) {
    loop {
        match session.inbox.next().await {
            RemoteCommand::Interrupt => return,
            RemoteCommand::Say(spoken) => late.push(spoken.parts),
        }
    }
}

fn check(branches: &[Branch], options: &ParallelOptions) -> Result<(), Error> {
    let mut faults = Vec::new();
    match branches.len() {
        0 => faults.push("there are no branches; give at least one".to_owned()),
        many if many > MAX_BRANCHES => faults.push(format!(
            "there are {many} branches; give at most {MAX_BRANCHES}"
        )),
        _ => {}
    }
    if options.at_once == Some(0) {
        faults.push("at_once is 0; let at least one branch run".to_owned());
    }
    if let Some(limits) = &options.limits {
        faults.extend(limits.faults());
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Error::Build(faults))
    }
}

/// Reserves what all branches and the choice may use together.
fn reserve(options: &ParallelOptions) -> Result<Reservation, String> {
    let limits = ExecutionLimits {
        // They apply to each branch.
        max_turns: None,
        ..options.limits.clone().unwrap_or_default()
    };
    match &options.reservation {
        None => Ok(Reservation::new(&limits)),
        Some(above) if above.depth() >= MAX_DEPTH => Err(format!(
            "agents are {MAX_DEPTH} deep here already; run the prompt by one agent"
        )),
        Some(above) => {
            let part = above.reserve(&limits);
            let part = part.map_err(|nothing| format!("{nothing} for any branch"))?;
            Ok(part.deeper())
        }
    }
}
