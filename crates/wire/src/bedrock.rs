//! Bedrock's `Converse`, one format for the models of many makers: requests and streamed replies.
//! `InvokeModel`, with a format for each maker, is not supported.

mod profile;
mod render;
mod stream;
mod write;

pub use crate::compose::{render, render_next};
pub use profile::{ConverseProfile, Maker};
pub(crate) use render::ConverseDecisions;
pub use stream::ConverseStreamState;

/// The origin of reasoning that is sent back to Bedrock.
pub const ORIGIN: &str = "bedrock";
