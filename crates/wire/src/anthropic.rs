//! Anthropic Messages. Bedrock and Vertex AI wrap the same body.

mod binding;
pub(crate) mod hosted;
pub(crate) mod loops;
mod media;
mod models;
mod patch;
pub(crate) mod pause;
mod profile;
mod read;
mod read_block;
pub(crate) mod render;
pub(crate) mod settings;
mod stream;
mod stream_block;
mod usage;
mod write;

pub use crate::compose::{render, render_next};
pub use binding::Prefix;
pub use hosted::{hosted_kinds, not_hosted};
pub use patch::FORMAT;
pub use profile::{EffortSupport, MessagesProfile, NoThinking, ThinkingStyle};
pub use read::read;
pub(crate) use render::MessagesDecisions;
pub use settings::MIN_BUDGET;
pub use stream::{MessagesStreamState, read_reply};

pub use crate::open_reply::MAX_REPLY;

/// The origin of blocks that are sent back to Anthropic.
pub const ORIGIN: &str = "anthropic";
/// The key of a breakpoint.
pub const MARK: &str = "cache_control";
