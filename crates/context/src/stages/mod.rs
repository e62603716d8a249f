//! The built-in stages, one per file, in the order in which they usually run. A policy defines the
//! actual order.

mod arguments;
mod cap;
mod evict;
mod fill;
mod fit;
mod history;
mod lines;
mod prune;
mod sections;
mod summarize;

pub use arguments::{ARGUMENT_CHARS, ArgumentDigest, LEAST_ARGUMENT_CHARS};
pub use cap::Cap;
pub use evict::Evict;
pub use fill::Fill;
pub use fit::Fit;
pub use history::HistoryLimit;
pub use lines::{LINE_BYTES, Lines};
pub(crate) use prune::PruneWithoutTrigger;
pub use prune::{Prune, SessionPruneConfig};
pub use sections::{Section, Sections};
pub(crate) use summarize::LEAST_EXTRACT;
pub use summarize::{
    Author, EXTRACT_SHARE, LEAST_SUMMARY, MAX_SUMMARY, SUMMARY_SHARE, Summarize, SummaryConfig,
};
