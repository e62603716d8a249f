//! Gemini's `generateContent`, as Google's two hosts serve it: requests, streamed replies, and the
//! requests that it refuses. Not the Chat Completions that Google serves too.

mod pairing;
mod profile;
mod render;
mod signed;
mod stream;
mod validate;
mod write;

pub use crate::fault::MAX_FAULTS;
pub use profile::{Profile, Signatures, Thinking};
pub use render::{render, render_next};
pub use stream::StreamState;
pub use validate::{refusal, validate, validate_cache};

/// The origin of parts that go back to Gemini.
pub const ORIGIN: &str = "gemini";
