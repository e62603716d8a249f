//! Floor 2 of Plimsoll: one run of an agent as a state machine. It decides; it calls nobody:
//! no file, clock, thread, socket, random source or async. See [`Run`].

mod batch;
mod digest;
mod entry;
mod event;
mod expect;
mod failure;
mod ladder;
mod leave;
mod limits;
mod loop_id;
mod loop_record;
mod notice;
mod outcome;
mod pins;
mod repeats;
mod request;
mod run;
mod setup;
mod state;
mod step;
mod summary;
mod turn;
mod work;

pub use digest::MAX_SUMMARY_CALLS;
pub use entry::{Entry, LOG_FORMAT, Lesson};
pub use event::{Event, ToolPhase};
pub use failure::Failure;
pub use limits::{AtLimit, ExecutionLimits, MAX_TURNS};
pub use loop_id::{BadLoopId, DEFAULT_CONFIG, LoopId};
pub use loop_record::LoopConfigSnapshot;
pub use outcome::{EndReason, Outcome};
pub use pins::{MAX_PINS, PinError};
pub use request::{Expects, Request, Sampling, ToolChoice};
pub use run::{MAX_STEERS, Run};
pub use setup::{KnownTool, Leave, Setup, SummaryModel};
pub use state::{FoldError, State};
pub use step::{Answer, Input, Leaving, LeavingItem, Question, Step, Verdict};
pub use summary::MAX_SUMMARY_FAILURES;
