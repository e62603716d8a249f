//! Floor 3 of Plimsoll: the agent builder, the one async driver, the five doors ([`Provider`],
//! [`Tool`], [`SessionStore`], [`Gate`], [`Observer`]), retry and child processes.
//! It knows no provider, no file format and no wire.

mod agent;
pub mod archive;
mod builder;
mod context;
mod driver;
mod error;
mod fork;
mod gate;
mod heard;
mod hooks;
mod memory_store;
mod observer;
pub mod process;
mod provider;
mod retry;
mod session;
mod store;
pub mod testing;
mod tool;
mod window;

pub use agent::{
    Agent, Archive, MAX_PARALLEL_TOOLS, RECALL_LEAST_WINDOW, SUMMARY_TIMEOUT, new_session_id,
};
pub use archive::{
    ArchiveBounds, ArchiveRow, Archived, Hit, Kind, RecallError, RecallId, RecallKey, RecallTools,
    Recalled, recall_tools,
};
pub use builder::{AgentBuilder, EvictionStrategy};
pub use error::Error;
pub use fork::fork_session;
pub use gate::{AllowAll, DenyAll, Gate};
pub use hooks::{Evicted, HOOK_TIMEOUT};
pub use memory_store::MemoryStore;
pub use observer::Observer;
pub use provider::Provider;
pub use retry::RetryConfig;
pub use session::{AgentOutput, AgentState, Extensions, Remote, Session};
pub use store::{
    BadSessionId, Fork, ForkFault, Lease, MAX_FORK_DEPTH, SessionId, SessionInfo, SessionStore,
    StoreError,
};
pub use tool::{
    FnTool, MAX_TOOL_OUTPUT, MAX_TOOL_RETRIES, Pins, TOOL_RETRIES, TOOL_TIMEOUT, Tool, ToolContext,
    ToolError, ToolOutput, parse_arguments, pin_tool, schema_of, tool,
};
pub use window::{WINDOW_REMEMBERED, Window};
