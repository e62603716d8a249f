//! Floor 3 of Plimsoll: the agent builder, the one async driver, the five doors ([`Provider`],
//! [`Tool`], [`SessionStore`], [`Gate`], [`Observer`]), retry and child processes.
//! It knows no provider, no file format and no wire.

mod gate;
mod observer;
mod provider;
mod store;
mod tool;

pub use gate::{AllowAll, DenyAll, Gate};
pub use observer::Observer;
pub use provider::Provider;
pub use store::{
    BadSessionId, Lease, MemoryStore, SessionId, SessionInfo, SessionStore, StoreError,
};
pub use tool::{
    FnTool, MAX_TOOL_OUTPUT, TOOL_TIMEOUT, Tool, ToolContext, ToolError, ToolOutput,
    parse_arguments, schema_of, tool,
};
