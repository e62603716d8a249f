//! Sends one prompt to several agents and keeps one of the answers.
//!
//! [`agent_loop_parallel`] runs the agents within shared limits; an [`EvaluationStrategy`] chooses
//! the answer. For agents as tools of other agents see [`tools`](crate::tools). `docs/parallel.md`
//! in the repository describes both.

pub use plimsoll_agent::BranchRecord;
pub use plimsoll_core::{
    BRANCHES_AT_ONCE, Branch, BranchEnd, Choice, Custom, EVALUATION_TIMEOUT, Elaborate, Evaluation,
    EvaluationStrategy, JUDGE_TIMEOUT, JUDGEMENT, JudgeModel, LlmJudge, Losers, MAX_BRANCHES,
    MAX_ELABORATED, MAX_JUDGED, ParallelLoopOutcome, ParallelLoopResult, ParallelOptions,
    PickFirst, TokenEfficient, agent_loop_parallel,
};
