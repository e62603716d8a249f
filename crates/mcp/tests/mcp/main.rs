//! MCP servers: the tools offered to a model, the results of calls, and isolation. No server can
//! block or outlive a run. The servers are this test binary itself, connected over pipes,
//! and one on loopback.
#![cfg(unix)]

mod agents;
mod calls;
mod ends;
mod everything;
mod fake;
mod http;
mod odd;
mod odd_http;
mod secrets;
mod stage;
mod tools;
