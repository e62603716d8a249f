//! Layer 3 of Plimsoll: the agent builder, the async driver, the five extension traits
//! ([`Provider`], [`Tool`], [`SessionStore`], [`Gate`], [`Observer`]), retries and child processes.
//!
//! This crate knows no concrete provider, file format or wire format.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod accounts;
mod agent;
mod agent_state;
mod builder;
mod caller;
mod context_limits;
mod driver;
mod error;
mod fork;
mod gate;
mod hooks;
mod host_steps;
mod journal;
mod journaled_run;
mod loop_config;
mod memory_store;
mod observer;
mod output;
mod parallel;
mod parts;
pub mod process;
mod provider;
pub mod recall;
mod recall_tools;
mod remote;
mod reservation;
mod retry;
mod run_faults;
mod run_stream;
mod run_usage;
mod secret;
mod session;
mod session_operations;
mod settings;
mod silent_overflow;
mod store;
mod sub_agent;
pub mod telemetry;
pub mod testing;
mod timed_filter;
mod tool;
mod window;

pub use accounts::NothingLeft;
pub use agent::{Agent, RECALL_LEAST_WINDOW};
pub use agent_state::{AgentState, Extensions};
pub use builder::AgentBuilder;
pub use error::Error;
pub use fork::fork_session;
pub use gate::{AllowAll, DenyAll, Gate};
pub use hooks::{
    ANSWER_RETRIES, CommandHook, HOOK_TIMEOUT, Hook, HookContext, HookReply, Hooks, Later,
    MAX_HOOK_CALLS, MAX_HOOK_OUTPUT, Now, ToolDecision,
};
pub use host_steps::{MAX_STEP_RESULT, MAX_STEPS, MAX_STEPS_SIZE};
pub use journal::{
    JOURNAL_FORMAT, Journal, JournalFault, LocalJournal, LogHead, RunStart, StepEnd,
};
pub use journaled_run::{JournaledRun, refuse_journaled};
pub use loop_config::{AgentLoopConfig, agent_loop, agent_loop_continue};
pub use memory_store::MemoryStore;
pub use observer::Observer;
pub use output::AgentOutput;
pub use parallel::{
    Branch, Choice, Elaborate, Evaluation, EvaluationStrategy, JUDGE_TIMEOUT, JUDGEMENT, LlmJudge,
    MAX_BRANCHES, MAX_ELABORATED, MAX_JUDGED, ParallelLoopOutcome, ParallelLoopResult,
    ParallelOptions, PickFirst, TokenEfficient, agent_loop_parallel,
};
pub use plimsoll_agent::{EvictedMessage, HookInput, MAX_PARALLEL_TOOLS, Messages, UserMessage};
pub use provider::Provider;
pub use recall::{Hit, MessageKind, RecallError, RecallId, RecalledItem};
pub use recall_tools::{RECALL_PAGE, RECALL_PAGE_MAX, RecallTools};
pub use remote::{INBOX, Remote};
pub use reservation::{MAX_TURNS_BELOW, Reservation};
pub use retry::{FEW_ATTEMPTS, RetryConfig};
pub use run_stream::{MAX_WAITING_EVENTS, RunStream};
pub use secret::Secret;
pub use session::Session;
pub use settings::{BuilderSettings, DriverSettings, SUMMARY_TIMEOUT, TOOL_RETRIES};
pub use store::{
    BadSessionId, FileEdit, Fork, ForkFault, Lease, LogEntry, MAX_FORK_DEPTH, MAX_KEPT_FILE,
    PAGE_ENTRIES, Retention, SEARCH_BYTES, SEARCH_ENTRIES, SessionId, SessionInfo, SessionStore,
    StoreError, new_session_id,
};
pub use sub_agent::{
    LEAST_FOR_SUB_AGENT, MAX_DEPTH, MAX_SUB_AGENT_RESULT, SUB_AGENT_TIMEOUT, SubAgentTool,
    sub_agent,
};
pub use tool::{
    FnTool, MAX_TOOL_OUTPUT, MAX_TOOL_RETRIES, MAX_TOOL_UPDATE, TOOL_TIMEOUT, TOOL_UPDATES, Tool,
    ToolContext, ToolError, ToolOutput, parse_arguments, schema_of, tool,
};
pub use window::Window;
