//! Gemini's `generateContent` on Google's two hosts: requests and streamed replies. Google's Chat
//! Completions API belongs to `openai_chat`.

mod profile;
mod render;
mod signed;
mod stream;
mod write;

pub use crate::compose::{render, render_next};
pub use profile::{GeminiProfile, Thinking};
pub use stream::GeminiStreamState;

/// The origin of parts that are sent back to Gemini.
pub const ORIGIN: &str = "gemini";
