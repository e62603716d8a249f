//! Bedrock's `Converse`, one shape for the models of many makers: requests, streamed replies, and the
//! requests that it refuses. Not `InvokeModel`, which takes each maker's own shape.

mod pairing;
mod profile;
mod render;
mod stream;
mod validate;
mod write;

pub use crate::fault::MAX_FAULTS;
pub use profile::{Maker, MixedTurn, Profile};
pub use render::{Decided, render, render_next};
pub use stream::StreamState;
pub use validate::{ERROR_TYPE, refusal, validate};

/// The origin of reasoning that goes back to Bedrock.
pub const ORIGIN: &str = "bedrock";
