//! Layer 4 of Plimsoll: the tools of servers that speak the Model Context Protocol, over the pipes of
//! a child process or over HTTP, through the official SDK.
//!
//! Servers are not trusted. All their output is limited, and their hints only count if the user trusts
//! the server. A server that ends, hangs or changes does not end the run. Tasks, resources, prompts and
//! sampling are not supported.
//!
//! ```no_run
//! use plimsoll_core::process::Command;
//! use plimsoll_mcp::{McpServer, McpServers};
//!
//! # async fn run() -> Result<(), plimsoll_mcp::McpError> {
//! let servers = [
//!     McpServer::command("files", Command::new("mcp-server-files").arg(".")),
//!     McpServer::url("search", "https://mcp.example.com/mcp"),
//! ];
//! let servers = McpServers::connect(servers, |_| {}).await?;
//! let tools = servers.tools(&[]);
//! # let _ = tools;
//! # Ok(())
//! # }
//! ```

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::sync::{Mutex, MutexGuard, PoisonError};

mod catalog;
mod client;
mod connection;
mod error;
mod handler;
mod http;
mod names;
mod result;
mod schema;
mod server;
mod servers;
mod tool;

pub use catalog::{MCP_DESCRIPTION_MAX, MCP_TOOLS};
pub use connection::{MCP_CLOSE, MCP_PING, MCP_STDERR};
pub use error::{MCP_ERROR_MAX, McpError};
pub use http::{MCP_RECONNECT_AFTER, MCP_RECONNECTS, MCP_REDIRECTS};
pub use names::MCP_NAME_MAX;
pub use result::{MCP_DATA_MAX, MCP_PARTS};
pub use schema::MCP_SCHEMA_MAX;
pub use server::{MCP_TIMEOUT, McpServer};
pub use servers::{McpServers, McpState, McpStatus};

/// Locks a mutex. No code that panics runs under the locks of this crate, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
