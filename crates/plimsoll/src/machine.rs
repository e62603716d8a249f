//! One run as a state machine without I/O, for programs that drive the loop in their own runtime or
//! workflow engine. Also the entries of a session's log, and [`State`], which is computed from
//! them.
//!
//! [`Run::poll`] returns the next step, [`Run::handle`] takes its result. `examples/one_turn.rs` in
//! the repository is a complete program.
//!
//! ```
//! use std::sync::Arc;
//! use plimsoll::machine::{Input, Now, Run, Setup, Step};
//! use plimsoll::tokens::{Bpe, Memo};
//! use plimsoll::{ContextStrategy, Part};
//!
//! let policy = ContextStrategy::default().policy(Default::default(), Default::default());
//! let setup = Setup::new("test/test", Arc::new(Memo::new(Bpe::o200k())), policy);
//! let mut run = Run::resume(&[], setup)?;
//! run.handle(Now::default(), Input::User(vec![Part::text("What is 6 × 7?")].into()));
//! let request = loop {
//!     match run.poll() {
//!         Step::Call(request) => break request,
//!         _ => {} // entries to store, events to show
//!     }
//! };
//! assert_eq!(request.messages.len(), 1);
//! # Ok::<(), plimsoll::machine::FoldError>(())
//! ```

pub use plimsoll_agent::{
    Decision, Entry, FoldError, Input, KEPT_FOR_RESULT, KnownTool, LOG_FORMAT, MAX_BATCH, MAX_NAME,
    MAX_NAME_EDITS, Now, Outcome, Run, Setup, State, Step, SummaryModel, ToolNames, UserMessage,
    Waiting, fit, refusal,
};
