//! The limits of a run: turns, tokens, time, money and memory, limits shared by several agents, and
//! loop detection.
//!
//! [`ExecutionLimits`](crate::ExecutionLimits) has all of them. A run that reaches a limit ends
//! with a text of the finished work, not with an error.
//!
//! ```
//! use std::time::Duration;
//! use plimsoll::limits::AtLimit;
//! use plimsoll::{Agent, Money};
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # use plimsoll::pricing::{PriceSheet, Rates};
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//! # let sheet = PriceSheet::of(Rates::FREE);
//!
//! let agent = Agent::builder(model)
//!     .max_turns(20)
//!     .max_duration(Duration::from_secs(300))
//!     .max_cost(Money::from_dollars(0.50)?)
//!     .at_limit(AtLimit::Finalize) // the last turn sums up, without tools
//!     .prices(sheet)
//!     .build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use plimsoll_agent::{
    AtLimit, CallKey, DoomLoopTracker, ExecutionTracker, IDENTICAL_TOOL_CALLS, LAST_ANSWER, Ledger,
    LimitKind, LoopVerdict, MAX_DURATION, MAX_HISTORY, MAX_TOTAL_TOKENS, MAX_TURNS, MIN_HISTORY,
    NEAR, Repetition,
};
pub use plimsoll_core::{MAX_TURNS_BELOW, NothingLeft, Reservation};
