//! OpenAI Chat Completions and everything compatible with it. Not OpenAI's Responses; that is a
//! wire of its own.

mod details;
mod dialect;
mod echo;
mod json_turns;
mod pairing;
mod parts;
mod patch;
mod pieces;
mod reach;
mod read;
mod render;
mod response;
mod settings;
mod stream;
mod usage;
mod validate;
mod write;

pub use crate::fault::MAX_FAULTS;
pub use crate::open_reply::{MAX_PARTS, MAX_REPLY};
pub(crate) use details::{AUDIO, keys as message_keys};
pub use dialect::{
    Arguments, CacheMarks, CallIds, CallNames, Dialect, EchoReasoning, EmptyReasoning, Images,
    NoContent, OutputKey, ParallelCalls, Prefill, SameRole, SeedKey, StreamUsage, SystemPlace,
    SystemRole, Template, Texts, ToolStyle, UserAfterTool, UserMessage, Voice,
};
pub use json_turns::TurnDecoder;
pub use parts::ORIGIN;
pub(crate) use parts::unknown_kind;
pub use patch::{Slot, patch_content};
pub use reach::{Reach, reach, takes_temperature};
pub(crate) use read::read_parsed;
pub use read::{Chat, read};
pub(crate) use render::render_list;
pub use render::{render, render_next};
pub use response::{
    CallPiece, Choice, CompletionDetails, CustomPiece, ErrorBody, ErrorDetail, Extra,
    FunctionPiece, MessagePiece, PromptDetails, Response, WireUsage,
};
pub use stream::{StreamState, read_reply};
pub(crate) use validate::is_prefix;
pub use validate::{refusal, validate};
