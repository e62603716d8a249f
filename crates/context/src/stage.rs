//! [`Stage`]: one way to make a view lighter. A stage is pure: it reads the draft, the budget and
//! the reason, and edits the draft; it sees no clock and does no I/O.

use std::fmt::Debug;

use crate::budget::Budget;
use crate::draft::Draft;
use crate::plan::Trigger;

/// One way to make a view lighter; stages run in order until the draft is light enough.
///
/// The draft refuses what the invariants forbid, so a stage of your own cannot produce a view that
/// a provider rejects.
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
    /// Its name, as plans and events show it.
    fn name(&self) -> &str;

    /// Returns `true` if it edits the view before every request, whether a plan is due or not.
    fn is_eager(&self) -> bool {
        false
    }

    /// Proposes edits to the draft, or nothing.
    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, why: Trigger);
}
