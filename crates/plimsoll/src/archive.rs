//! The archive of a session: its evicted messages, which can be searched and recalled.
//!
//! A session with a store has an archive, and its agent has tools to search it and to recall from
//! it. [`ArchiveBounds`] limits the size and the age of the archived messages.
//!
//! ```
//! use plimsoll::archive::ArchiveBounds;
//! use plimsoll::store::MemoryStore;
//! use plimsoll::{Agent, tokens::Bytes};
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//!
//! let bounds = ArchiveBounds {
//!     session_bytes: Bytes(1 << 20),
//!     ..ArchiveBounds::default()
//! };
//! let store = MemoryStore::with_archive(bounds);
//! let agent = Agent::builder(model).store(std::sync::Arc::new(store)).build()?;
//! # Ok::<(), plimsoll::Error>(())
//! ```

pub use plimsoll_core::RECALL_LEAST_WINDOW;
pub use plimsoll_core::archive::*;
