//! MCP servers: the tools offered to a model, the results of calls, and isolation. No server can
//! block, flood or outlive a run. The servers are this test binary itself, connected over pipes,
//! and one on loopback.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod agents;
mod calls;
mod ends;
mod everything;
mod fake;
mod http;
mod lazy;
mod odd;
mod odd_http;
mod secrets;
mod stage;
mod tasks;
mod tools;
