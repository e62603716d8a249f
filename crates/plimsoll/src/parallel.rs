//! One prompt to several agents, of which one answer is kept.
//!
//! [`agent_loop_parallel`] runs them, within limits that they share; an [`EvaluationStrategy`] chooses. Agents
//! as tools of others are in [`tools`](crate::tools). `docs/parallel.md` in the repository has both.

pub use plimsoll_agent::BranchRecord;
pub use plimsoll_core::{
    BRANCHES_AT_ONCE, Branch, BranchEnd, Choice, Custom, EVALUATION_TIMEOUT, Elaborate, Evaluation,
    EvaluationStrategy, JUDGE_TIMEOUT, JUDGEMENT, JudgeModel, LlmJudge, Losers, MAX_BRANCHES,
    MAX_ELABORATED, MAX_JUDGED, ParallelLoopOutcome, ParallelLoopResult, ParallelOptions,
    PickFirst, TokenEfficient, agent_loop_parallel,
};
