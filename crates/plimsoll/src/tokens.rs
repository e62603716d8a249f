//! Token counters for texts, messages and requests, and their calibration with a provider's
//! figures.
//!
//! A [`TokenCounter`] belongs to an agent
//! ([`AgentBuilder::counter`](crate::AgentBuilder::counter)). [`Bpe`] counts like OpenAI's models,
//! [`Chars4`] assumes four characters per token, and [`Memo`] remembers counted texts.
//!
//! ```
//! use plimsoll::tokens::{Bpe, Memo, TokenCounter};
//!
//! let counter = Memo::new(Bpe::o200k());
//! assert_eq!(counter.text("What is a Plimsoll line?").0, 8);
//! ```

pub use plimsoll_context::{
    Bpe, Bytes, CALL_OVERHEAD, Calibration, Chars4, Estimate, IMAGE_DEFAULT, MEMO_ENTRIES,
    MEMO_MIN_LEN, MESSAGE_OVERHEAD, Memo, Ppm, SUMMARY_FRAME, TOOL_OVERHEAD, TokenCounter,
};
