//! Runs on [Restate](https://restate.dev): a session is a virtual object, each model call and tool call of its
//! run is a journaled step. The session's log in PostgreSQL stays the only truth; Restate's journal holds
//! places in it, and no word that a model or a tool has said.

mod client;
mod error;
mod follow;
mod followed;
mod gate;
mod identity;
mod journal;
mod mailbox;
mod outage;
mod protocol;
mod service;
mod shown;
mod tls;
mod worker;

pub use client::{Answered, Restate};
pub use error::RestateError;
pub use follow::LogFollower;
pub use gate::PostgresGate;
pub use mailbox::message_key;
pub use outage::DatabaseNews;
pub use protocol::{
    Approval, EventsReply, EventsRequest, FORMAT, Message, RunLimits, RunReply, RunRequest,
    SERVICE, SessionStatus,
};
pub use worker::{Worker, WorkerOptions, register};
