//! OpenAI Responses, of OpenAI and compatible servers, without storage on the server: every request
//! contains the whole history. Chat Completions is in `openai_chat`.

pub(crate) mod hosted;
pub(crate) mod items;
mod patch;
mod profile;
mod read;
pub(crate) mod render;
mod reply;
pub(crate) mod schema;
mod stream;
mod usage;
mod write;

pub use crate::compose::{render, render_next};
pub use hosted::{hosted_kinds, not_hosted};
pub use items::ORIGIN;
pub use patch::FORMAT;
pub use profile::{ReasoningItems, ResponsesProfile};
pub use read::read;
pub use render::MIN_OUTPUT;
pub use stream::{ResponsesStreamState, read_reply};
