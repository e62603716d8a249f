//! [`Stage`]: one way to make a view smaller.
//!
//! A stage is pure: it reads the draft, the budget and the reason, and edits the draft. It uses no
//! clock and does no I/O.

use std::fmt::Debug;

use crate::budget::Budget;
use crate::draft::Draft;
use crate::plan::Trigger;

/// One way to make a view smaller. Stages run in order until the draft is small enough.
///
/// The draft enforces the invariants of a view, so a custom stage cannot produce a view that a
/// provider rejects.
///
/// ```
/// use plimsoll_context::{Budget, Draft, ExchangeKind, Stage, Trigger};
///
/// /// Drops every text-only answer as soon as the view is over its trigger.
/// #[derive(Debug)]
/// struct DropChatter;
///
/// impl Stage for DropChatter {
///     fn name(&self) -> &str {
///         "drop_chatter"
///     }
///     fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
///         if !draft.is_due(budget) {
///             return;
///         }
///         for index in 0..draft.exchanges().len() {
///             let exchange = &draft.exchanges()[index];
///             if exchange.kind == ExchangeKind::Complete && exchange.at.len() == 1 {
///                 draft.drop_exchange(index);
///             }
///         }
///     }
/// }
/// ```
pub trait Stage: Debug + Send + Sync {
    /// Returns the name of the stage, as shown in plans and events.
    fn name(&self) -> &str;

    /// Returns `true` if the stage edits the view before every request, even if no plan is due.
    fn is_eager(&self) -> bool {
        false
    }

    /// Proposes edits to the draft. It may propose none.
    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, why: Trigger);
}
