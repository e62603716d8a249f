//! Floor 4 of Plimsoll: what recorded sessions would have cost under another context policy.
//!
//! A [`Recording`] is driven through a [`Way`] of keeping the context small, request by request;
//! the [`Bill`] says what a provider with a prompt cache would have charged. Our own ways are the
//! very code that runs live; the others are simple versions of what is common elsewhere, and
//! [`Way::Hindsight`] is the cheapest that anybody who drops the oldest could have done.
//! It calls no model: the recorded answers are given, whatever the view.

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
