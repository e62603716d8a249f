//! Stores for sessions: in memory, in SQLite (feature `store`), in PostgreSQL (feature `postgres`),
//! or an implementation of your own of [`SessionStore`](crate::SessionStore).
//!
//! ```
//! use std::sync::Arc;
//! use plimsoll::Agent;
//! use plimsoll::store::MemoryStore;
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//!
//! let agent = Agent::builder(model).store(Arc::new(MemoryStore::default())).build()?;
//! # Ok::<(), plimsoll::Error>(())
//! ```

pub use plimsoll_core::{
    Fork, ForkFault, Lease, LogEntry, MAX_FORK_DEPTH, MemoryStore, PAGE_ENTRIES, Retention,
    SEARCH_BYTES, SEARCH_ENTRIES, SessionInfo, StoreError,
};
#[cfg(feature = "store")]
pub use plimsoll_store::*;
