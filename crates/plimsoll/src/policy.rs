//! Policies for compaction: stages that propose edits of a view, the resulting plan, and its price.
//!
//! A [`Policy`] is a sequence of [`Stage`]s. A stage is a pure function that edits a [`Draft`]; the
//! draft refuses edits that no provider would accept. `examples/context_policy.rs` in the
//! repository runs one.
//!
//! ```
//! use plimsoll::context::{Budget, ExchangeKind};
//! use plimsoll::policy::{Draft, Stage, Trigger};
//!
//! /// Drops whole exchanges, a call with its results, the oldest first.
//! #[derive(Debug)]
//! struct OldestFirst;
//!
//! impl Stage for OldestFirst {
//!     fn name(&self) -> &str {
//!         "oldest_first"
//!     }
//!
//!     fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
//!         for index in 0..draft.exchanges().len() {
//!             let is_complete = draft.exchanges()[index].kind == ExchangeKind::Complete;
//!             if is_complete && draft.tokens() > budget.target {
//!                 draft.drop_exchange(index); // Refused if it is pinned or too new.
//!             }
//!         }
//!     }
//! }
//! ```

pub use plimsoll_context::{
    Author, Cap, Draft, Edit, Evict, Fill, Fit, LINE_BYTES, Lines, Plan, PlanContext, PlanError,
    Policy, Price, PriceFacts, Proposal, Prune, ReadySummary, Reason, Recall, Rendition, Section,
    Sections, SeqRange, Stage, Summarize, SummaryRange, Trigger,
};
