//! OpenAI Responses, as OpenAI and those who copy it serve it, without storage on their side:
//! every request carries the whole history. Not Chat Completions; that is a wire of its own.

mod count;
mod hosted;
mod ids;
mod items;
mod pairing;
mod patch;
mod profile;
mod read;
mod render;
mod reply;
mod schema;
mod settings;
mod simulate;
mod stream;
mod usage;
mod validate;
mod write;

pub use crate::fault::MAX_FAULTS;
pub use crate::openai_chat::{Images, ParallelCalls, Slot, SystemRole};
pub use count::validate_count;
pub use hosted::{hosted_kinds, not_hosted};
pub(crate) use ids::is_name;
pub use items::ORIGIN;
pub(crate) use items::{PAIRS, is_clients, is_item};
pub use pairing::{tied, untied};
pub(crate) use patch::Instructions;
pub use profile::{CacheKey, Profile, ReasoningItems, Sampling, Strict, Summaries};
pub use read::{Chat, read};
pub use render::{MIN_OUTPUT, render, render_next};
pub use simulate::{encrypt, unreadable};
pub use stream::{StreamState, read_reply};
pub(crate) use validate::unfit;
pub use validate::{refusal, validate};
