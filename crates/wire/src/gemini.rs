//! Gemini's `generateContent`, as Google's two hosts serve it: requests and streamed replies. Not
//! the Chat Completions that Google serves too.

mod profile;
mod render;
mod signed;
mod stream;
mod write;

pub use crate::renderer::{render, render_next};
pub use profile::{Profile, Thinking};
pub use stream::StreamState;

/// The origin of parts that go back to Gemini.
pub const ORIGIN: &str = "gemini";
