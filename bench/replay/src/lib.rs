//! The cost of recorded sessions under another context policy. Measurements use it, not the product.
//!
//! A [`Recording`] is replayed with a [`Way`] of compacting the context, request by request. The
//! resulting [`Bill`] contains the charges of a provider with a prompt cache. Plimsoll's own
//! policies use the same code as in live runs. The others are simple versions of common approaches,
//! and [`Way::Hindsight`] is the cheapest possible way of dropping the oldest messages.
//!
//! No model is called: the recorded answers are used, regardless of the view.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod bill;
mod compactor;
mod error;
mod hindsight;
mod meter;
mod recording;
mod retention;
mod rivals;
mod simulate;
mod steady;
mod trail;
mod way;

pub use bill::Bill;
pub use compactor::Compactor;
pub use error::ReplayError;
pub use hindsight::MAX_CELLS;
pub use recording::{MAX_LINE, Recording, Times, read};
pub use retention::{Retention, Share};
pub use rivals::{SUMMARIZER_PROMPT, SUMMARY};
pub use simulate::{simulate, simulate_compactor, simulate_with};
pub use steady::{STEADY_PROMPTS, STEADY_RESULT, STEADY_TURNS, steady_sessions};
pub use way::{Keep, PlimsollSettings, Reads, Way};
