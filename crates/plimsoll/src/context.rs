//! The view that a model gets of a session: its limits, the messages that stay, and its current
//! size.
//!
//! [`ContextStrategy`](crate::ContextStrategy) selects a preset; [`ContextConfig`] and
//! [`CompactionConfig`] have the details. To write a stage of your own, see
//! [`policy`](crate::policy).
//!
//! ```
//! use plimsoll::context::Threshold;
//! use plimsoll::{Agent, Tokens};
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//!
//! let agent = Agent::builder(model)
//!     .configure(|it| it.trigger = Threshold::Sent(Tokens(60_000))) // a larger request is made smaller
//!     .configure(|it| it.target = Some(Threshold::Sent(Tokens(40_000)))) // down to this
//!     .build()?;
//! # Ok::<(), plimsoll::Error>(())
//! ```

pub use plimsoll_agent::{Contents, MAX_PINS, MAX_SUMMARY_CALLS, PinError, Share, WindowUse};
pub use plimsoll_context::{
    ARGUMENT_CHARS, ArgumentDigest, Budget, COLD_TARGET, CannotFit, CompactionConfig,
    CompactionScope, ContextConfig, Counts, EXTRACT_SHARE, Exchange, ExchangeKind, FALLBACK_WINDOW,
    Form, Gap, HistoryLimit, Item, LEAST_ARGUMENT_CHARS, LEAST_SUMMARY, MAX_RESULT, MAX_SUMMARY,
    MIN_SIDE, Marker, NOTE_MAX, OUTPUT_RESERVE, OwnStages, Pin, RESULT_SHARE, RemovedMessages,
    SUMMARY_SHARE, Seq, SessionPruneConfig, SummaryConfig, TARGET, TARGET_OF_EXPLICIT, TRIGGER,
    Threshold, Thresholds, Transcript, ViewLimits, WORKING_TARGET, WORKING_TRIGGER, clip,
    head_tail, nearest, shorten, shorten_bytes,
};
pub use plimsoll_core::SUMMARY_TIMEOUT;
