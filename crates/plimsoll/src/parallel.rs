//! Sends one prompt to several agents and keeps one of the answers.
//!
//! [`agent_loop_parallel`] runs the agents within shared limits; an [`EvaluationStrategy`] chooses
//! the answer. For agents as tools of other agents see [`tools`](crate::tools). `docs/parallel.md`
//! in the repository describes both.
//!
//! ```
//! use plimsoll::Agent;
//! use plimsoll::parallel::{Branch, ParallelOptions, PickFirst, agent_loop_parallel};
//! use plimsoll::session::new_session_id;
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (fast, careful) = (ScriptedProvider::new([Turn::say("42.")]), ScriptedProvider::new([]));
//!
//! let agent = Agent::builder(fast).build()?;
//! let mut session = agent.session(new_session_id()).await?;
//! let branches = vec![Branch::new(agent), Branch::new(Agent::builder(careful).build()?)];
//! let options = ParallelOptions::default();
//! let strategy = PickFirst;
//! let outcome = agent_loop_parallel(&mut session, "6 × 7?", branches, &strategy, options).await?;
//! println!("{}", outcome.text);
//! # Ok(())
//! # }
//! ```

pub use plimsoll_agent::BranchRecord;
pub use plimsoll_core::{
    Branch, Choice, Elaborate, Evaluation, EvaluationStrategy, JUDGE_TIMEOUT, JUDGEMENT, LlmJudge,
    MAX_BRANCHES, MAX_ELABORATED, MAX_JUDGED, ParallelLoopOutcome, ParallelLoopResult,
    ParallelOptions, PickFirst, TokenEfficient, agent_loop_parallel,
};
