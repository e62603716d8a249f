//! The stages that come with Plimsoll, one a file, in the order in which they usually run.
//! Not the order itself; that is a policy.

mod cap;
mod evict;
mod fit;
mod prune;
mod summarize;

pub use cap::Cap;
pub use evict::Evict;
pub use fit::Fit;
pub use prune::{Prune, SessionPruneConfig};
pub use summarize::{Author, MAX_SUMMARY, SOFT_MARK, SUMMARY_SHARE, Summarize, SummaryConfig};
