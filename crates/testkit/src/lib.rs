//! Parts that the tests of several crates share: messages and random histories, random JSON, case files,
//! recorded sessions, and with features recorders for agents and a PostgreSQL server. Only
//! `dev-dependencies` name it.
//!
//! Unit tests cannot use the parts that contain types of their own crate: to them, these are types
//! of another build of the crate. Tests in a folder `tests` can.

#[cfg(feature = "core")]
mod agents;
pub mod cases;
mod child;
#[cfg(feature = "core")]
mod computed;
mod counter;
mod json;
pub mod messages;
pub mod notation;
mod pair_calls;
#[cfg(all(unix, feature = "postgres"))]
pub mod postgres;
mod random;
pub mod recorded_sessions;
#[cfg(feature = "core")]
mod store;

#[cfg(feature = "core")]
pub use agents::{Warnings, session_id, view_items};
pub use child::ChildGuard;
#[cfg(feature = "core")]
pub use computed::{ComputedProvider, reply};
pub use counter::ByteCounter;
pub use json::json_of;
pub use pair_calls::{Repair, RepairedTranscript, repair};
pub use random::{ROUNDS, Random, rounds};

/// Names for the macro.
#[doc(hidden)]
#[cfg(feature = "core")]
pub mod reexports {
    pub use plimsoll_agent::Entry;
    pub use plimsoll_core::{Lease, LogEntry, SessionId, SessionInfo, SessionStore, StoreError};
}
