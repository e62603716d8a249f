//! Runs on [Restate](https://restate.dev). A session is a virtual object; each model call and tool
//! call of its run is a journaled step. The session's log in PostgreSQL is the only source of
//! truth: Restate's journal contains positions in the log, but no text of a model or a tool.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod client;
mod error;
mod follow;
mod gate;
mod journal;
mod mailbox;
mod outage;
mod protocol;
mod redacted;
mod request_signature;
mod service;
mod worker;

pub use client::{RequestState, Restate};
pub use error::RestateError;
pub use follow::LogFollower;
pub use gate::PostgresGate;
pub use mailbox::message_key;
pub use outage::OnDatabase;
pub use protocol::{
    Approval, EventsReply, EventsRequest, FORMAT, RunReply, RunRequest, SERVICE, SessionStatus,
};
pub use worker::{Worker, WorkerOptions, register};
