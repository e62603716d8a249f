//! OpenAI Chat Completions and everything compatible with it. OpenAI's Responses API is in
//! `openai_responses`.

pub(crate) mod details;
mod dialect;
mod document;
mod json_turns;
pub(crate) mod model_support;
pub(crate) mod parts;
mod pieces;
pub(crate) mod read;
pub(crate) mod render;
mod settings;
mod stream;
pub(crate) mod usage;
mod write;

pub use crate::compose::render;
pub use crate::open_reply::{MAX_PARTS, MAX_REPLY};
pub use dialect::{
    CacheMarks, Dialect, EchoReasoning, EmptyReasoning, ErrorStyle, NoContent, Template, ToolStyle,
};
pub use document::FORMAT;
pub use json_turns::TurnDecoder;
pub use model_support::{Reach, reach, takes_temperature};
pub use parts::ORIGIN;
pub use read::read;
pub use stream::{ChatStreamState, read_reply};
