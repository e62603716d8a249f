//! Tools of servers that speak the Model Context Protocol, over the pipes of a child process or over
//! HTTP, through the official SDK.
//!
//! Servers are not trusted. All their output is limited, and their hints only count if the user trusts
//! the server. A server that ends, floods, hangs or changes does not end the run. Resources, prompts
//! and sampling are not supported.
//!
//! ```no_run
//! use plimsoll_core::process::Command;
//! use plimsoll_tools::mcp::{McpServer, McpServers};
//!
//! # async fn run() -> Result<(), plimsoll_tools::mcp::McpError> {
//! let files = Command::new("mcp-server-files").arg(".");
//! let servers = [
//!     McpServer::command("files", files),
//!     McpServer::url("search", "https://mcp.example.com/mcp").lazy(),
//! ];
//! let servers = McpServers::connect(servers, |_| {}).await?;
//! let tools = servers.tools(&[]);
//! # let _ = tools;
//! # Ok(())
//! # }
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

mod bounded;
mod call;
mod cancellations;
mod catalog;
mod client;
mod connection;
mod error;
mod fit;
mod http;
mod lazy;
mod listed;
mod names;
mod output;
mod reconnecting;
mod refs;
mod schema;
mod server;
mod servers;
mod structured;
mod task;
mod tool;
mod transport_tap;

pub use bounded::MCP_MESSAGE_MAX;
pub use cancellations::MCP_FAREWELL;
pub use catalog::{MCP_DESCRIPTION_MAX, MCP_PAGES, MCP_TOOLS, MCP_TOOLS_SENT};
pub use client::MCP_REDIRECTS;
pub use connection::{MCP_CLOSE, MCP_SILENCES, MCP_STDERR};
pub use error::{MCP_ERROR_MAX, McpError};
pub use http::{MCP_RECONNECT_AFTER, MCP_RECONNECTS};
pub use lazy::MCP_LISTED;
pub use names::MCP_NAME_MAX;
pub use output::{MCP_DATA_MAX, MCP_PARTS};
pub use reconnecting::{MCP_BACKOFF, MCP_BACKOFF_MAX, MCP_REPEATS, MCP_SESSIONS};
pub use schema::MCP_SCHEMA_MAX;
pub use server::{MCP_TIMEOUT, McpServer};
pub use servers::{McpServers, McpState, McpStatus};
pub use task::{MCP_TASK_FAILURES, MCP_TASK_POLL, MCP_TASK_POLL_MAX, MCP_TASK_POLL_MIN};
pub use transport_tap::{MCP_NOTICES, MCP_NOTICES_IN, MCP_SILENCE};

/// Locks a mutex. No code that panics runs under the locks of this module, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
