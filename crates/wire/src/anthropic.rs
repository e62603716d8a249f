//! Anthropic Messages. Not Bedrock's or Vertex's wrapping of it; those carry the same body.

mod admission;
mod binding;
mod cautions;
mod hosted;
mod loops;
mod media;
mod models;
mod pairing;
mod patch;
mod pause;
mod profile;
mod read;
mod read_block;
mod render;
mod settings;
mod simulate;
mod stream;
mod stream_block;
mod usage;
mod validate;
mod validate_block;
mod validate_marks;
mod validate_settings;
mod write;

pub use crate::fault::MAX_FAULTS;
pub use admission::{admission, validate_count};
pub use binding::Prefix;
pub use cautions::cautions;
pub use hosted::{hosted_kinds, not_hosted};
pub(crate) use pause::{At, parted};
pub use profile::{
    Binding, Effort, ForcedTools, LaterSystem, NoThinking, Profile, Samplers, Temperature,
    ThinkingStyle, UnaskedThinking,
};
pub use read::{Chat, read};
pub use render::{Decided, render, render_next};
pub use settings::MIN_BUDGET;
pub use simulate::{sign, unsigned};
pub use stream::{StreamState, read_reply};
pub use usage::{CacheCreation, WireUsage};
pub(crate) use validate::unfit;
pub use validate::{refusal, validate, validate_announced};
pub(crate) use validate_settings::is_unasked;

pub use crate::open_reply::MAX_REPLY;
pub use crate::openai_chat::{Prefill, Slot};

/// The origin of blocks that go back to Anthropic.
pub const ORIGIN: &str = "anthropic";
/// The key of a breakpoint.
pub(crate) const MARK: &str = "cache_control";
