//! Layer 2 of Plimsoll: one run of an agent as a state machine.
//!
//! The machine only decides. It uses no files, clocks, threads, sockets, random sources or async code.
//! See [`Run`].

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod arguments;
mod batch;
mod between_runs;
mod cache_use;
mod call_target;
mod decode;
mod display;
mod doom_loop;
mod entry;
mod event;
mod failure;
mod filters;
mod forecast;
mod hook_input;
mod ledger;
mod limits;
mod memory;
mod notice;
mod outcome;
mod overflow_recovery;
mod pattern;
mod permission;
mod phase;
mod pins;
mod planning;
mod request;
mod resume;
mod run;
mod run_end;
mod run_id;
mod run_record;
mod run_start;
mod setup;
mod spend;
mod state;
mod step;
mod summary;
mod summary_writer;
mod tool_calls;
mod tool_names;
mod tool_queue;
mod turn;
mod undo;
mod window_use;

pub use arguments::{fit, read_arguments};
pub use batch::{CallKey, MAX_BATCH};
pub use between_runs::{CompactError, MAX_FOCUS};
pub use call_target::{CallTarget, CommandTarget, PathTarget, ShellText, SimpleCommand, TargetOf};
pub use doom_loop::{
    DoomLoopTracker, LoopConsequence, LoopVerdict, MAX_HISTORY, MIN_HISTORY, Repetition,
};
pub use entry::{BranchRecord, Entry, LOG_FORMAT, Waiting};
pub use event::{
    AppliedPlan, EVENT_VERSION, Event, MessagePhase, RunStep, SessionEvent, ToolPhase, event_schema,
};
pub use failure::Failure;
pub use filters::{FilterResult, InputFilter, InputFilters};
pub use forecast::KEPT_FOR_RESULT;
pub use hook_input::{Decision, EvictedMessage, HookInput, HookPoint, Messages};
pub use ledger::{ExecutionTracker, LAST_ANSWER, Ledger, NEAR};
pub use limits::{
    AtLimit, CountTokens, ExecutionLimits, IDENTICAL_TOOL_CALLS, LimitKind, MAX_DURATION,
    MAX_TOTAL_TOKENS, MAX_TURNS,
};
pub use notice::refusal;
pub use outcome::{EndReason, Outcome};
pub use pattern::Pattern;
pub use permission::{MAX_RULES, Permission, PermissionMode, PermissionRule, Permissions};
pub use pins::{MAX_PINS, PinError};
pub use request::{Expects, Request, Sampling, ThinkingLevel, ToolChoice};
pub use run::Run;
pub use run_id::{DEFAULT_CONFIG, run_id};
pub use run_record::{RunReader, RunRecord, run_records};
pub use run_start::MAX_WAITING;
pub use setup::{KnownTool, RunConfigSnapshot, Setup, SummaryModel, TurnTrigger};
pub use spend::{Cost, Spend};
pub use state::{FoldError, State};
pub use step::{Answer, Input, Now, PartialAnswer, Question, Step, UserMessage};
pub use summary_writer::{MAX_SUMMARY_CALLS, escape_tags};
pub use tool_names::{MAX_NAME, MAX_NAME_EDITS, ToolNames};
pub use tool_queue::{MAX_PARALLEL_TOOLS, ToolExecutionStrategy};
pub use undo::{MAX_UNDO, UndoError};
pub use window_use::{Contents, Share, WindowUse};
