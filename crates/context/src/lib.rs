//! Floor 1 of Plimsoll: messages, token counting, transcript, budget, plans and stages.
//! Values and pure functions only: no file, clock, thread, socket, random source or async.

mod counter;
mod message;
mod reply;
mod tokens;
mod tool_spec;
mod usage;

pub use counter::{
    CALL_OVERHEAD, Chars4, IMAGE_DEFAULT, MESSAGE_OVERHEAD, TOOL_OVERHEAD, TokenCounter,
};
pub use message::{
    CallId, File, Image, Message, Opaque, Part, Source, Thinking, ToolCall, ToolResult,
};
pub use reply::{Delta, Reply, StopReason};
pub use tokens::{Bytes, Ppm, Tokens};
pub use tool_spec::ToolSpec;
pub use usage::Usage;
