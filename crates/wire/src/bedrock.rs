//! Bedrock's `Converse`, one shape for the models of many makers: requests and streamed
//! replies. Not `InvokeModel`, which takes each maker's own shape.

mod profile;
mod render;
mod stream;
mod write;

pub use crate::renderer::{render, render_next};
pub use profile::{Maker, Profile};
pub use render::Decided;
pub use stream::StreamState;

/// The origin of reasoning that goes back to Bedrock.
pub const ORIGIN: &str = "bedrock";
